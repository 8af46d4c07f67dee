// Package statuspage shows how groups stand on a page for browsers: who is there, who holds what and since when, what does not get
// on and why. The page follows the groups without being loaded again, and needs nothing but what its [Handler] serves.
//
//	page, err := statuspage.New(statuspage.Config{Store: store})
//	...
//	defer page.Close()
//	http.Handle("/groups/", http.StripPrefix("/groups", page))
//
// `rebalancer serve` is the same as a command.
//
// # What it may do
//
// Everybody who reaches the page may read it: put it behind what guards your other tools. It changes nothing, unless
// Config.Token is set and a request shows that token: then it pauses, drains, pins, moves and takes these back, as package admin does.
// The page asks for the token and forgets it when it is closed. Over plain HTTP the token can be read on the way, so let TLS end in
// front of the page wherever it leaves the machine.
//
// # What it costs the store
//
// While somebody looks at a group it is read every Config.Every, once for all who look, and not more than half of the time; nobody looks: not at all.
// Browsers are sent what has changed. One that is hidden behind another window asks for nothing.
//
// # Failure model
//
// When the store cannot be read, the page says so and keeps what it last saw, with its age. Names and reasons are
// shown as text, whatever stands in them. Passwords in URLs, and what follows words such as password=, are blotted out of errors and reasons. When
// a resource was claimed is told by the store's clock, and compared with that of the page's process: a few seconds are no evidence.
package statuspage

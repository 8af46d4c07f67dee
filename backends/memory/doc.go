// Package memory is a store in the process itself: for tests, for programs of one process, and as the reference for other stores.
//
// It starts no goroutine and asks for the time with time.Now alone, so it works inside a testing/synctest bubble, in virtual
// time. A new store begins with a proof that nobody works in it (Stamp.Since is zero): no group waits for a grace.
//
// # Faults
//
// Tests script what goes wrong: [Store.Cut] and [Store.CutReplies] part a node from the store, [Store.Expire] ends its
// session, [Store.Forget] and [Store.Restore] lose data, [Store.Step] steps the store's clock. [Store.Calls] counts calls.
//
// Supersede has no proof of death, since all sessions are of one process: what a superseded session holds stays until its
// end, or Expire.
//
// # Failure model
//
// Everything is lost with the process.
package memory

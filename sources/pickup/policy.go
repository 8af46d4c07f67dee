package pickup

import (
	"log/slog"
	"time"
)

// Policy says which files are messages, when, in which order, and what becomes of them. OnSuccess is required; the zero
// value of every other field is a working default.
type Policy struct {
	// OnSuccess is what becomes of a file whose handler succeeded: Delete(), MoveTo(folder), or what else the source
	// can do.
	OnSuccess Action
	// OnFailure is what becomes of a file that is given up: MoveTo(folder), with the reason in a file beside it, or
	// what else the source can do. Defaults to none: such a file stays and is tried again.
	OnFailure Action

	// StableFor is how long a file must not change, seen by two observations, before it is delivered. Defaults to 1 s; a
	// negative value turns the check off, for places into which files are only renamed.
	StableFor time.Duration
	// MinAge is how old a file must be, by its modification time. Defaults to 0.
	MinAge time.Duration
	// Ignore are patterns (path.Match) of names that are no messages. Defaults to hidden files and usual names of uploads
	// in progress: .* *.tmp *.part *.partial *.filepart *.crdownload. An empty list that is not nil ignores nothing.
	Ignore []string
	// DoneFile is the name of a second file that says that the first is complete, with * for the name of the first
	// ("*.done"). A file is then delivered only when its done-file is there, and the done-file leaves with it.
	// Defaults to none.
	DoneFile string
	// Order is the order of deliveries. Defaults to ByName.
	Order Order
	// StrictOrder lets a file that is not ready yet (unstable, or waiting for a retry) hold up those after it. Defaults to
	// false: it is passed over and comes when it is ready.
	StrictOrder bool
	// Interval is the time between two listings of a resource while files come. It grows while a listing takes long, so
	// that listings use at most a twentieth of the time. Defaults to 1 s.
	Interval time.Duration
	// IdleInterval is what Interval grows to while no files come. Defaults to 3 s, or Interval if that is longer.
	IdleInterval time.Duration
	// Logger is told what nobody else learns: a file that changed or vanished under its handler, a name that cannot be
	// worked, a resource that another group works too. Defaults to none.
	Logger *slog.Logger
}

// Order is the order in which the files of a resource are delivered.
type Order int

const (
	// ByName delivers by the bytes of the names.
	ByName Order = iota
	// ByTime delivers by modification time, then by name. Each file must be looked at before the first is delivered.
	ByTime
)

package backends

import "context"

// Inspector is what a store that a server stands behind may implement as well, for people: nodes show the warnings in their status and log, and
// the command line's doctor shows both. A Store that is wrapped by another one loses it.
type Inspector interface {
	// Version is the server's name and version, as in "PostgreSQL 17.2".
	Version(ctx context.Context) (string, error)
	// Warnings tells what about the server's set-up makes the promises weaker and what to do about it, in one sentence each; none when all
	// is well.
	Warnings(ctx context.Context) ([]string, error)
}

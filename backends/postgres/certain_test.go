package postgres

import (
	"context"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestCertain: an error says that nothing was committed only where nothing can have been. What comes behind the answer to the COMMIT says nothing of it: a
// server that is stopped answers and then ends the connection, in one packet.
func TestCertain(t *testing.T) {
	t.Parallel()
	says := func(severity, code string) error { return &pgconn.PgError{SeverityUnlocalized: severity, Code: code} }
	for what, tc := range map[string]struct {
		missing int
		err     error
		want    bool
	}{
		"a statement before the COMMIT failed":                    {3, says("ERROR", uniqueViolation), true},
		"the server stopped before the COMMIT":                    {2, says("FATAL", shutDown), true},
		"a statement before the COMMIT took too long":             {2, says("ERROR", cancelled), true},
		"the COMMIT was refused":                                  {1, says("ERROR", serialization), true},
		"this side was silent for too long before the COMMIT":     {1, says("FATAL", fellSilent), true},
		"the server stopped at the COMMIT":                        {1, says("FATAL", shutDown), false},
		"the COMMIT was cancelled, perhaps when it was done":      {1, says("ERROR", cancelled), false},
		"the server stopped behind the answer to the COMMIT":      {0, says("FATAL", shutDown), false},
		"a late cancellation came behind the answer to it":        {0, says("ERROR", cancelled), false},
		"the connection was closed before":                        {3, errUnsent, true},
		"the connection broke":                                    {3, io.ErrUnexpectedEOF, false},
		"the connection broke behind the answer to the COMMIT":    {0, io.ErrUnexpectedEOF, false},
		"the time was over, and nobody knows how far it had come": {3, context.DeadlineExceeded, false},
	} {
		if got := certain(tc.missing, tc.err); got != tc.want {
			t.Errorf("%s: certain %t, want %t", what, got, tc.want)
		}
	}
}

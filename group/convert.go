package group

import (
	"context"
	"errors"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// codeOf says how a call of the store ended. unclear is what a call is that was given up before an answer came.
func codeOf(err error, unclear coord.Code) coord.Code {
	switch {
	case err == nil:
		return coord.OK
	case errors.Is(err, backends.ErrSessionLost):
		return coord.SessionLost
	case errors.Is(err, backends.ErrSuperseded):
		return coord.Taken
	case errors.Is(err, backends.ErrIncarnation):
		return coord.Reincarnated
	case errors.Is(err, backends.ErrConflict):
		return coord.Conflict
	case errors.Is(err, backends.ErrGrace):
		return coord.TooYoung
	case errors.Is(err, backends.ErrUnknown), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unclear
	case errors.Is(err, backends.ErrFatal), errors.Is(err, backends.ErrInvalid), errors.Is(err, backends.ErrClosed):
		return coord.Fatal
	}
	return coord.Failed
}

func stampOf(s backends.Stamp) coord.Stamp {
	return coord.Stamp{Time: micros(s.Time), Incarnation: s.Incarnation, Since: micros(s.Since)}
}

// micros is t as the machine counts the store's time; 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func keyStatesOf(keys map[string]backends.KeyState) map[string]coord.KeyState {
	out := make(map[string]coord.KeyState, len(keys))
	for k, s := range keys {
		out[k] = coord.KeyState{Version: s.Version, Session: s.Session, Left: coord.Duration(s.Left)}
	}
	return out
}

func digestsOf(digests map[string]backends.Digest) map[string]coord.Digest {
	out := make(map[string]coord.Digest, len(digests))
	for k, d := range digests {
		out[k] = coord.Digest{Sum: d.Sum, Count: d.Count, Left: coord.Duration(d.Left)}
	}
	return out
}

func entriesOf(entries []backends.Entry) []coord.Entry {
	out := make([]coord.Entry, len(entries))
	for i, e := range entries {
		out[i] = coord.Entry{Key: e.Key, Value: e.Value, Version: e.Version, Session: e.Session, Left: coord.Duration(e.Left)}
	}
	return out
}

func txnsOf(txns []coord.Txn) []backends.Txn {
	out := make([]backends.Txn, len(txns))
	for i, t := range txns {
		b := backends.Txn{Deletes: t.Deletes, Grace: time.Duration(t.Grace), Wake: t.Wake}
		b.Checks = make([]backends.Check, len(t.Checks))
		for j, c := range t.Checks {
			b.Checks[j] = backends.Check{Key: c.Key, Version: c.Version}
		}
		b.Puts = make([]backends.Put, len(t.Puts))
		for j, p := range t.Puts {
			b.Puts[j] = backends.Put{Key: p.Key, Value: p.Value, Bound: p.Bound}
		}
		out[i] = b
	}
	return out
}

func resultsOf(results []backends.Result) []coord.Result {
	out := make([]coord.Result, len(results))
	for i, r := range results {
		out[i] = coord.Result{Code: codeOf(r.Err, coord.Unknown), Versions: r.Versions}
	}
	return out
}

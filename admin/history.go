package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

// The kinds of records.
const (
	KindRebalance = coord.RebalanceRecord // the coordinator planned who is to work what
	KindCreate    = "create"
	KindSettings  = "settings" // the settings of a group without members were replaced
	KindRegister  = "register"
	KindRemove    = "remove"
	KindWeight    = "weight"
	KindPause     = "pause"
	KindResume    = "resume"
	KindPin       = "pin"
	KindUnpin     = "unpin"
	KindMove      = "move" // was asked for; the rebalance that follows carries it out
	KindDrain     = "drain"
	KindUndrain   = "undrain"
	KindEvict     = "evict"
	KindStepDown  = "step-down"
	KindReset     = "reset" // of checkpoints
	KindDelete    = "delete"
)

// Record is one line of a group's history: what became of one resource or one node, or of the group as a whole.
type Record struct {
	// At is when it was written, by the store's clock.
	At time.Time
	// Kind is one of KindRebalance, KindCreate and so on.
	Kind string
	// Actor is the operator who did it (see [As]), "" when none was named; of a rebalance it is the coordinator's node.
	Actor string
	// Node that it was done to; "" when it concerns none, or is From or To.
	Node string
	// Resource that it concerns; "" when it concerns none, or the whole group.
	Resource string
	// From is the node that was to work the resource before, To the one that is to work it now; "" for none. Of what operators ask for only To
	// is known.
	From, To string
	// Reason says why. Detail says how exactly, where there is more to say than Kind does; of a move in a rebalance it is the reason of this one in
	// a word, one of coord.MoveReason, such as "balance", "drained" or "asked".
	Reason, Detail string
	// Epoch and Generation are those of a rebalance, 0 of all else. The lines of one rebalance agree in them, in At and in Actor.
	Epoch, Generation int64
	// More is how many further resources or nodes the same was done to, which are left out because they were too many. It stands in a
	// line of its own.
	More int
}

// History returns what became of a group and why, the newest first: what operators did, and each rebalance with its moves. It goes back over the
// last 100 rebalances, and over the last 75 operations at least. The history of a group that was deleted can still be read. It fails with ErrNotFound when there
// is no such group.
func History(ctx context.Context, store backends.Store, group string) ([]Record, error) {
	var list []Record
	err := with(ctx, store, group, func(s backends.Session) error {
		r, err := s.Read(ctx, backends.ReadRequest{Keys: []string{coord.SettingsKey}, Prefixes: []string{coord.HistoryPrefix}})
		if err != nil {
			return fmt.Errorf("read its history: %w", err)
		}
		if len(r.Entries) == 0 {
			return ErrNotFound
		}
		list, err = changes(r.Entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return list, nil
}

// changes are the lines of what was read, the newest first. Records of one moment, as the store's clock has it, follow the order in which they
// were written, which their versions know.
func changes(entries []backends.Entry) ([]Record, error) {
	entries = slices.DeleteFunc(entries, func(e backends.Entry) bool { return !strings.HasPrefix(e.Key, coord.HistoryPrefix) })
	records := make(map[string]coord.Record, len(entries))
	for _, e := range entries {
		r, err := coord.DecodeRecord(e.Value)
		if err != nil {
			return nil, err
		}
		records[e.Key] = r
	}
	slices.SortFunc(entries, func(a, b backends.Entry) int {
		return cmp.Or(cmp.Compare(records[b.Key].At, records[a.Key].At), cmp.Compare(b.Version, a.Version), strings.Compare(a.Key, b.Key))
	})
	var list []Record
	for _, e := range entries {
		list = append(list, lines(records[e.Key])...)
	}
	return list, nil
}

// lines are a record, one for each resource and node in it.
func lines(r coord.Record) []Record {
	all := Record{
		At: time.UnixMicro(r.At).UTC(), Kind: r.Kind, Actor: r.Actor, Reason: r.Reason, Detail: r.Detail, Epoch: r.Epoch, Generation: r.Generation,
	}
	var list []Record
	for _, n := range r.Nodes {
		c := all
		c.Node = n
		list = append(list, c)
	}
	for _, mv := range r.Moves {
		for _, name := range mv.Resources {
			c := all
			c.Resource, c.From, c.To = name, mv.From, mv.To
			c.Detail = cmp.Or(string(mv.Why), c.Detail)
			list = append(list, c)
		}
	}
	if r.More > 0 || len(list) == 0 {
		all.More = r.More
		list = append(list, all)
	}
	return list
}

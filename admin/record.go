package admin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

const (
	maxActor  = 128 // bytes of an operator's name in the history
	maxReason = 500
	// oldest is among how many of the oldest records a new one takes the place of any: operators that write at the same moment then seldom
	// want the same one.
	oldest = 25
)

// operator is a store with who uses it.
type operator struct {
	backends.Store
	actor, reason string
}

// As returns the store for an operator: what the functions of this package change through it stands in the history under that name (of up
// to 128 bytes, the rest is cut off), with the reason (up to 500 bytes). Both may be "".
func As(store backends.Store, actor, reason string) backends.Store {
	return operator{Store: store, actor: shorten(actor, maxActor), reason: shorten(reason, maxReason)}
}

func shorten(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// record is what the history will say of a change that the user of store makes.
func record(store backends.Store, kind, detail string) coord.Record {
	r := coord.Record{Kind: kind, Detail: detail}
	if o, ok := store.(operator); ok {
		r.Actor, r.Reason = o.actor, o.reason
	}
	return r
}

// of is a record that concerns resources. to is the node that they are to go to, "" for none.
func of(r coord.Record, to string, resources []string) coord.Record {
	r.Moves = []coord.Moved{{To: to, Resources: resources}}
	return r
}

// recorded adds a record to the first of the transactions, which then stands in the history if that was applied, and only then.
func recorded(ctx context.Context, s backends.Session, r coord.Record, todo []backends.Txn) ([]backends.Txn, error) {
	if len(todo) == 0 {
		return nil, nil
	}
	have, err := s.Read(ctx, backends.ReadRequest{Prefixes: []string{coord.OperationsPrefix}, NamesOnly: true})
	if err != nil {
		return nil, fmt.Errorf("read its history: %w", err)
	}
	r.At = have.Time.UnixMicro()
	slot := freeSlot(have.Entries)
	todo[0].Checks = append(todo[0].Checks, slot)
	todo[0].Puts = append(todo[0].Puts, backends.Put{Key: slot.Key, Value: coord.EncodeRecord(r)})
	return todo, nil
}

// recordAlone writes a record of what is not written with transactions, if it is done.
func recordAlone(ctx context.Context, s backends.Session, r coord.Record, done bool) error {
	if !done {
		return nil
	}
	todo, err := recorded(ctx, s, r, []backends.Txn{{}})
	if err != nil {
		return err
	}
	return commit(ctx, s, todo...)
}

// freeSlot is where the next record goes: an empty place, or that of one of the oldest records. Versions grow with each write, so they tell the
// age. Of two writers that want the same place one finds the other's record there, and tries again.
func freeSlot(entries []backends.Entry) backends.Check {
	age := map[string]int64{}
	for _, e := range entries {
		age[e.Key] = e.Version
	}
	slots := make([]backends.Check, coord.HistorySlots)
	for i := range slots {
		key := coord.OperationKey(i)
		slots[i] = backends.Check{Key: key, Version: age[key]}
	}
	slices.SortStableFunc(slots, func(a, b backends.Check) int {
		switch {
		case a.Version < b.Version:
			return -1
		case a.Version > b.Version:
			return 1
		}
		return 0
	})
	return slots[rand.IntN(oldest)]
}

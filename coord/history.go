package coord

import (
	"cmp"
	"slices"
	"strings"
)

// The history of a group is for people alone: no node reads it. It is two rings of entries, so that it stays small without a deletion: one of
// what coordinators planned, at the generation of the plan, and one of what operators did.
const (
	// HistoryPrefix is before all of it.
	HistoryPrefix = "history/"
	// OperationsPrefix is before the number of a slot: a Record of what an operator did.
	OperationsPrefix = HistoryPrefix + "operation/"
	// HistorySlots is how many entries each of the rings has.
	HistorySlots = 100
	// RebalanceRecord is the Kind of what a coordinator planned.
	RebalanceRecord = "rebalance"

	plansPrefix = HistoryPrefix + "plan/"
	// maxRecorded bounds how many bytes of names stand in one record; with everything in them escaped it still fits into an entry.
	maxRecorded = 16 << 10
)

// OperationKey is the key of a slot of the operators' ring.
func OperationKey(slot int) string { return part(OperationsPrefix, slot) }

// Record is one entry of a group's history.
type Record struct {
	At     int64  `json:"at_us"` // the store's time, as far as the writer knew it
	Kind   string `json:"kind"`  // RebalanceRecord, or what an operator did
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"` // how exactly it was done
	// Epoch and Generation are those of a coordinator's plan.
	Epoch      int64    `json:"epoch,omitempty"`
	Generation int64    `json:"gen,omitempty"`
	Nodes      []string `json:"nodes,omitempty"` // that it was done to
	Moves      []Moved  `json:"moves,omitempty"`
	More       int      `json:"more,omitempty"` // nodes and resources that are left out, because they are too many
}

// Moved are resources that went one way for one reason, or that something else was done to. From and To are "" for nobody.
type Moved struct {
	From      string     `json:"from,omitempty"`
	To        string     `json:"to,omitempty"`
	Why       MoveReason `json:"why,omitempty"` // of a coordinator's plan
	Resources []string   `json:"resources"`
}

// EncodeRecord writes a value below HistoryPrefix. Names that are too many for one entry are left out, and counted in More.
func EncodeRecord(r Record) []byte {
	room := maxRecorded
	r.Nodes = r.keep(r.Nodes, &room)
	var moves []Moved
	for _, mv := range r.Moves {
		if mv.Resources = r.keep(mv.Resources, &room); len(mv.Resources) > 0 {
			moves = append(moves, mv)
		}
	}
	r.Moves = moves
	return encode(r)
}

// keep are as many of the names as there is room for.
func (r *Record) keep(names []string, room *int) []string {
	for i, n := range names {
		if *room -= len(n) + 3; *room < 0 {
			*room = 0
			r.More += len(names) - i
			return names[:i]
		}
	}
	return names
}

// DecodeRecord reads a value below HistoryPrefix.
func DecodeRecord(b []byte) (Record, error) { return decode[Record]("a record of the history", b) }

// record is what the history will say of a publication, nil for nothing. A plan under a global barrier that moves nothing has the generation
// of the one before it, whose record it must not replace.
func (m *Machine) record(pub *publication) []byte {
	if !m.cfg.History || len(pub.nodes) == 0 {
		return nil
	}
	moves := m.recordedMoves(pub.plan)
	if len(moves) == 0 && m.cfg.Mode == GlobalBarrier {
		return nil
	}
	return EncodeRecord(Record{
		At: m.storeTime(), Kind: RebalanceRecord, Actor: m.cfg.Node, Reason: pub.plan.reason,
		Epoch: m.lead.epoch, Generation: pub.gen, Moves: moves,
	})
}

// recordedMoves are the moves of a plan, those of one way and reason together.
func (m *Machine) recordedMoves(p *plan) []Moved {
	type way struct {
		from, to string
		why      MoveReason
	}
	ways := map[way][]string{}
	m.eachMove(p, func(mv Move) {
		w := way{mv.From, mv.To, mv.Reason}
		ways[w] = append(ways[w], mv.Resource)
	})
	var moves []Moved
	for w, resources := range ways { // sorted below
		slices.Sort(resources)
		moves = append(moves, Moved{From: w.from, To: w.to, Why: w.why, Resources: resources})
	}
	slices.SortFunc(moves, func(a, b Moved) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To), strings.Compare(string(a.Why), string(b.Why)))
	})
	return moves
}

// recordPut is the entry of the history that goes with the first entry of a plan, and so stands there if and only if the plan does, in part at
// least.
func (pub *publication) recordPut() []Put {
	if pub.record == nil {
		return nil
	}
	return []Put{{Key: part(plansPrefix, int(pub.gen%HistorySlots)), Value: pub.record}}
}

package coord

import (
	"fmt"
	"slices"
	"strings"
)

// Cause says in one word why a plan was made. There are few, so that they can be counted.
type Cause string

// The causes of plans.
const (
	CauseJoin        Cause = "join"        // a node joined
	CauseReturn      Cause = "return"      // a node with a static name is back
	CauseLeave       Cause = "leave"       // a node leaves
	CauseGone        Cause = "gone"        // a node is gone without a word
	CauseCoordinator Cause = "coordinator" // the coordinator is new
	CauseChange      Cause = "change"      // resources, what operators ask for, or what nodes may take changed
)

// MoveReason says in one word why a resource moves. There are few, so that they can be counted.
type MoveReason string

// Why a resource moves.
const (
	MoveNew         MoveReason = "new"         // nobody had it
	MoveBalance     MoveReason = "balance"     // shares are evened out
	MoveLeave       MoveReason = "leave"       // its node leaves
	MoveGone        MoveReason = "gone"        // its node is gone
	MoveDrained     MoveReason = "drained"     // its node is to be given nothing
	MoveDeclined    MoveReason = "declined"    // its node could not open it
	MoveAsked       MoveReason = "asked"       // an operator moved or pinned it
	MoveIneligible  MoveReason = "ineligible"  // its node has not the labels, or not the list, to take it
	MoveStandby     MoveReason = "standby"     // its node is not one of the active ones any more
	MovePaused      MoveReason = "paused"      // it is paused without its claim
	MoveRemoved     MoveReason = "removed"     // it is no resource of the group any more
	MoveUnplaceable MoveReason = "unplaceable" // no live node may take it
)

// Move is one resource that a plan gives to another node.
type Move struct {
	Resource string
	From, To string // nodes; "" for nobody
	Reason   MoveReason
}

// maxMoves is how many moves a report names.
const maxMoves = 100

// PlanReport is what a notice of KindRebalanced tells of the plan.
type PlanReport struct {
	Epoch, Generation int64
	Causes            []Cause  // sorted, each once
	Moves             []Move   // at most 100
	Moved             int      // how many there are
	Pending           int      // moves that wait until others have ended
	Took              Duration // from the plan to its last entry in the store
	began             Time
}

// String is for transcripts: the number of moves.
func (r *PlanReport) String() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprint(r.Moved)
}

// ShareReport is what a notice of KindAssigned tells of the node's share.
type ShareReport struct {
	Epoch, Generation int64
	Causes            []Cause  // of the plan, as far as its coordinator writes them down
	Gained            []string // what is to be claimed
	Lost              []string // sorted: what is held, and to be given back
}

// String is for transcripts: how many are gained and lost.
func (r *ShareReport) String() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("+%d-%d", len(r.Gained), len(r.Lost))
}

// movement reports what a plan moves.
func (m *Machine) movement(p *plan, gen int64) *PlanReport {
	rep := &PlanReport{Epoch: m.lead.epoch, Generation: gen, Causes: p.causes, Pending: p.pending, began: m.now}
	m.eachMove(p, func(mv Move) {
		if rep.Moved++; len(rep.Moves) < maxMoves {
			rep.Moves = append(rep.Moves, mv)
		}
	})
	return rep
}

// eachMove finds what a plan moves: a resource that stays idle or comes from nobody is a move too. The entries are still those of before.
func (m *Machine) eachMove(p *plan, each func(Move)) {
	l := &m.lead
	from, stays := map[string]string{}, map[string]int{}
	nodes := sortedKeys(l.entries)
	for _, node := range nodes {
		if p.reserved[node] != 0 {
			continue // its share waits for it
		}
		for _, r := range l.entries[node].value.Share {
			if p.next[r] == node {
				stays[node]++
			} else {
				from[r] = node
			}
		}
	}
	move := func(r, to string) {
		each(Move{Resource: r, From: from[r], To: to, Reason: m.moveReason(p, r, from[r], to)})
		delete(from, r)
	}
	for _, node := range sortedKeys(p.shares) {
		if share := p.shares[node]; p.reserved[node] == 0 {
			for _, r := range share[min(stays[node], len(share)):] { // what stays comes first
				move(r, node)
			}
		}
	}
	for _, node := range nodes {
		if len(from) == 0 {
			break
		}
		for _, r := range l.entries[node].value.Share {
			if from[r] == node {
				move(r, "")
			}
		}
	}
}

// moveReason looks for the one reason that would have been enough.
func (m *Machine) moveReason(p *plan, r, from, to string) MoveReason {
	l := &m.lead
	if to == "" {
		if paused, keep := l.control.pause(r); paused && !keep {
			return MovePaused
		}
		if _, ok := slices.BinarySearch(p.sorted, r); !ok {
			return MoveRemoved
		}
	}
	mi, live := l.members[from]
	switch {
	case from == "":
		return MoveNew
	case !live:
		return MoveGone
	case mi.Leaving || from == m.cfg.Node && m.leave.asked:
		return MoveLeave
	case p.drained[from]:
		return MoveDrained
	case slices.Contains(mi.Declined, r):
		return MoveDeclined
	case !m.may(mi.Member, r):
		return MoveIneligible
	case to == "":
		return MoveUnplaceable
	case l.control.pins[r] == to || l.control.moves[r] == to:
		return MoveAsked
	case !p.takes[from]:
		return MoveStandby
	}
	return MoveBalance
}

// holdings compares a share with what is held.
func (m *Machine) holdings(a Assignment) *ShareReport {
	rep := &ShareReport{Epoch: a.Epoch, Generation: a.Generation, Causes: causesOf(a.Why)}
	for _, name := range a.Share[:a.grants()] {
		if r := m.res[name]; r == nil || r.fence == 0 {
			rep.Gained = append(rep.Gained, name)
		}
	}
	for name, r := range m.res { // sorted below
		if r.fence != 0 && !m.follow.share[name] {
			rep.Lost = append(rep.Lost, name)
		}
	}
	slices.Sort(rep.Lost)
	return rep
}

// sortedCauses are the causes in order, each once.
func sortedCauses(causes []Cause) []Cause {
	slices.Sort(causes)
	return slices.Compact(causes)
}

// causesText and causesOf are how causes stand in an entry.
func causesText(causes []Cause) string {
	words := make([]string, len(causes))
	for i, c := range causes {
		words[i] = string(c)
	}
	return strings.Join(words, ",")
}

func causesOf(text string) []Cause {
	var causes []Cause
	for word := range strings.SplitSeq(text, ",") {
		if word != "" {
			causes = append(causes, Cause(word))
		}
	}
	return causes
}

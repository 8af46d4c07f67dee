package trace

import "github.com/rebalancer-go/rebalancer/coord"

// History is a trace with what the store must have done put between its lines: a proposal for a behaviour of the specification.
type History struct {
	// Global: the group has a global barrier.
	Global bool
	// Forgets: the store lost data. Static: processes shared a name. Stepped: the store's clock was set. The specification's trace module
	// has none of these; Check has the first two.
	Forgets, Static bool
	Steps           []Step
	// Lines is how many lines the trace had.
	Lines int
}

// Step is one step of a behaviour. Do names it; which of the fields are set depends on that.
type Step struct {
	Do   Do
	Line int // the last line that was replayed before or with it, from 1
	Proc string
	Node string
	// Writer is the node that wrote, where Node is the one that the entry is for.
	Writer string
	// Session is the one that the step concerns, or the one that a transaction was made under.
	Session     string
	Incarnation string
	Resource    string // as it stands in keys
	Version     int64  // that the store gave, or the fence
	Old         int64  // the version that the transaction replaces or deletes; 0: none
	Member      int64  // the version of the member entry that it relies on; 0: none
	Assignment  int64  // of the assignment
	Leader      int64  // of the leader entry
	Barrier     int64  // of the barrier
	Epoch       int64
	Generation  int64
	Open        bool
	Grace       bool
	Share       []string // as they stand in keys
	Stopped     int64
	Leaving     bool
	Declined    []string // as they stand in keys
	// Sent and Answered are the lines between which the store carried a request out; Answered is 0 when it was not told.
	Sent, Answered int
	State          *coord.Projection
}

// Do names a step.
type Do string

// What the store does with a request, or by itself.
const (
	DoRenew     Do = "Renew"
	DoClose     Do = "CloseSession"
	DoSupersede Do = "Supersede"
	DoMember    Do = "WriteMember"
	DoClaim     Do = "ClaimArrives"
	DoRelease   Do = "ReleaseArrives"
	DoCampaign  Do = "Campaign"
	DoStepDown  Do = "StepDown"
	DoPublish   Do = "Publish"
	DoForget    Do = "Forget" // the assignment of a node that is gone is deleted
	DoBarrier   Do = "WriteBarrier"
	DoExpire    Do = "Expire"
	DoSnapshot  Do = Snapshot
	DoRollback  Do = Rollback
	DoWiped     Do = Wiped
)

// What nodes do.
const (
	DoStart          Do = "Start"
	DoOpened         Do = "OpenSession"
	DoLapse          Do = "Lapse" // the node's trust ends by its clock
	DoFence          Do = "Fence"
	DoNotice         Do = "Notice" // another incarnation is accepted
	DoLeave          Do = "Leave"
	DoEvict          Do = "Evict"
	DoAck            Do = "Ack"
	DoElected        Do = "Elected"
	DoDeposed        Do = "Deposed"
	DoFollow         Do = "Follow" // an assignment or barrier that was read is applied
	DoSendClaim      Do = "SendClaim"
	DoClaimAnswered  Do = "ClaimAnswered"
	DoClaimKept      Do = "ClaimKept" // it is held, and not worked yet
	DoClaimRefused   Do = "ClaimRefused"
	DoClaimUnknown   Do = "ClaimUnknown"
	DoSendRelease    Do = "SendRelease"
	DoReadClaim      Do = "ReadClaim" // a claim of unknown outcome was looked for
	DoSendGhost      Do = "SendGhost" // the release of a claim that was read, but not obtained
	DoReleased       Do = "ReleaseAnswered"
	DoReleaseGone    Do = "ReleaseGone" // the claim had gone already
	DoReleaseRefused Do = "ReleaseRefused"
	DoReleaseUnknown Do = "ReleaseUnknown"
	DoLost           Do = "Lose"
	DoStartWork      Do = "StartWork"
	DoRevoke         Do = "Revoke"
	DoStopped        Do = "Stopped"
	DoCannotOpen     Do = "CannotOpen"
	DoDeclineEnds    Do = "DeclineEnds"
	DoFinish         Do = "Finish"
	DoCrash          Do = "Crash"
	DoState          Do = "State" // what the node believes is compared
)

// kindOf is what a transaction does, and the key that it does that to; "" for one that the specification does not have.
func kindOf(t *Txn) (do Do, key string) {
	for _, p := range t.Puts {
		switch {
		case claimOf(p.Key) != "":
			return DoClaim, p.Key
		case p.Key == coord.LeaderKey:
			return DoCampaign, p.Key
		case p.Key == coord.BarrierKey:
			return DoBarrier, p.Key
		case headOf(p.Key) != "":
			return DoPublish, p.Key
		case memberOf(p.Key) != "":
			return DoMember, p.Key
		}
	}
	for _, k := range t.Deletes {
		switch {
		case claimOf(k) != "":
			return DoRelease, k
		case k == coord.LeaderKey:
			return DoStepDown, k
		case headOf(k) != "":
			return DoForget, k
		}
	}
	return "", ""
}

func claimOf(key string) string { return after(key, coord.ClaimPrefix) }

func memberOf(key string) string { return after(key, coord.MemberPrefix) }

func after(key, prefix string) string {
	if len(key) > len(prefix) && key[:len(prefix)] == prefix {
		return key[len(prefix):]
	}
	return ""
}

// keyForm is a resource's name as it stands in keys.
func keyForm(name string) string { return claimOf(coord.ClaimKey(name)) }

func keyForms(all []string) []string {
	out := make([]string, len(all))
	for i, name := range all {
		out[i] = keyForm(name)
	}
	return out
}

// check is the version that a transaction checks of a key, 0 where that is absent or not checked.
func (t *Txn) check(key string) int64 {
	for _, c := range t.Checks {
		if c.Key == key {
			return c.Version
		}
	}
	return 0
}

// put is what a transaction puts under a key.
func (t *Txn) put(key string) Entry {
	for _, p := range t.Puts {
		if p.Key == key {
			return p
		}
	}
	return Entry{}
}

// arrival is the step in which the store applies a transaction.
func (t *txn) arrival() Step {
	e, node := t.put(t.key), t.req.node
	s := Step{
		Do: t.do, Proc: t.req.proc, Node: node, Session: t.req.act.Session, Incarnation: t.req.act.Incarnation,
		Version: t.versions[t.key], Old: t.check(t.key), Member: t.check(coord.MemberKey(node)),
		Assignment: t.check(coord.AssignmentKey(node)), Leader: t.check(coord.LeaderKey), Barrier: t.check(coord.BarrierKey),
		Epoch: e.Epoch, Generation: e.Generation, Open: e.Open, Grace: t.Grace, Share: keyForms(e.Share),
		Stopped: e.Stopped, Leaving: e.Leaving, Declined: keyForms(e.Declined), Sent: t.req.sent, Answered: t.req.answered,
	}
	if t.unsaid {
		s.Answered = 0
	}
	switch t.do {
	case DoClaim, DoRelease:
		s.Resource = claimOf(t.key)
	case DoPublish, DoForget:
		s.Node, s.Writer = headOf(t.key), node
	}
	return s
}

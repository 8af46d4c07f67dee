package coord

// call is a request that was not answered yet.
type call struct {
	kind callKind
	sent Time
	// names are the resources, or nodes, of a commit's transactions, in their order.
	names []string
	// versions stand beside names where a transaction relies on one.
	versions []int64
	cold     bool // a gather that reads everything
	claims   bool // and one that reads all claims
}

type callKind uint8

const (
	callOpen callKind = iota + 1
	callClose
	callRenew
	callNotice
	callSettle   // read of the settings and the own member entry
	callFound    // commit of the settings
	callLists    // commit of a long static list
	callMember   // commit of the member entry
	callFollow   // read of what is addressed to this node
	callClaims   // commit of claims
	callReleases // commit of releases
	callDoubt    // read of one claim
	callStatus
	callCampaign
	callStepDown
	callGather
	callLeadLists
	callPublish
	callBarrier
	callList
	callDiscovered
	callSupersede
	callUpgrade // commit of the settings by the coordinator
	callMoved   // deletion of moves that were planned
)

// ask registers a request of that kind and returns its number.
func (m *Machine) ask(c call) uint64 {
	m.req++
	c.sent = m.now
	m.calls[m.req] = c
	return m.req
}

// answered takes the request off the list; ok is false for one of an earlier session.
func (m *Machine) answered(req uint64) (c call, ok bool) {
	c, ok = m.calls[req]
	delete(m.calls, req)
	return c, ok
}

// waitsFor tells whether a request of that kind is unanswered.
func (m *Machine) waitsFor(k callKind) bool {
	for _, c := range m.calls { // the answer does not depend on the order
		if c.kind == k {
			return true
		}
	}
	return false
}

func (m *Machine) read(c call, prefixes, keys []string) {
	m.do(Read{Req: m.ask(c), Session: m.sess.id, Prefixes: prefixes, Keys: keys, Timeout: m.timeout()})
}

func (m *Machine) commit(c call, txns ...Txn) {
	for _, t := range txns {
		m.inFormat(t)
	}
	m.do(Commit{Req: m.ask(c), Session: m.sess.id, Incarnation: m.sess.incarnation, Txns: txns, Timeout: m.timeout()})
}

// timeout bounds one request: a renewal must be able to follow a failed one before trust ends.
func (m *Machine) timeout() Duration { return m.sess.renew }

func (m *Machine) onRead(ev ReadDone) {
	c, ok := m.answered(ev.Req)
	if !ok {
		return
	}
	if ev.Code != OK {
		m.storeFailed("read", ev.Err)
	} else {
		m.noteStamp(c.sent, ev.Stamp)
		if c.kind != callNotice && m.foreign(ev.Stamp) {
			ev.Code = Failed // what was read is of an incarnation that is not accepted yet
		}
	}
	switch c.kind {
	case callNotice:
		m.noticed(ev)
	case callSettle:
		m.settled(ev)
	case callFollow:
		m.followed(c, ev)
	case callDoubt:
		m.doubted(c, ev)
	case callGather:
		m.gathered(c, ev)
	case callLeadLists:
		m.gatheredLists(c, ev)
	}
}

func (m *Machine) onCommitted(ev Committed) {
	c, ok := m.answered(ev.Req)
	if !ok {
		return
	}
	switch ev.Code {
	case SessionLost:
		m.sessionLost("the store refused a write: the session has ended")
		return
	case Taken:
		m.superseded()
		return
	case OK, Reincarnated:
		m.noteStamp(c.sent, ev.Stamp)
		if m.foreign(ev.Stamp) && (c.kind != callClaims || m.has(GuardReplyIncarnation)) {
			ev.Code = Unknown // it may have been applied, or lost since
		}
	case Failed, Unknown, Fatal:
		m.storeFailed("write", ev.Err)
	}
	if ev.Code == OK && len(ev.Results) < len(c.names) {
		ev.Code = Unknown
	}
	for _, r := range ev.Results {
		if r.Code == Taken {
			m.superseded()
		}
	}
	m.committed(c, ev)
}

func (m *Machine) committed(c call, ev Committed) {
	switch c.kind {
	case callFound, callUpgrade:
		m.set.known = false // read what stands there now
	case callLists:
		m.listsWritten(ev)
	case callMember:
		m.memberWritten(ev)
	case callClaims:
		m.claimed(c, ev)
	case callReleases:
		m.released(c, ev)
	case callStatus:
		m.statusWritten(ev)
	case callCampaign:
		m.campaigned(ev)
	case callStepDown:
		m.steppedDown(ev)
	case callPublish:
		m.published(c, ev)
	case callBarrier:
		m.barrierWritten(c, ev)
	case callMoved:
		m.movesDeleted(c, ev)
	case callDiscovered:
		m.discoveredWritten(c, ev)
	}
}

func (m *Machine) storeFailed(what string, err error) {
	m.notify(Notify{Kind: KindStore, Reason: "a " + what + " failed", Err: err})
}

// outcome is the result of one transaction of an answered commit.
func outcome(ev Committed, i int) Result {
	if ev.Code != OK {
		return Result{Code: ev.Code}
	}
	return ev.Results[i]
}

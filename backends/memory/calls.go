package memory

// Calls counts the calls that were made, also those that got lost.
type Calls struct {
	Open, Renew, Read, Commit, Listen, Close, Supersede int
	Txns                                                int // transactions in all commits
	Applied                                             int // of these, the applied ones
}

// Writes are the calls that a server would have to write for.
func (c Calls) Writes() int { return c.Open + c.Renew + c.Commit + c.Close + c.Supersede }

// RoundTrips are all calls.
func (c Calls) RoundTrips() int { return c.Writes() + c.Read + c.Listen }

// Calls counts the calls of all nodes since the store was made.
func (s *Store) Calls() Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum Calls
	for _, c := range s.calls {
		sum.Open += c.Open
		sum.Renew += c.Renew
		sum.Read += c.Read
		sum.Commit += c.Commit
		sum.Listen += c.Listen
		sum.Close += c.Close
		sum.Supersede += c.Supersede
		sum.Txns += c.Txns
		sum.Applied += c.Applied
	}
	return sum
}

// CallsOf counts the calls of the sessions that node opened.
func (s *Store) CallsOf(node string) Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[node]; c != nil {
		return *c
	}
	return Calls{}
}

// count changes a node's numbers. Call it with the lock held.
func (s *Store) count(node string, change func(*Calls)) {
	c := s.calls[node]
	if c == nil {
		c = &Calls{}
		s.calls[node] = c
	}
	change(c)
}

package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/rebalancer-go/rebalancer/coord"
)

// Line is one line of a trace. Its form is documented in spec/trace/README.md.
type Line struct {
	// At is when it was written, in nanoseconds. The lines of all nodes of a trace are on one clock, and in the order in which they happened.
	At int64 `json:"at"`
	// Node is the node's name, Proc the identity of its process. Both are empty in lines of the world.
	Node string `json:"node,omitempty"`
	Proc string `json:"proc,omitempty"`
	// By is "" for a step of a machine, "store" for what the store did with a request of that process, "world" for what happened to the
	// store's data, or to a process from outside.
	By string `json:"by,omitempty"`
	// Event is what happened.
	Event Act `json:"event"`
	// Actions are what the machine asked for, in order.
	Actions []Act `json:"actions,omitempty"`
	// Trusted is until when the node trusts its claims, on the clock of At; 0: it does not. Machines only.
	Trusted int64 `json:"trusted,omitempty"`
	// State is what the machine believes after the step, nil where that is what it believed after the last one.
	State *coord.Projection `json:"state,omitempty"`
}

// What By says.
const (
	ByMachine = ""
	ByStore   = "store"
	ByWorld   = "world"
)

// Names of lines of the world. What the store did has the names of coord's actions.
const (
	Crashed  = "Crashed"  // the process died
	Snapshot = "Snapshot" // the store's data as a rollback may bring it back
	Rollback = "Rollback" // the store went back to the latest snapshot; Incarnation is the new one
	Wiped    = "Wiped"    // the store lost everything
)

// Act is an event, or an action, of package coord, with the name that it has there.
type Act struct {
	Name        string `json:"name"`
	Req         uint64 `json:"req,omitempty"`
	Code        string `json:"code,omitempty"` // how a request ended, in coord's words
	Session     string `json:"session,omitempty"`
	Incarnation string `json:"incarnation,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Fence       int64  `json:"fence,omitempty"`
	// Txns are those of a Commit, Results those of a Committed, or of what the store did.
	Txns    []Txn    `json:"txns,omitempty"`
	Results []Result `json:"results,omitempty"`
	// Seen are entries that an answer told of.
	Seen []Entry `json:"seen,omitempty"`
	// Absent are keys that were asked for and are not among Seen.
	Absent []string `json:"absent,omitempty"`
}

// Txn is one transaction.
type Txn struct {
	Checks  []Key    `json:"checks,omitempty"`
	Puts    []Entry  `json:"puts,omitempty"`
	Deletes []string `json:"deletes,omitempty"`
	Grace   bool     `json:"grace,omitempty"` // it waits until the store's data is old enough
}

// Key is a key and a version of it; 0: absent.
type Key struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
}

// Result is how a transaction ended. Versions are those of its puts, or, after a conflict, the current ones of its checked keys.
type Result struct {
	Code     string `json:"code"`
	Versions []Key  `json:"versions,omitempty"` // sorted by key
}

// Entry is a key of the store and what the specification's variables say of its value.
type Entry struct {
	Key     string `json:"key"`
	Version int64  `json:"version,omitempty"`
	Session string `json:"session,omitempty"`
	Bound   bool   `json:"bound,omitempty"` // of a put
	// Of an assignment.
	Epoch int64    `json:"epoch,omitempty"`
	Share []string `json:"share,omitempty"` // of its first part; empty where it is only reserved
	// Of an assignment or the barrier.
	Generation int64 `json:"gen,omitempty"`
	Open       bool  `json:"open,omitempty"`
	// Of a member.
	Stopped int64 `json:"stopped,omitempty"`
	Leaving bool  `json:"leaving,omitempty"`
	// Declined are resources that the member does not want for a while.
	Declined []string `json:"declined,omitempty"`
}

// Encode is the line as JSON, with its end.
func (l *Line) Encode() ([]byte, error) {
	b, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("trace: line of %s: %w", l.Node, err)
	}
	return append(b, '\n'), nil
}

// Decode reads a trace. An error names the line.
func Decode(r io.Reader) ([]Line, error) {
	var lines []Line
	s := bufio.NewScanner(r)
	s.Buffer(nil, 64<<20)
	for n := 1; s.Scan(); n++ {
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		var l Line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", n, err)
		}
		lines = append(lines, l)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("trace: after line %d: %w", len(lines), err)
	}
	return lines, nil
}

// copyOf shares nothing with lines.
func copyOf(lines []Line) ([]Line, error) {
	var b bytes.Buffer
	for i := range lines {
		one, err := lines[i].Encode()
		if err != nil {
			return nil, err
		}
		b.Write(one)
	}
	return Decode(&b)
}

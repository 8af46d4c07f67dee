//go:build linux

package linear

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends/sqlite"
)

// sqliteTTL is that of sessions at SQLite, which can do none that is shorter than a second.
const sqliteTTL = 1200 * time.Millisecond

// asClient is the first argument of this program as a client that is a process of its own.
const asClient = "client-of-sqlite"

// runClient is the program of a client: its events go to standard output, and it ends when standard input does.
func runClient(args []string) int {
	path, group := args[0], args[1]
	number, _ := strconv.Atoi(args[2])
	seed, _ := strconv.ParseUint(args[3], 10, 64)
	s, err := sqlite.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	c := &client{group: group, number: number, node: args[4], store: s, ttl: sqliteTTL, to: newLines(os.Stdout), opening: new(sync.Mutex), rnd: rand.New(rand.NewPCG(seed, 0))}
	c.run(ctx, 20*time.Millisecond)
	return 0
}

// process is a client in a process of its own.
type process struct {
	t       *testing.T
	h       *history
	cmd     *exec.Cmd
	stdin   io.Closer
	reading sync.WaitGroup
}

// startProcess starts a client, which must not outlive the test.
func startProcess(t *testing.T, h *history, path, group string, number int, seed uint64, node string) *process {
	t.Helper()
	p := &process{t: t, h: h}
	p.cmd = exec.Command(os.Args[0], asClient, path, group, strconv.Itoa(number), strconv.FormatUint(seed, 10), node)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.reading.Go(func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line of one that is killed may be cut short: its call was not answered
				h.note(e)
			}
		}
	})
	return p
}

// signal sends a signal to the process.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("a client: %v", err)
	}
}

// kill ends the process at once, and notes that.
func (p *process) kill(number int) {
	p.t.Helper()
	p.h.note(event{Client: number, Number: -1, Kind: killed, Call: now()})
	p.signal(syscall.SIGKILL)
	p.reading.Wait()
	_ = p.cmd.Wait() // killed
}

// end lets the process end.
func (p *process) end() {
	p.t.Helper()
	_ = p.stdin.Close()
	p.reading.Wait()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("a client: %v", err)
	}
}

// startSQLite makes a file that processes share; they are killed and frozen, also in the middle of a commit.
func startSQLite(t *testing.T) (recording, rules) {
	path := filepath.Join(t.TempDir(), "group.db")
	return func(t *testing.T, group string, rnd *rand.Rand) *history {
		t.Helper()
		return recordProcesses(t, path, group, rnd)
	}, rules{exact: true, slack: slack, proofs: true, ahead: true}
}

func recordProcesses(t *testing.T, path, group string, rnd *rand.Rand) *history {
	t.Helper()
	h := newHistory()
	var all [clients]*process
	var numbers [clients]int
	next := 0
	start := func(i int) {
		numbers[i] = next
		all[i] = startProcess(t, h, path, group, next, rnd.Uint64(), fmt.Sprintf("node %d", i))
		next++
	}
	for i := range all {
		start(i)
	}
	r := &run{t: t, rnd: rnd, h: h}
	for range 3 + rnd.IntN(3) {
		h.progress(t, between)
		r.pause(0, 300*time.Millisecond)
		i := rnd.IntN(clients)
		if rnd.IntN(2) == 0 {
			all[i].kill(numbers[i])
			start(i)
			continue
		}
		all[i].signal(syscall.SIGSTOP)
		r.pause(50*time.Millisecond, sqliteTTL/2)
		if rnd.IntN(4) == 0 {
			r.pause(sqliteTTL/2, sqliteTTL)
		}
		all[i].signal(syscall.SIGCONT)
	}
	h.progress(t, between)
	for _, p := range all {
		p.end()
	}
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h.readRest(t, &client{group: group, number: next, node: "reader", store: s, ttl: sqliteTTL, to: h, opening: new(sync.Mutex), rnd: rnd})
	return h
}

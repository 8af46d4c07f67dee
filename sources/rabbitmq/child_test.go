//go:build linux

package rabbitmq

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/waittest"
	"github.com/rebalancer-go/rebalancer/sources"
)

// A child is a process that consumes a queue, to be killed and frozen. It is this test's binary, told so by the environment.
const childEnv = "RABBITMQ_TEST_CHILD"

// child is that process: "fence limit url queue". It prints each message that it has, and works it when it is told so by a line: "done" settles
// the first in hand, "die" kills the process.
func child(what string) {
	f := strings.SplitN(what, " ", 4)
	fence, _ := strconv.ParseInt(f[0], 10, 64)
	limit, _ := strconv.Atoi(f[1])
	s, err := New(Config{URLs: []string{f[2]}, Heartbeat: time.Second, Prefetch: 100, DeliveryLimit: limit, DeadLetter: Queue("dead")})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	ctx := context.Background()
	r, err := s.Open(ctx, &rebalancer.Claim{Group: "g", Node: "child", Resource: f[3], Fence: fence})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	hand := make(chan *rebalancer.Message, 10000)
	go func() {
		for {
			ms, err := r.Fetch(ctx, 100)
			if err != nil {
				fmt.Println("error", err)
				sleep(ctx, 100*time.Millisecond)
			}
			for _, m := range ms {
				hand <- m
				fmt.Println("message", string(m.Body), m.Attempt)
			}
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "die":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "done":
			fmt.Println("settled", r.Settle(ctx, []sources.Settlement{{Message: <-hand}}))
		}
	}
}

// process is a child from the outside.
type process struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (b *bench) child(queue string, limit int) *process {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	p := &process{t: b.t, cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s %s", childEnv, claimOf(queue).Fence, limit, b.r.URL(b.vhost), queue))
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	b.t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) say(line string) { _, _ = fmt.Fprintln(p.in, line) }

// line is the next line of a kind, without that word.
func (p *process) line(kind string) string {
	p.t.Helper()
	stop := time.AfterFunc(30*time.Second, p.kill)
	defer stop.Stop()
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			p.t.Fatalf("no line %q of the child: %v", kind, err)
		}
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), kind+" "); ok {
			return text
		}
	}
}

// TestLimitAndAMessageThatKills: with a delivery limit of 3 and a prefetch of 100, a message that kills every process that works it is the only
// one that goes to the dead-letter place.
func TestLimitAndAMessageThatKills(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[1:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k.with(map[string]any{"x-delivery-limit": 3, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "brokers"}))
		b.declare("dead", kinds[0])
		b.declare("brokers", kinds[0])
		b.send("q", 300)
		const poison = "30"
		deaths := 0
		for b.total("q") > 0 {
			p := b.child("q", 3)
			p.workUntil(poison, func() bool { return b.total("q") == 0 })
			if deaths++; deaths > 5 {
				t.Fatal("the message kills one process after the other")
			}
		}
		dead := b.get("dead")
		if len(dead) != 1 || string(dead[0].Body) != poison {
			t.Fatalf("%d messages are dead letters", len(dead))
		}
		if text := fmt.Sprint(dead[0].Headers[HeaderError]); !strings.Contains(text, "delivery limit") {
			t.Errorf("reason %q", text)
		}
		if n := len(b.get("brokers")); n > 0 {
			t.Errorf("the broker dead-lettered %d messages", n)
		}
		if deaths < 3 { // two deaths and the rest
			t.Errorf("%d processes worked the queue", deaths)
		}
	})
}

// workUntil settles message by message. It returns when the process died of the poison, or over is true.
func (p *process) workUntil(poison string, over func() bool) {
	p.t.Helper()
	lines := make(chan string)
	ended := make(chan struct{})
	defer func() {
		p.kill()
		close(ended)
	}()
	go func() {
		defer close(lines)
		for {
			line, err := p.out.ReadString('\n')
			if err != nil {
				return
			}
			select {
			case lines <- line:
			case <-ended:
				return
			}
		}
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(60 * time.Second)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			if strings.HasPrefix(line, "message "+poison+" ") {
				p.say("die")
				continue
			}
			if strings.HasPrefix(line, "message") {
				p.say("done")
			}
		case <-tick.C:
			if over() {
				return
			}
		case <-late:
			p.t.Fatal("a child works for more than a minute")
		}
	}
}

// TestFrozenConsumer: the next owner waits until the broker has let go of a process that froze, and gets everything in order;
// when the process thaws it acknowledges nothing.
func TestFrozenConsumer(t *testing.T) {
	t.Parallel()
	everywhere(t, kinds[:2], func(t *testing.T, b *bench, k kind) {
		b.declare("q", k)
		b.declare("dead", kinds[0])
		b.send("q", 300)
		p := b.child("q", -1)
		p.line("message 1")
		must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
		s := b.source(func(c *Config) { c.EagerStart, c.Prefetch = true, 300 })
		start := time.Now()
		r := open(t, s, "q")
		if d := time.Since(start); d > s.HeldFor()+time.Second {
			t.Errorf("opened after %v: the broker holds for %v at most", d, s.HeldFor())
		}
		ms := fetch(t, r, 300)
		if got := texted(ms); got != numbers(1, 300) {
			t.Fatalf("got %s", got)
		}
		must(t, p.cmd.Process.Signal(syscall.SIGCONT))
		p.say("done")
		if err := p.line("settled"); err != "<nil>" {
			t.Errorf("late settlement: %s", err)
		}
		if n := settled(t, func() int { return b.total("q") }); n != 300 {
			t.Fatalf("%d messages are left of 300: a process acknowledged under an old fence", n)
		}
		p.kill()
		settle(t, r, sources.Done, ms...)
		waittest.Until(t, "all acknowledged", func() bool { return b.total("q") == 0 })
	})
}

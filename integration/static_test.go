package integration

import (
	"syscall"
	"testing"
	"time"
)

// Two processes have one name. One is frozen, thawed, or killed, at random moments: what the older one may still work ends
// before the newer one begins, and the work goes on. The one that was replaced ends by itself.
func TestTwoProcessesOfOneName(t *testing.T) {
	t.Parallel()
	rounds := 10
	if *soak {
		rounds = 100
	}
	rnd := random(t)
	m := newTeam(t, 2)
	pause := func(most time.Duration) { time.Sleep(time.Duration(rnd.Int64N(int64(most)))) } // the schedule, not a synchronisation
	works := func(p *process) func() bool {
		return func() bool { return m.counts(p)[0] == m.resources }
	}
	old := m.start("x", true)
	eventually(t, "the first one works", 20*time.Second, works(old))
	for range rounds {
		pause(500 * time.Millisecond)
		how := rnd.IntN(4)
		switch how {
		case 0: // nothing happens to it
		case 1, 2:
			m.frozen[old.Process.Pid] = true
			old.signal(syscall.SIGSTOP)
		case 3:
			old.signal(syscall.SIGKILL)
		}
		pause(500 * time.Millisecond)
		next := m.start("x", true)
		began := time.Now()
		if how == 1 {
			pause(2 * ttl)
			old.signal(syscall.SIGCONT)
		}
		if how == 2 && !within(5*ttl, works(next)) {
			// It was stopped in the middle of a commit: with SQLite that stops the others until it goes on.
			t.Log("nobody works while the older one is frozen")
			old.signal(syscall.SIGCONT)
		}
		eventually(t, "the newer one works", 20*time.Second, works(next))
		t.Logf("schedule %d: the newer one works after %v", how, time.Since(began).Round(time.Millisecond))
		switch how {
		case 2:
			pause(ttl)
			old.signal(syscall.SIGCONT)
			fallthrough
		case 0, 1:
			old.ends(supersededCode, 20*time.Second)
		default:
			_ = old.Wait()
		}
		old = next
	}
	m.noOverlap()
	old.signal(syscall.SIGTERM)
	old.ends(0, 10*time.Second)
}

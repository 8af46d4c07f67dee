package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// longestLook bounds how late the end of trust is seen after the machine slept: Go's timers do not count that time.
	longestLook = 50 * time.Millisecond
	// firstSweep and lastSweep pace the kills until no child is left. A command that leaves nothing behind is
	// done before the first.
	firstSweep, lastSweep = 2 * time.Millisecond, 50 * time.Millisecond
)

// RecordVariable names an environment variable with the path of a file to which supervisors append one JSON line per
// ended command (see [Record]): for tests, which cannot ask a killed command when it ended.
const RecordVariable = "REBALANCER_SUPERVISOR_RECORD"

// Record is a line in that file. Ended is read after the last process of the run was gone.
type Record struct {
	Pid     int    `json:"pid"`
	Started Moment `json:"started"`
	Ended   Moment `json:"ended"`
	Why     Why    `json:"why"`
}

// look does what is due and returns when to look again.
func (s *server) look() time.Duration {
	j := s.job
	if j == nil {
		return time.Hour
	}
	now, err := Now()
	if !j.killing {
		switch {
		case err != nil || now >= j.until:
			s.kill(Distrusted)
		case j.stopping && !time.Now().Before(j.killAt):
			s.kill(Stopped)
		}
	}
	if j.killing {
		if !time.Now().Before(j.sweepAt) {
			s.sweep()
			j.pace = min(2*j.pace, lastSweep)
			j.sweepAt = time.Now().Add(j.pace)
		}
		return max(time.Until(j.sweepAt), 0)
	}
	next := min(longestLook, time.Duration(j.until-now))
	if j.stopping {
		next = min(next, time.Until(j.killAt))
	}
	return max(next, 0)
}

// stop asks the command to end, and kills it when it did not do so in time.
func (s *server) stop(after time.Duration) {
	j := s.job
	if j == nil || j.killing || j.exited {
		return
	}
	if after <= 0 {
		s.kill(Stopped)
		return
	}
	if j.stopping {
		j.killAt = earlier(j.killAt, time.Now().Add(after))
		return
	}
	j.stopping, j.killAt, j.why = true, time.Now().Add(after), Stopped
	s.signalGroup(unix.SIGTERM)
	s.signalGroup(unix.SIGCONT) // a stopped process would never see it
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// kill ends the job for the reason given, unless it has ended.
func (s *server) kill(why Why) {
	j := s.job
	if j == nil || j.killing {
		return
	}
	if !j.exited {
		j.why = why
	}
	j.killing, j.pace, j.sweepAt = true, firstSweep, time.Now().Add(firstSweep)
	s.sweep()
}

// sweep kills the command's group and every descendant. What a kill finds half born is met by the next one.
func (s *server) sweep() {
	s.signalGroup(unix.SIGKILL)
	s.mu.Lock()
	defer s.mu.Unlock()
	ps, err := processes()
	if err != nil {
		return // no /proc: the group is all that can be reached
	}
	for _, p := range descendants(ps, os.Getpid()) {
		if !p.dead {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
	}
}

func (s *server) signalGroup(sig unix.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreaped > 0 {
		_ = unix.Kill(-s.unreaped, sig)
	}
}

// reap waits for the children of one job, whose orphans become ours, until there are none.
func (s *server) reap() {
	for {
		// Only looks, so that the number of the command stays taken until the lock is held.
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		c := child{none: err != nil}
		if err == nil {
			s.mu.Lock()
			c.pid, err = unix.Wait4(-1, &c.status, unix.WNOHANG, nil)
			if c.pid > 0 && c.pid == s.unreaped {
				s.unreaped = 0
			}
			s.mu.Unlock()
			if err != nil || c.pid <= 0 {
				continue
			}
		}
		select {
		case s.reaped <- c:
		case <-s.quit:
			return
		}
		if c.none {
			return
		}
	}
}

// bury notes that a child has ended; the last one ends the job.
func (s *server) bury(c child) {
	j := s.job
	if !c.none {
		if c.pid == j.pid {
			j.exited, j.status = true, c.status
			if !j.killing { // what the command left running has no right to work on
				j.killing, j.pace, j.sweepAt = true, firstSweep, time.Now().Add(firstSweep)
			}
		}
		return
	}
	s.closeBody()
	s.job = nil
	if s.record != "" {
		if err := s.note(j); err != nil {
			fmt.Fprintln(os.Stderr, "rebalancer: supervisor:", err)
		}
	}
	if !s.gone {
		s.answer(frame{Op: opDone, Why: j.why, Wait: uint32(j.status)})
	}
}

func (s *server) note(j *job) error {
	now, err := Now()
	if err != nil {
		return err
	}
	b, err := json.Marshal(Record{Pid: j.pid, Started: j.started, Ended: now, Why: j.why})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.record, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(b, '\n'))
	return err
}

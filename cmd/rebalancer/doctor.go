package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

const doctorLong = `It opens a session of a group of its own in the store, writes an entry that vanishes with the session, reads it, renews, and closes, and says how long
each took; what the server is; how far its clock is from this machine's; and what about its set-up makes the promises weaker. The code is 1 when
something does not work, and 0 when there are only warnings.`

const (
	doctorTTL     = 30 * time.Second
	doctorTimeout = 15 * time.Second // of one step
	// clockTolerance is how far the clocks of store and machine may be apart without a word: nothing depends on it but how people read times.
	clockTolerance = 5 * time.Second
)

func doctorCommand() command {
	return command{
		name: "doctor", short: "try a store and say what is wrong with it", long: doctorLong,
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(ctx context.Context, p *program, _, _ []string) error {
				return p.withStore(ctx, store, true, func(s backends.Store) error {
					w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
					d := &doctor{store: s, out: w}
					err := d.examine(ctx)
					return errors.Join(err, w.Flush())
				})
			}
		},
	}
}

// doctor examines a store and writes down what it finds, a line for each thing.
type doctor struct {
	store   backends.Store
	out     io.Writer
	session backends.Session
}

func (d *doctor) say(state, what, format string, args ...any) {
	fmt.Fprintf(d.out, "%s\t%s\t%s\n", state, what, fmt.Sprintf(format, args...))
}

// step does one thing and says how it went.
func (d *doctor) step(ctx context.Context, what string, do func(ctx context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	began := time.Now()
	more, err := do(ctx)
	if err != nil {
		d.say("FAILED", what, "%v", err)
		return fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(began).Round(10 * time.Microsecond)
	if more != "" {
		more = "; " + more
	}
	d.say("ok", what, "%v%s", took, more)
	return nil
}

// examine goes on after a failure where what follows can still be tried.
func (d *doctor) examine(ctx context.Context) error {
	var errs []error
	inspector, _ := d.store.(backends.Inspector)
	if inspector != nil {
		errs = append(errs, d.step(ctx, "reachable", inspector.Version))
	}
	if err := d.step(ctx, "session", d.open); err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs,
		d.step(ctx, "write", d.write), d.step(ctx, "renew", d.renew), d.step(ctx, "read", d.read),
		d.step(ctx, "hints", d.hints), d.step(ctx, "close", func(ctx context.Context) (string, error) { return "", d.session.Close(ctx) }))
	if inspector != nil {
		errs = append(errs, d.warnings(ctx, inspector))
	}
	return errors.Join(errs...)
}

func (d *doctor) open(ctx context.Context) (string, error) {
	began := time.Now()
	s, err := d.store.Open(ctx, backends.SessionOptions{Group: "doctor-" + rand.Text(), Node: "doctor", TTL: doctorTTL})
	if err != nil {
		return "", err
	}
	d.session = s
	off := s.Opened().Time.Sub(began.Add(time.Since(began) / 2)).Round(time.Millisecond)
	if off.Abs() > clockTolerance {
		d.say("WARNING", "clock", "the store's is %v away from this machine's: set both by NTP; a store whose clock is stepped ends sessions early or late", off)
	}
	return fmt.Sprintf("ttl %v, the store's clock is %v from this machine's", s.TTL(), off), nil
}

const doctorKey = "doctor/entry"

func (d *doctor) write(ctx context.Context) (string, error) {
	r, err := d.session.Commit(ctx, backends.CommitRequest{Incarnation: d.session.Opened().Incarnation, Txns: []backends.Txn{{
		Checks: []backends.Check{{Key: doctorKey}}, Puts: []backends.Put{{Key: doctorKey, Value: []byte("doctor"), Bound: true}}, Wake: []string{doctorKey},
	}}})
	if err == nil {
		err = r.Results[0].Err
	}
	return "", err
}

func (d *doctor) renew(ctx context.Context) (string, error) {
	r, err := d.session.Renew(ctx, backends.RenewRequest{Incarnation: d.session.Opened().Incarnation, Keys: []string{doctorKey}, Digests: []string{"doctor/"}})
	if err == nil && (r.Keys[doctorKey].Version == 0 || r.Digests["doctor/"].Count != 1) {
		err = errors.New("it does not know what was written before")
	}
	return "", err
}

func (d *doctor) read(ctx context.Context) (string, error) {
	r, err := d.session.Read(ctx, backends.ReadRequest{Prefixes: []string{"doctor/"}})
	if err == nil && (len(r.Entries) != 1 || string(r.Entries[0].Value) != "doctor" || r.Entries[0].Session != d.session.ID()) {
		err = fmt.Errorf("%d entries, and not what was written before", len(r.Entries))
	}
	return "", err
}

// hints waits for one. That none comes is no failure: polling is the truth.
func (d *doctor) hints(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := make(chan struct{}, 1)
	err := d.session.Listen(ctx, doctorKey, func() {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	if errors.Is(err, backends.ErrNoHints) {
		return "none: nodes poll", nil
	}
	if err != nil {
		return "", err
	}
	_, err = d.session.Commit(ctx, backends.CommitRequest{Incarnation: d.session.Opened().Incarnation, Txns: []backends.Txn{{
		Puts: []backends.Put{{Key: doctorKey, Value: []byte("again"), Bound: true}}, Wake: []string{doctorKey},
	}}})
	if err != nil {
		return "", err
	}
	wait := time.NewTimer(5 * time.Second)
	defer wait.Stop()
	select {
	case <-heard:
		return "", nil
	case <-wait.C:
		d.say("WARNING", "hints", "none came within 5 s: hand-overs wait for a poll, at most a third of the ttl")
		return "none came", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (d *doctor) warnings(ctx context.Context, in backends.Inspector) error {
	var all []string
	err := d.step(ctx, "set-up", func(ctx context.Context) (more string, err error) {
		all, err = in.Warnings(ctx)
		return fmt.Sprintf("%d warnings", len(all)), err
	})
	for _, w := range all {
		d.say("WARNING", "set-up", "%s", w)
	}
	return err
}

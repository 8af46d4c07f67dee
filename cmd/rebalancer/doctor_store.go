package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// examine tries a store. It goes on after a failure where what follows can still be tried.
func (d *doctor) examine(ctx context.Context) {
	inspector, _ := d.store.(backends.Inspector)
	if inspector != nil {
		version := ""
		if d.step(ctx, "reachable", func(ctx context.Context) (_ string, err error) {
			version, err = inspector.Version(ctx)
			return version, err
		}) {
			d.version(version)
		}
	}
	if !d.step(ctx, "session", d.open) {
		return
	}
	d.clock()
	d.step(ctx, "write", d.write)
	d.step(ctx, "renew", d.renew)
	d.step(ctx, "read", d.read)
	d.step(ctx, "hints", d.hints)
	d.step(ctx, "close", func(ctx context.Context) (string, error) { return "", d.session.Close(ctx) })
	if inspector != nil {
		d.setUp(ctx, inspector)
	} else {
		d.find(stateNote, "durability and failover", "", "there is no server to ask: the store is as durable as what it is kept on, and there is nothing to fail over to")
	}
}

// alone says when a store is one server that could be several.
func (d *doctor) alone(u *url.URL) {
	if u.Scheme == "zk" && !strings.Contains(u.Host, ",") {
		d.find(stateNote, "durability and failover", "name all servers of the ensemble in the URL: zk://h1,h2,h3/chroot",
			"one server is named: while it is away nodes stop when their trust ends, and its disk is the only copy unless it is one of an ensemble")
	}
}

func (d *doctor) open(ctx context.Context) (string, error) {
	began := time.Now()
	s, err := d.store.Open(ctx, backends.SessionOptions{Group: "doctor-" + rand.Text(), Node: "doctor", TTL: doctorTTL})
	if err != nil {
		return "", err
	}
	d.session = s
	d.off = s.Opened().Time.Sub(began.Add(time.Since(began) / 2)).Round(time.Millisecond)
	return fmt.Sprintf("ttl %v", s.TTL()), nil
}

// clock says how far the clocks are apart: nothing depends on it, but it tells that one of them is not looked after.
func (d *doctor) clock() {
	if d.off.Abs() > clockTolerance {
		d.find(stateWarning, "clock", "set both by NTP: a store whose clock is stepped ends sessions early or late", "the store's is %v away from this machine's", d.off)
		return
	}
	d.find(stateOK, "clock", "", "the store's is %v from this machine's", d.off)
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
		d.find(stateWarning, "hints", "nothing must be done; a pooler in front of the store, or a right to channels that is missing, keeps them back",
			"none came within 5 s: hand-overs wait for a poll, at most a third of the ttl")
		return "none came", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// setUp says what weakens durability and what is unsafe under failover, as far as the server shows it.
func (d *doctor) setUp(ctx context.Context, in backends.Inspector) {
	var all []string
	d.step(ctx, "durability and failover", func(ctx context.Context) (_ string, err error) {
		all, err = in.Warnings(ctx)
		if len(all) == 0 {
			return "nothing that the server shows makes them weaker", err
		}
		return countOf(len(all), "warning"), err
	})
	for _, w := range all {
		d.find(stateWarning, "durability and failover", "", "%s", w)
	}
}

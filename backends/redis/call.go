package redis

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
)

//go:embed lua/*.lua
var sources embed.FS

// scripts are the calls of the store. Each begins with the prelude.
type scripts struct {
	open, renew, read, commit, supersede, close, begin *redis.Script
}

// newScripts gives the scripts; behind is subtracted from the server's clock, for tests.
func newScripts(behind string) *scripts {
	text := func(name string) string {
		b, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			return "" // it is embedded
		}
		return string(b)
	}
	prelude := text("prelude")
	if behind != "" {
		prelude = strings.Replace(prelude, "0 --[[behind]]", behind, 1)
	}
	script := func(name string) *redis.Script { return redis.NewScript(prelude + text(name)) }
	return &scripts{
		open: script("open"), renew: script("renew"), read: script("read"), commit: script("commit"),
		supersede: script("supersede"), close: script("close"), begin: script("begin"),
	}
}

// reply is what every script answers, and what more it has to say.
type reply struct {
	code  string
	stamp backends.Stamp
	open  bool // the incarnation has not begun: replicas must confirm it
	rest  []any
}

const (
	replicaWait = time.Second           // at most, for replicas to confirm
	tries       = 20                    // of a call that the Cluster sends elsewhere
	elsewhere   = 50 * time.Millisecond // between them: the client learns where
)

// errMalformed is an answer that no script gives.
var errMalformed = errors.New("the server's answer is none that the scripts give")

// run calls a script. An error may mean anything but success: the script may have run. With replicas to wait for, success says that they
// confirmed it.
func (s *Store) run(ctx context.Context, script *redis.Script, sp space, session string, args ...any) (reply, error) {
	return s.runFor(ctx, script, sp, session, s.replicas, args...)
}

func (s *Store) runFor(ctx context.Context, script *redis.Script, sp space, session string, replicas int, args ...any) (reply, error) {
	unconfirmed, ask := "0", "1"
	if s.replicas > 0 {
		unconfirmed = "1"
	}
	if s.seen.noInfo.Load() {
		ask = "0"
	}
	all := append([]any{rand.Text(), s.seen.delay.Load(), unconfirmed, ask, session}, args...)
	var r reply
	err := s.within(ctx, func(ctx context.Context) error {
		raw, err := s.eval(ctx, script, sp, all, replicas)
		if err != nil {
			return err
		}
		r, err = decode(raw)
		return err
	})
	if err != nil {
		return reply{}, s.wrap(err)
	}
	if r.open && replicas > 0 {
		began, err := s.runFor(ctx, s.scripts.begin, sp, session, 0, r.stamp.Incarnation)
		if err != nil {
			return reply{}, err
		}
		if began.stamp.Incarnation == r.stamp.Incarnation {
			r.stamp.Since = began.stamp.Since
		}
	}
	return r, nil
}

// within runs f until it returns, the context ends or the store is closed; a client need not heed its context while it waits for
// the server. f must not touch anything that the caller uses after an error.
func (s *Store) within(ctx context.Context, f func(context.Context) error) error {
	if s.ctx.Err() != nil {
		return backends.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		if err != nil && s.ctx.Err() != nil {
			return backends.ErrClosed
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return backends.ErrClosed
	}
}

// eval runs the script by its hash, and by its text where the server does not know it.
func (s *Store) eval(ctx context.Context, script *redis.Script, sp space, args []any, replicas int) (any, error) {
	raw, err := s.send1(ctx, sp, replicas, func(c redis.Scripter) *redis.Cmd { return script.EvalSha(ctx, c, sp.keys, args...) })
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		raw, err = s.send1(ctx, sp, replicas, func(c redis.Scripter) *redis.Cmd { return script.Eval(ctx, c, sp.keys, args...) })
	}
	return raw, err
}

// send1 sends the script, and with it, on the same connection, the wait for replicas.
func (s *Store) send1(ctx context.Context, sp space, replicas int, send func(redis.Scripter) *redis.Cmd) (any, error) {
	if replicas == 0 {
		return send(s.client).Result()
	}
	cluster, _ := s.client.(*redis.ClusterClient)
	for try := 1; ; try++ {
		node := s.client
		if cluster != nil {
			master, err := cluster.MasterForKey(ctx, sp.keys[0])
			if err != nil {
				return nil, err
			}
			node = master
		}
		raw, err := s.andWait(ctx, node, replicas, send)
		moved := redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN")
		if cluster == nil || !moved || try == tries {
			return raw, err
		}
		cluster.ReloadState(ctx)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(elsewhere):
		}
	}
}

func (s *Store) andWait(ctx context.Context, node redis.UniversalClient, replicas int, send func(redis.Scripter) *redis.Cmd) (any, error) {
	patience := replicaWait
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(time.Millisecond, min(patience, time.Until(deadline)))
	}
	p := node.Pipeline()
	script := send(p)
	wait := p.Do(ctx, "wait", replicas, max(1, patience.Milliseconds())) // 0 would be for ever
	if err := sent(p.Exec(ctx)); err != nil {
		return nil, err
	}
	raw, err := script.Result()
	if err != nil {
		return nil, err
	}
	n, err := wait.Int64()
	if err != nil {
		return nil, fmt.Errorf("waiting for %d replicas: %w", replicas, err)
	}
	if n < int64(replicas) {
		return nil, fmt.Errorf("%d of %d replicas confirmed it within %v", n, replicas, patience)
	}
	return raw, nil
}

// sent is the error of a pipeline that got no answers; what the server answers is in the commands. (They may lack the other kind.)
func sent(_ []redis.Cmder, err error) error {
	var said redis.Error
	if errors.As(err, &said) {
		return nil
	}
	return err
}

func decode(raw any) (reply, error) {
	a, ok := raw.([]any)
	if !ok || len(a) < 5 {
		return reply{}, errMalformed
	}
	p := parser{}
	r := reply{code: p.text(a[0]), open: p.text(a[4]) == "1", rest: a[5:]}
	r.stamp = backends.Stamp{Time: time.UnixMicro(p.number(a[1])), Incarnation: p.text(a[2]), Since: time.UnixMicro(p.number(a[3]))}
	if r.code == "repeated" {
		return reply{}, errors.New("the client sent it twice, and the first answer was lost")
	}
	return r, p.err
}

// parser reads the parts of an answer; it keeps the first error.
type parser struct{ err error }

func (p *parser) fail() { p.err = errMalformed }

func (p *parser) text(v any) string {
	s, ok := v.(string)
	if !ok {
		p.fail()
	}
	return s
}

func (p *parser) number(v any) int64 {
	if n, ok := v.(int64); ok {
		return n
	}
	n, err := strconv.ParseInt(p.text(v), 10, 64)
	if err != nil {
		p.fail()
	}
	return n
}

func (p *parser) list(a []any, i int) []any {
	if i >= len(a) {
		p.fail()
		return nil
	}
	l, ok := a[i].([]any)
	if !ok {
		p.fail()
	}
	return l
}

// left is a time left in µs; negative: none.
func (p *parser) left(v any) time.Duration {
	n := p.number(v)
	if n < 0 {
		return -1
	}
	return time.Duration(n) * time.Microsecond
}

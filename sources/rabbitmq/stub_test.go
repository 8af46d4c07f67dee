//go:build linux

package rabbitmq

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/waittest"
)

// stub is a broker that does what a real one seldom does: it answers when it is told to. It has one queue of any name.
type stub struct {
	t  testing.TB
	at net.Listener

	mu      sync.Mutex // also of writes
	conns   []net.Conn
	said    []string // by clients: "channel method"
	named   []string
	hold    map[string]chan struct{} // methods that are answered when that is closed
	channel uint16                   // the channel of the last consumer
	tag     string                   // of that consumer
	all     sync.WaitGroup

	consumer, publisher net.Conn // the last of each
	publishing          uint16   // the channel of publisher
}

// The methods that the stub knows, by class and method.
const (
	startOK      = 10<<16 | 11
	tuneOK       = 10<<16 | 31
	openIt       = 10<<16 | 40
	closeIt      = 10<<16 | 50
	channelOpen  = 20<<16 | 10
	channelClose = 20<<16 | 40
	closedOK     = 20<<16 | 41
	exchange     = 40<<16 | 10
	declare      = 50<<16 | 10
	remove       = 50<<16 | 40
	qos          = 60<<16 | 10
	consume      = 60<<16 | 20
	cancelIt     = 60<<16 | 30
	publish      = 60<<16 | 40
	confirm      = 85<<16 | 10
	acknowledge  = 60<<16 | 80
)

var spoken = map[uint32]string{
	channelOpen: "open", channelClose: "close", declare: "declare", remove: "delete", exchange: "exchange", qos: "qos", consume: "consume", cancelIt: "cancel", publish: "publish", closeIt: "bye", acknowledge: "ack",
}

func newStub(t testing.TB) *stub {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stub{t: t, at: at, hold: map[string]chan struct{}{}}
	s.all.Go(func() {
		for {
			c, err := at.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.all.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = at.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		for _, h := range s.hold {
			close(h)
		}
		clear(s.hold)
		s.mu.Unlock()
		s.all.Wait()
	})
	return s
}

// source is a client of the stub.
func (s *stub) source() *Source {
	src, err := New(Config{URLs: []string{"amqp://" + s.at.Addr().String()}, EagerStart: true, Prefetch: 10, Heartbeat: time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = src.Close() })
	return src
}

// reader opens the queue, and returns when the queue is consumed.
func (s *stub) reader(src *Source) *reader {
	s.t.Helper()
	r := open(s.t, src, "q")
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _, _ = r.Fetch(ctx, 1) }()
	waittest.Until(s.t, "the queue is consumed", func() bool { c, _, _ := s.last(); return c != nil })
	cancel()
	<-done
	return r
}

// holding lets a method wait for its answer until the returned function is called.
func (s *stub) holding(method string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := make(chan struct{})
	s.hold[method] = h
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.hold[method] == h {
			delete(s.hold, method)
			close(h)
		}
	}
}

// heard is what clients said so far.
func (s *stub) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

// names are those of all connections so far.
func (s *stub) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.named)
}

func (s *stub) waitFor(what string) {
	s.t.Helper()
	waittest.Until(s.t, "the client to say "+what, func() bool { return slices.Contains(s.heard(), what) })
}

// waitForOne waits for a method on any channel.
func (s *stub) waitForOne(method string) {
	s.t.Helper()
	waittest.Until(s.t, "the client to say "+method, func() bool { return s.count(method) > 0 })
}

// count is how often a method was said.
func (s *stub) count(method string) int {
	n := 0
	for _, said := range s.heard() {
		if strings.HasSuffix(said, " "+method) {
			n++
		}
	}
	return n
}

func (s *stub) serve(c net.Conn) {
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 8)); err != nil {
		return
	}
	s.write(c, 1, 0, 10<<16|10, []byte{0, 9}, long(0), longs("PLAIN"), longs("en_US"))
	for {
		head := make([]byte, 7)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(c, rest); err != nil {
			return
		}
		if head[0] != 1 {
			continue // a heartbeat
		}
		channel, method := binary.BigEndian.Uint16(head[1:]), binary.BigEndian.Uint32(rest)
		s.mu.Lock()
		if _, name, ok := bytes.Cut(rest, []byte("connection_nameS")); ok && method == startOK {
			s.named = append(s.named, string(name[4:4+binary.BigEndian.Uint32(name)]))
		}
		s.said = append(s.said, fmt.Sprintf("%d %s", channel, spoken[method]))
		held := s.hold[spoken[method]]
		s.mu.Unlock()
		if held == nil {
			s.answer(c, channel, method, rest[4:])
			continue
		}
		s.all.Go(func() {
			<-held
			s.answer(c, channel, method, rest[4:])
		})
	}
}

func (s *stub) answer(c net.Conn, channel uint16, method uint32, args []byte) {
	switch method {
	case startOK:
		s.write(c, 1, 0, 10<<16|30, []byte{0, 100}, long(1<<17), []byte{0, 60})
	case openIt:
		s.write(c, 1, 0, openIt+1, short(""))
	case closeIt:
		s.write(c, 1, 0, closeIt+1)
	case channelOpen:
		s.write(c, 1, channel, channelOpen+1, longs(""))
	case channelClose:
		s.write(c, 1, channel, closedOK)
	case declare:
		s.write(c, 1, channel, declare+1, short("q"), long(0), long(0))
	case exchange:
		s.write(c, 1, channel, exchange+1)
	case remove:
		s.write(c, 1, channel, remove+1, long(0))
	case confirm:
		s.write(c, 1, channel, confirm+1)
	case publish:
		s.mu.Lock()
		s.publisher, s.publishing = c, channel
		s.mu.Unlock()
	case qos:
		s.write(c, 1, channel, qos+1)
	case consume:
		queue := args[2:]
		tag := queue[1+queue[0]:]
		name := string(tag[1 : 1+tag[0]])
		if options := tag[1+tag[0]+1:]; binary.BigEndian.Uint32(options) > 0 { // only streams have any
			s.write(c, 1, channel, channelClose, []byte{1, 150}, short("rabbit_classic_queue"), long(consume))
			return
		}
		s.mu.Lock()
		s.consumer, s.channel, s.tag = c, channel, name
		s.mu.Unlock()
		s.write(c, 1, channel, consume+1, short(name))
	}
}

// deliver sends a message to the last consumer.
func (s *stub) deliver(tag uint64, body string) { s.send(tag, false, []byte{0, 0}, body) }

// redeliver sends a message that was returned to the queue.
func (s *stub) redeliver(tag uint64, returns byte) {
	s.send(tag, true, headers(slices.Concat(short(headerCount), []byte{'b', returns})), "")
}

// mark sends a marker that names no queues.
func (s *stub) mark(tag uint64) {
	s.send(tag, false, headers(slices.Concat(short(headerMarker), []byte{'S'}, longs(tells))), "")
}

// headers are the properties of a message that has no others.
func headers(table []byte) []byte { return slices.Concat([]byte{1 << 5, 0}, longs(string(table))) }

func (s *stub) send(tag uint64, again bool, properties []byte, body string) {
	c, channel, consumer := s.last()
	redelivered := []byte{0}
	if again {
		redelivered[0] = 1
	}
	s.write(c, 1, channel, 60<<16|60, short(consumer), binary.BigEndian.AppendUint64(nil, tag), redelivered, short(""), short("q"))
	s.write(c, 2, channel, 60<<16, binary.BigEndian.AppendUint64(nil, uint64(len(body))), properties)
	if body != "" {
		s.frame(c, 3, channel, []byte(body))
	}
}

// confirm confirms the first message that was published.
func (s *stub) confirm() {
	var c net.Conn
	var channel uint16
	waittest.Until(s.t, "something is published", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		c, channel = s.publisher, s.publishing
		return c != nil
	})
	s.write(c, 1, channel, acknowledge, binary.BigEndian.AppendUint64(nil, 1), []byte{0})
}

// cancel ends the last consumer.
func (s *stub) cancel() (channel uint16) {
	c, channel, consumer := s.last()
	s.write(c, 1, channel, 60<<16|30, short(consumer), []byte{1})
	return channel
}

// last is the last consumer.
func (s *stub) last() (net.Conn, uint16, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.consumer, s.channel, s.tag
}

func (s *stub) write(c net.Conn, kind byte, channel uint16, method uint32, args ...[]byte) {
	s.frame(c, kind, channel, slices.Concat(append([][]byte{long(method)}, args...)...))
}

func (s *stub) frame(c net.Conn, kind byte, channel uint16, payload []byte) {
	b := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	b = append(append(b, longs(string(payload))...), 0xCE)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = c.Write(b) // who is gone reads nothing
}

func long(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

func longs(text string) []byte { return append(long(uint32(len(text))), text...) }

func short(text string) []byte { return append([]byte{byte(len(text))}, text...) }

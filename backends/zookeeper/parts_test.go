package zookeeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// A renewal counts when the leader has heard of one before it, no longer before it than the TTL is shorter than the timeout.
func TestLeaseCountsFromWhatTheLeaderHasHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lease{timeout: 10 * time.Second}
		opened := time.Now()
		sleep := func(d time.Duration) { <-time.After(d) }
		ask := func(want bool, what string) {
			t.Helper()
			if got := l.assured(time.Now(), opened); got != want {
				t.Fatalf("%s: assured is %v", what, got)
			}
		}
		if l.ttl() != 8*time.Second {
			t.Fatalf("ttl %v", l.ttl())
		}
		sleep(2 * time.Second)
		ask(true, "as the session is young")
		sleep(time.Millisecond)
		ask(false, "nothing was sent since it was opened")
		sent := time.Now()
		sleep(10 * time.Millisecond)
		l.add(sent)
		sleep(time.Second - time.Millisecond)
		ask(false, "the leader may not have heard of the last request")
		if got := l.wait(); got != time.Millisecond {
			t.Fatalf("it is to wait for %v", got)
		}
		sleep(time.Millisecond)
		ask(true, "it has")
		sleep(990 * time.Millisecond)
		ask(true, "2 s after it was sent")
		sleep(time.Millisecond)
		ask(false, "more than 2 s after it was sent")
		for range 100 {
			sent := time.Now()
			sleep(time.Second)
			l.add(sent)
		}
		if len(l.touches) > 11 {
			t.Fatalf("%d requests are remembered", len(l.touches))
		}
		sent = time.Now()
		sleep(1100 * time.Millisecond)
		l.add(sent)
		sleep(950 * time.Millisecond)
		ask(false, "an answer that took more than a tenth")
	})
}

func TestVersionsOfIncarnations(t *testing.T) {
	t.Parallel()
	r := record{id: "c", era: era{"c", 50, 9000}, earlier: []era{{"a", 10, 1000}, {"b", 100, 2000}}}
	for zxid, want := range map[int64]int64{50: 9000, 51: 9001, 40: 1030, 10: 1000, 120: 9070} {
		if got := r.version(zxid); got != want {
			t.Errorf("version of %d is %d, want %d", zxid, got, want)
		}
	}
	if !r.descends("a") || r.descends("c") || r.descends("d") {
		t.Error("descent")
	}
}

func TestEntriesAreRead(t *testing.T) {
	t.Parallel()
	for session, value := range map[string]string{"": "", "session": "value", "s": ""} {
		e, err := decode("k", znode{there: true, data: encode(session, []byte(value))})
		if err != nil || e.session != session || string(e.value) != value || e.deleted() {
			t.Errorf("%q of %q: %+v, %v", value, session, e, err)
		}
	}
	for _, z := range []znode{{}, {there: true}} {
		if e, err := decode("k", z); err != nil || !e.deleted() {
			t.Errorf("%+v: %+v, %v", z, e, err)
		}
	}
	for _, bad := range [][]byte{{2, 0}, {1}, {1, 5, 'a'}, []byte("text")} {
		if _, err := decode("k", znode{there: true, data: bad}); !errors.Is(err, backends.ErrFatal) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// frames are read right however the network cuts them up.
func TestWireReadsAlong(t *testing.T) {
	t.Parallel()
	frame := func(body ...any) []byte {
		var b bytes.Buffer
		for _, v := range body {
			if err := binary.Write(&b, binary.BigEndian, v); err != nil {
				t.Fatal(err)
			}
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
	}
	password := make([]byte, 21)
	stream := frame(int32(0), int32(4000), int64(77), password)
	stream = append(stream, frame(int32(-2), int64(500), int32(0))...)
	stream = append(stream, frame(int32(1), int64(501), int32(0), make([]byte, 100))...)
	stream = append(stream, frame(int32(-1), int64(-1), int32(0), []byte("watch"))...)
	stream = append(stream, frame(int32(2), int64(499), int32(-101))...)
	for size := 1; size <= len(stream); size++ {
		s := &Store{}
		l := &link{s: s, changed: make(chan struct{})}
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			for from := 0; from < len(stream); from += size {
				_, _ = there.Write(stream[from:min(from+size, len(stream))])
			}
		}()
		w := newWire(l, here, "server", time.Minute)
		got, err := io.ReadAll(w)
		if err != nil || !bytes.Equal(got, stream) {
			t.Fatalf("pieces of %d: %v", size, err)
		}
		if l.granted != 4*time.Second || l.session != 77 || s.high != 501 || !l.direct.Equal(w.opened) {
			t.Fatalf("pieces of %d: granted %v, session %d, transaction %d", size, l.granted, l.session, s.high)
		}
	}
}

func TestWireTellsAHandshakeThatWasBrokenOff(t *testing.T) {
	t.Parallel()
	l := &link{s: &Store{}, changed: make(chan struct{}), session: 5}
	here, there := net.Pipe()
	_ = there.Close()
	if _, err := newWire(l, here, "server", time.Minute).Read(make([]byte, 4)); err == nil || !l.behind {
		t.Fatalf("%v, behind: %v", err, l.behind)
	}
}

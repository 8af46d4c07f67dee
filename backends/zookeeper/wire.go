package zookeeper

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"
)

// wire is one TCP connection of a link. It reads along what the client library does not tell: the timeout that the server granted,
// a handshake that the server broke off, and the transaction that each reply was as new as.
type wire struct {
	net.Conn
	in     *bufio.Reader // the library reads each reply in two pieces
	l      *link
	server string
	opened time.Time // just before the request for a session was sent
	shook  atomic.Bool

	// Of the frame that is being read, by the one goroutine that reads.
	size [4]byte
	head [16]byte
	have int // bytes of the frame so far, with its size
	left int // bytes of it that are still to come, once have ≥ 4
}

func newWire(l *link, conn net.Conn, server string, patience time.Duration) *wire {
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &wire{Conn: conn, in: bufio.NewReaderSize(conn, 16<<10), l: l, server: server, opened: time.Now()}
}

// SetReadDeadline and its kin leave the deadline of the handshake alone: the library would wait for it for several timeouts of the session.
func (w *wire) SetReadDeadline(t time.Time) error {
	if !w.shook.Load() {
		return nil
	}
	return w.Conn.SetReadDeadline(t)
}

func (w *wire) SetWriteDeadline(t time.Time) error {
	if !w.shook.Load() {
		return nil
	}
	return w.Conn.SetWriteDeadline(t)
}

func (w *wire) SetDeadline(t time.Time) error {
	if !w.shook.Load() {
		return nil
	}
	return w.Conn.SetDeadline(t)
}

// Write is called once for each request.
func (w *wire) Write(b []byte) (int, error) {
	if count := w.l.s.counted.Load(); count != nil && len(b) >= 12 && w.shook.Load() {
		(*count)(int32(binary.BigEndian.Uint32(b[8:12])))
	}
	return w.Conn.Write(b)
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.in.Read(b)
	w.feed(b[:n])
	if err != nil && !w.shook.Load() {
		w.l.brokenOff(w, err)
	}
	return n, err
}

// feed looks at the first bytes of each frame.
func (w *wire) feed(b []byte) {
	for len(b) > 0 {
		var n int
		switch {
		case w.have < 4:
			n = copy(w.size[w.have:], b)
			if w.have+n == 4 {
				w.left = int(binary.BigEndian.Uint32(w.size[:]))
			}
		case w.have < 20 && w.left > 0:
			n = min(copy(w.head[w.have-4:], b), w.left)
			w.left -= n
		default:
			n = min(len(b), w.left)
			w.left -= n
		}
		w.have += n
		b = b[n:]
		if w.have >= 4 && w.left <= 0 {
			w.frame(w.have >= 20)
			w.have = 0
		}
	}
}

// frame is called at the end of each frame. The first one answers the request for a session; the others are replies.
func (w *wire) frame(whole bool) {
	if w.shook.Load() {
		if whole {
			w.l.s.sawZxid(w.l.seen.Load(), int64(binary.BigEndian.Uint64(w.head[4:12])))
		}
		return
	}
	w.shook.Store(true)
	_ = w.Conn.SetDeadline(time.Time{})
	if whole {
		granted := time.Duration(binary.BigEndian.Uint32(w.head[4:8])) * time.Millisecond
		w.l.shook(w, granted, int64(binary.BigEndian.Uint64(w.head[8:16])))
	}
}

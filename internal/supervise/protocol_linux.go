package supervise

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// What the parent and the supervisor tell each other, over a pair of connected sockets: a length and JSON. Arguments and
// environment are bytes, since they need not be UTF-8.
type frame struct {
	Op    string   `json:"op"`
	Path  string   `json:"path,omitempty"`  // run: the executable
	Args  [][]byte `json:"args,omitempty"`  // run
	Env   [][]byte `json:"env,omitempty"`   // run
	Until Moment   `json:"until,omitempty"` // run, trust
	After int64    `json:"after,omitempty"` // stop: nanoseconds from TERM to KILL
	Wait  uint32   `json:"wait,omitempty"`  // done: the command's wait status
	Why   Why      `json:"why,omitempty"`   // done
	Err   string   `json:"err,omitempty"`   // done: the command could not be started
	Errno uintptr  `json:"errno,omitempty"` // done: with Err
}

const (
	opRun   = "run"   // parent: start a command; three files come along: its stdin, the other end of it, its stderr
	opTrust = "trust" // parent: work until then
	opBody  = "body"  // parent: the body is complete
	opStop  = "stop"  // parent: TERM, later KILL
	opDone  = "done"  // supervisor: the command and all its descendants are gone
)

const (
	runFiles = 3
	maxFrame = 8 << 20 // above what the kernel takes as arguments and environment
)

// wire is one end of the connection. One goroutine receives; any may send.
type wire struct {
	conn *net.UnixConn
	mu   sync.Mutex // one frame at a time
	fds  []int      // received and not yet taken
}

// sendTimeout bounds how long a frame may take: the other side reads at all times unless it is stopped.
const sendTimeout = 2 * time.Second

func (w *wire) send(f frame, fds ...int) error {
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode %s: %w", f.Op, err)
	}
	if len(b) > maxFrame {
		return fmt.Errorf("%s of %d bytes: %w", f.Op, len(b), unix.E2BIG)
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b)))
	msg = append(msg, b...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	if len(fds) > 0 {
		// The files travel with the first byte, so that they have arrived when the frame has.
		if _, _, err := w.conn.WriteMsgUnix(msg[:1], unix.UnixRights(fds...), nil); err != nil {
			return err
		}
		msg = msg[1:]
	}
	_, err = w.conn.Write(msg)
	return err
}

// receive returns the next frame and the files that came with it; io.EOF when the other side is gone.
func (w *wire) receive() (frame, []int, error) {
	var f frame
	var head [4]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return f, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return f, nil, fmt.Errorf("frame of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(w, b); err != nil {
		return f, nil, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, nil, err
	}
	fds := w.fds
	w.fds = nil
	return f, fds, nil
}

// Read takes in bytes, and files on the side.
func (w *wire) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(runFiles*4))
	n, oobn, _, _, err := w.conn.ReadMsgUnix(p, oob) // marks received files close-on-exec
	if oobn > 0 {
		w.fds = append(w.fds, rights(oob[:oobn])...)
	}
	if err != nil {
		return n, err
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func rights(oob []byte) []int {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var fds []int
	for i := range msgs {
		if got, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

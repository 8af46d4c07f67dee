package ftp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The client library reads whole directories, and removes an empty directory where a file was asked for. tap sits between
// it and the server and lets single requests of our own through, by identifiers that the library does not reach.
type tap struct {
	from io.Reader
	to   io.WriteCloser

	// Of the library's reading goroutine alone.
	head [9]byte // length, type and identifier of a packet
	have []byte  // what of head the library has not read
	left uint32  // what of the packet follows

	mu     sync.Mutex
	last   uint32
	waits  chan packet // for last; nil: nobody waits
	broken error
}

const (
	ownIDs = 1 << 31 // the library counts from 1
	// maxReply bounds a page of a directory. Some servers send a whole directory as one.
	maxReply = 64 << 20

	typeVersion = 2
)

type packet struct {
	kind byte
	data []byte // without length, type and identifier
}

var errMalformed = errors.New("the server sent a malformed packet")

// Read gives the library the packets that are not ours, as they come and without a copy.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.read(p)
	if err != nil {
		t.fail(err)
	}
	return n, err
}

func (t *tap) read(p []byte) (int, error) {
	for len(t.have) == 0 && t.left == 0 {
		if _, err := io.ReadFull(t.from, t.head[:]); err != nil {
			return 0, err
		}
		length := binary.BigEndian.Uint32(t.head[:])
		if length < 5 {
			return 0, errMalformed
		}
		id := binary.BigEndian.Uint32(t.head[5:])
		if t.head[4] == typeVersion || id < ownIDs {
			t.have, t.left = t.head[:], length-5
			break
		}
		if length > maxReply {
			return 0, fmt.Errorf("the server sent a reply of %d bytes, more than %d", length, maxReply)
		}
		own := packet{t.head[4], make([]byte, length-5)}
		if _, err := io.ReadFull(t.from, own.data); err != nil {
			return 0, err
		}
		if err := t.deliver(id, own); err != nil {
			return 0, err
		}
	}
	if len(t.have) > 0 {
		n := copy(p, t.have)
		t.have = t.have[n:]
		return n, nil
	}
	n, err := t.from.Read(p[:min(uint64(len(p)), uint64(t.left))])
	t.left -= uint32(n)
	return n, err
}

func (t *tap) deliver(id uint32, own packet) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits == nil || id != t.last {
		return errMalformed
	}
	t.waits <- own // it has room for one
	t.waits = nil
	return nil
}

// fail ends a request of ours that waits, and all later ones.
func (t *tap) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		t.broken = err
	}
	if t.waits != nil {
		close(t.waits)
		t.waits = nil
	}
}

// request sends one packet and waits for its reply. While it runs the library has no request under way.
func (t *tap) request(kind byte, fields ...string) (packet, error) {
	waits := make(chan packet, 1)
	t.mu.Lock()
	if err := t.broken; err != nil {
		t.mu.Unlock()
		return packet{}, err
	}
	t.last = ownIDs | (t.last + 1)
	t.waits = waits
	b := append(make([]byte, 4, 64), kind)
	b = binary.BigEndian.AppendUint32(b, t.last)
	t.mu.Unlock()
	for _, f := range fields {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if _, err := t.to.Write(b); err != nil {
		t.fail(err)
		return packet{}, err
	}
	reply, ok := <-waits
	if !ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		return packet{}, t.broken
	}
	return reply, nil
}

// Write sends what the library sends.
func (t *tap) Write(p []byte) (int, error) { return t.to.Write(p) }

// Close ends what is sent.
func (t *tap) Close() error { return t.to.Close() }

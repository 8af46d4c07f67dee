package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// proofs are the proofs that the process of a session lives: locks on one byte each of the folder, far beyond what anybody
// else locks, all held by one descriptor of the store. The kernel frees them when the last process that has the descriptor is
// gone. It is opened with the store and never again, and children inherit it: a command that was started under an
// earlier session of the store, and outlives its parent, still counts. Locks of this kind go neither with another descriptor
// of the folder that is closed, nor with the file when it is opened again.
type proofs struct {
	dir string
	id  fileID // of the folder that fd is open on

	mu     sync.Mutex
	fd     int                     // not an *os.File: it must not go with an object that nobody refers to; -1: there is none
	held   map[int64]time.Duration // the ttl of the session behind each byte
	closed bool
}

// openProofs gives proofs without a descriptor when there can be none.
func openProofs(path string) *proofs {
	p := &proofs{dir: filepath.Dir(path), fd: -1, held: map[int64]time.Duration{}}
	if fd, err := unix.Open(p.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil {
		p.fd, p.id = fd, identifyOpen(fd)
	}
	return p
}

// identifyOpen is the zero fileID, which is no folder's, when it cannot tell.
func identifyOpen(fd int) fileID {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return fileID{}
	}
	return fileID{uint64(st.Dev), st.Ino}
}

// give locks a byte and names it, for a session of that ttl. The name is "" when there is no lock to be had, or the path names
// another folder by now: then nothing can ever be proved.
func (p *proofs) give(ttl time.Duration) (name string, release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, err := identify(p.dir); p.closed || p.fd < 0 || err != nil || id != p.id {
		return "", func() {}
	}
	offset := 1<<60 | rand.Int64N(1<<60)
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: offset, Len: 1}
	if err := unix.FcntlFlock(uintptr(p.fd), unix.F_OFD_SETLK, &lock); err != nil {
		return "", func() {}
	}
	p.held[offset] = ttl
	return fmt.Sprintf("%v:%d", p.id, offset), func() { p.release(offset) }
}

// release frees a byte, once.
func (p *proofs) release(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, held := p.held[offset]; !held {
		return
	}
	delete(p.held, offset)
	if p.fd >= 0 {
		lock := unix.Flock_t{Type: unix.F_UNLCK, Start: offset, Len: 1}
		_ = unix.FcntlFlock(uintptr(p.fd), unix.F_OFD_SETLK, &lock)
	}
}

// close ends the proofs when no session can be alive any more: handlers may still run after the store was closed.
func (p *proofs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	longest := time.Duration(0)
	for _, ttl := range p.held {
		longest = max(longest, ttl)
	}
	if longest > 0 {
		time.AfterFunc(longest, p.drop)
		return
	}
	p.dropLocked()
}

func (p *proofs) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked()
}

func (p *proofs) dropLocked() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}

// dead tells whether nobody holds the byte of that name any more. Not when the folder is another one: then nothing is
// proved. It looks through a descriptor of its own, to which locks of this very process are somebody's too.
func (p *proofs) dead(name string) bool {
	var was fileID
	var offset int64
	if n, err := fmt.Sscanf(name, "%d:%d:%d", &was.dev, &was.ino, &offset); err != nil || n != 3 {
		return false
	}
	fd, err := unix.Open(p.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if identifyOpen(fd) != was {
		return false
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: offset, Len: 1}
	err = unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type == unix.F_UNLCK
}

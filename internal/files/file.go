package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// part is one file of a message.
type part struct {
	name string
	as   string // what it was renamed to when it was claimed; "" for its own name
	info Info
}

// at is the name that the file has in the place.
func (p *part) at() string {
	if p.as != "" {
		return p.as
	}
	return p.name
}

// file is one message that was listed: a file, or a set with the other members in more.
type file struct {
	part
	more       []part
	beside     []beside // its done-file and checksum files, as they were observed with it
	observed   bool
	unreleased bool      // it was reported that its done-file does not count
	fresh      bool      // the last listing has said what it is, and that need not be checked before it is delivered
	due        time.Time // not delivered before, whatever else holds
	stable     time.Time // when the second observation is due
	absent     time.Time // since when listings lack it, while it is remembered
	failures   int       // of Stat, in a row
	refused    int       // how often in a row it could not be claimed or given up
	attempt    int
	mark       mark // of the names that its files were moved to
	settling   bool // by Settle; guarded by Reader.mu, as what follows
	handed     bool // it is in a handler's hand, which may open it
	opens      []*content
}

// parts are the files of the message, the leader last.
func (f *file) parts() iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for i := range f.more {
			if !yield(&f.more[i]) {
				return
			}
		}
		yield(&f.part)
	}
}

// all are the files of the message and what stands beside them.
func (f *file) all() iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for p := range f.parts() {
			if !yield(p) {
				return
			}
		}
		for i := range f.beside {
			if !yield(&f.beside[i].part) {
				return
			}
		}
	}
}

// same reports whether the files of the message, and what stands beside them, are the same ones still.
func (f *file) same(infos []Info) bool {
	i := 0
	for p := range f.all() {
		if !p.info.Same(infos[i]) {
			return false
		}
		i++
	}
	return true
}

// empty reports whether no file of the message has content.
func (f *file) empty() bool {
	for p := range f.parts() {
		if p.info.Size > 0 {
			return false
		}
	}
	return true
}

// identify makes the ID of a message from what cannot change without its being another.
func (f *file) identify() string {
	id := identify(f.name, f.info)
	if len(f.more) == 0 {
		return id
	}
	h := sha256.New()
	for i := range f.more {
		fmt.Fprintf(h, "%q %s\n", f.more[i].name, identify("", f.more[i].info))
	}
	return id + "+" + hex.EncodeToString(h.Sum(nil)[:8])
}

// message makes what a handler is given.
func (r *Reader) message(f *file) *rebalancer.Message {
	m := &rebalancer.Message{
		Resource: r.resource, ID: f.identify(), Key: f.name, Size: f.info.Size, Attempt: f.attempt,
		Published: f.info.ModTime, Fence: r.fence, Native: f.info.Native, Stream: r.stream(f, f.part),
	}
	for _, p := range f.more {
		m.Members = append(m.Members, rebalancer.Member{
			Key: p.name, Size: p.info.Size, Published: p.info.ModTime, Native: p.info.Native, Stream: r.stream(f, p),
		})
	}
	return m
}

func (r *Reader) stream(f *file, p part) func(context.Context) (io.ReadCloser, error) {
	sum := f.checksumOf(p.name)
	return func(ctx context.Context) (io.ReadCloser, error) { return r.open(ctx, f, p, sum) }
}

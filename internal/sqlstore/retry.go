package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrRecord says that the record of the data is absent, or of another server or another copy of the data: once it is written anew the same
// call is to be tried again.
var ErrRecord = errors.New("the record of the data is not of this server")

const (
	mostTries   = 12
	firstWait   = 5 * time.Millisecond
	longestWait = 200 * time.Millisecond
)

// Refused is an error of the one who asked for a transaction, not of the server: the connection is well.
type Refused struct{ error }

// Refuse makes err, which is not nil, a Refused.
func Refuse(err error) Refused { return Refused{err} }

// Unwrap gives the error itself.
func (r Refused) Unwrap() error { return r.error }

// IsRefused tells whether err is, or wraps, a Refused.
func IsRefused(err error) bool {
	var r Refused
	return errors.As(err, &r)
}

// Number is one number for these names, alike in all processes, for locks that databases name by numbers.
func Number(names ...string) uint64 {
	h := sha256.New()
	for _, n := range names {
		fmt.Fprintf(h, "%d %s ", len(n), n)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// Persist calls try again for as long as repeats says that this can help, at most 12 times and until ctx ends, and gives its last error. It waits
// in between: 5 ms, doubling to 200 ms, in part left to chance. After ErrRecord it is always called again.
func Persist(ctx context.Context, repeats func(error) bool, try func() error) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := try()
		if err == nil || n >= mostTries || ctx.Err() != nil || !errors.Is(err, ErrRecord) && !repeats(err) {
			return err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return err
		}
		wait = min(2*wait, longestWait)
	}
}

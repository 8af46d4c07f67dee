//go:build !linux

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

type fileID struct{ dev, ino uint64 }

func (id fileID) String() string { return fmt.Sprintf("%d:%d", id.dev, id.ino) }

var errPlatform = errors.New("the clock since boot and the folder's lock are not known on this system")

func identify(string) (fileID, error)                      { return fileID{}, errPlatform }
func measure(string) (fileID, int64, error)                { return fileID{}, 0, errPlatform }
func missing(string) (bool, error)                         { return false, errPlatform }
func sinceBoot() (int64, error)                            { return 0, errPlatform }
func bootID() string                                       { return "" }
func lockShared(context.Context, string) (*os.File, error) { return nil, errPlatform }

func lockToMake(context.Context, string, bool) (*os.File, bool, error) {
	return nil, false, errPlatform
}

func checkPlace(string) error {
	return fmt.Errorf("%w: the SQLite store runs on Linux only, not on %s", backends.ErrFatal, runtime.GOOS)
}

type proofs struct{}

func openProofs(string) *proofs                     { return &proofs{} }
func (*proofs) give(time.Duration) (string, func()) { return "", func() {} }
func (*proofs) dead(string) bool                    { return false }
func (*proofs) close()                              {}

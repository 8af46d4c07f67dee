package files

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

const (
	// DefaultStableFor is how long a file must stay the same before it is delivered.
	DefaultStableFor = time.Second
	// DefaultInterval is the time between two listings while files come.
	DefaultInterval = time.Second
	// DefaultIdleInterval is what that time grows to while none do.
	DefaultIdleInterval = 3 * time.Second
)

// Options are what the sources built on the engine let their users choose.
type Options struct {
	StableFor    time.Duration // 0: the default; negative: none
	MinAge       time.Duration
	Interval     time.Duration // 0: the default
	IdleInterval time.Duration // 0: the default, or Interval if that is longer
	Ignore       []string      // path.Match patterns; nil: DefaultIgnore
	DoneFile     string        // "*" stands for the name; "": none
	ChecksumFile string        // the same
	Trigger      string        // "": none
	Set          []string      // patterns with one *; the first leads
	Empty        pickup.Empty
	Claim        bool // rename before a file is handed out; for places that are Renamers
	Parallel     int  // settlements at once; 0: 1
	Deep         bool // names may have slashes
	ByTime       bool
	Strict       bool
	Success      Folder // "": delete, unless Keep
	Failed       Folder // "": no dead-letter place, unless FailedKeep
	Keep         bool   // what succeeded stays where it is
	FailedKeep   bool   // what failed stays where it is
	SuccessTag   Label  // with Keep
	FailedTag    Label  // with FailedKeep
	LocalTags    bool   // Info.Tag is of this machine, and no part of what is remembered of a file that stays
	Logger       *slog.Logger

	companions []companion
	set        []star
	claims     claims
}

// Label is a tag of an object; the zero Label is none.
type Label struct{ Key, Value string }

// DefaultIgnore are the names that are never messages unless Options say otherwise: hidden files and the usual names of
// uploads in progress.
func DefaultIgnore() []string {
	return []string{".*", "*.tmp", "*.part", "*.partial", "*.filepart", "*.crdownload"}
}

// Complete fills in the defaults and returns all that is wrong.
func (o *Options) Complete() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, d := range []struct {
		name string
		got  time.Duration
	}{{"MinAge", o.MinAge}, {"Interval", o.Interval}, {"IdleInterval", o.IdleInterval}} {
		if d.got < 0 {
			bad("%s is %v, must not be negative", d.name, d.got)
		}
	}
	switch {
	case o.StableFor == 0:
		o.StableFor = DefaultStableFor
	case o.StableFor < 0:
		o.StableFor = 0
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.IdleInterval == 0 {
		o.IdleInterval = max(DefaultIdleInterval, o.Interval)
	} else if o.IdleInterval < o.Interval {
		bad("IdleInterval is %v, must not be below Interval (%v)", o.IdleInterval, o.Interval)
	}
	if o.Ignore == nil {
		o.Ignore = DefaultIgnore()
	}
	o.Ignore = slices.Clone(o.Ignore)
	for _, p := range o.Ignore {
		if _, err := path.Match(p, ""); err != nil {
			bad("Ignore has %q, which is no pattern of path.Match", p)
		}
	}
	errs = append(errs, o.complete()...)
	if o.Empty == pickup.EmptyReject && o.Failed == "" && !o.FailedKeep {
		bad("Empty is EmptyReject, but OnFailure is not set")
	}
	if o.Empty < pickup.EmptyDeliver || o.Empty > pickup.EmptyReject {
		bad("Empty is %d, must be EmptyDeliver, EmptyWait or EmptyReject", o.Empty)
	}
	o.claims.on = o.Claim
	o.Parallel = max(o.Parallel, 1)
	if o.Success != "" && o.Success == o.Failed {
		bad("the folders of successes and failures are both %q, must differ", string(o.Success))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

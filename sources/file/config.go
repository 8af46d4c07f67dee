package file

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// Config says which files are messages and what becomes of them. Root and OnSuccess are required; the zero value of
// every other field is a working default.
type Config struct {
	// Root is the directory below which resources are: a resource is the path of a directory, relative to Root ("in",
	// "eu/orders"), or "." for Root itself. Only the files of a directory are its messages, not those of directories in it.
	Root string
	// OnSuccess is what becomes of a file whose handler succeeded: Delete() or MoveTo(folder).
	OnSuccess Action
	// OnFailure is what becomes of a file that is given up: MoveTo(folder), with the reason in a file beside it.
	// Defaults to none: such a file stays and is tried again.
	OnFailure Action

	// StableFor is how long a file must not change, seen by two observations, before it is delivered. Defaults to 1 s; a
	// negative value turns the check off, for directories into which files are only renamed.
	StableFor time.Duration
	// MinAge is how old a file must be, by its modification time. Defaults to 0.
	MinAge time.Duration
	// Ignore are patterns (path.Match) of names that are no messages. Defaults to hidden files and usual names of uploads
	// in progress: .* *.tmp *.part *.partial *.filepart *.crdownload. An empty list that is not nil ignores nothing.
	Ignore []string
	// DoneFile is the name of a second file that says that the first is complete, with * for the name of the first
	// ("*.done"). A file is then delivered only when its done-file is there, and the done-file leaves with it.
	// Defaults to none.
	DoneFile string
	// Order is the order of deliveries. Defaults to ByName.
	Order Order
	// StrictOrder lets a file that is not ready yet (unstable, or waiting for a retry) hold up those after it. Defaults to
	// false: it is passed over and comes when it is ready.
	StrictOrder bool
	// Interval is the time between two listings of a directory while files come. It grows while a listing takes long, so
	// that listings use at most a twentieth of the time. Defaults to 1 s.
	Interval time.Duration
	// IdleInterval is what Interval grows to while no files come. Defaults to 3 s, or Interval if that is longer.
	IdleInterval time.Duration
	// Logger is told what nobody else learns: a file that changed or vanished under its handler, a directory that another
	// group works too. Defaults to none.
	Logger *slog.Logger
}

// Order is the order in which the files of a directory are delivered.
type Order int

const (
	// ByName delivers by the bytes of the names.
	ByName Order = iota
	// ByTime delivers by modification time, then by name. Each file must be looked at before the first is delivered.
	ByTime
)

// Action is what becomes of a file: Delete or MoveTo. The zero Action is none.
type Action struct {
	kind   actionKind
	folder string
}

type actionKind int

const (
	actionNone actionKind = iota
	actionDelete
	actionMove
)

// Delete removes the file.
func Delete() Action { return Action{kind: actionDelete} }

// MoveTo moves the file into a folder, which is made when it is missing. A relative folder is inside the resource's own
// directory and cannot lead out of it. An absolute one may be anywhere, also on another device; the files of a resource
// go to the path of the resource below it. Nothing is overwritten: a file whose name is taken there gets the time into
// its name.
func MoveTo(folder string) Action { return Action{kind: actionMove, folder: folder} }

// settings are a checked Config.
type settings struct {
	root    string // absolute
	options files.Options
	logger  *slog.Logger
}

// check returns what New needs, or all violations.
func (c Config) check() (settings, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("file: "+format, args...)) }
	s := settings{logger: c.Logger}
	if c.Root == "" {
		bad("Root is empty, must be a directory")
	} else if root, err := filepath.Abs(c.Root); err != nil {
		bad("Root %q cannot be made absolute: %w", c.Root, err)
	} else {
		s.root = root
	}
	if c.Order != ByName && c.Order != ByTime {
		bad("Order is %d, must be ByName or ByTime", c.Order)
	}
	s.options = files.Options{
		StableFor: c.StableFor, MinAge: c.MinAge, Interval: c.Interval, IdleInterval: c.IdleInterval,
		Ignore: c.Ignore, DoneFile: c.DoneFile, ByTime: c.Order == ByTime, Strict: c.StrictOrder, Logger: c.Logger,
	}
	if c.OnSuccess.kind == actionNone {
		bad("OnSuccess is not set, must be Delete() or MoveTo(folder)")
	}
	if c.OnFailure.kind == actionDelete {
		bad("OnFailure is Delete(), must be MoveTo(folder) or nothing: what failed is not dropped")
	}
	for _, f := range []struct {
		name string
		a    Action
		to   *string
	}{{"OnSuccess", c.OnSuccess, &s.options.Success}, {"OnFailure", c.OnFailure, &s.options.Failed}} {
		if f.a.kind != actionMove {
			continue
		}
		folder, err := cleanFolder(s.root, f.a.folder)
		if err != nil {
			bad("%s moves to %q: %w", f.name, f.a.folder, err)
		}
		*f.to = folder
	}
	if err := s.options.Complete(); err != nil {
		errs = append(errs, fmt.Errorf("file: %w", err))
	}
	if s.logger == nil {
		s.logger = s.options.Logger
	}
	return s, errors.Join(errs...)
}

func cleanFolder(root, folder string) (string, error) {
	switch {
	case folder == "":
		return "", errors.New("the folder must have a name")
	case strings.ContainsRune(folder, 0):
		return "", errors.New("the folder must not contain a zero byte")
	case filepath.IsAbs(folder):
		folder = filepath.Clean(folder)
		if folder == root {
			return "", errors.New("that is Root, files would come again")
		}
		return folder, nil
	}
	folder = path.Clean(filepath.ToSlash(folder))
	if folder == "." || !filepath.IsLocal(filepath.FromSlash(folder)) {
		return "", errors.New("a relative folder must be inside the directory of the resource")
	}
	return folder, nil
}

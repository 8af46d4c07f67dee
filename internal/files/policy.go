package files

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// Can says what the places of a source can do.
type Can struct {
	Keep bool // leave a file and have the group's store remember it
	Tag  bool // the places are Taggers
	// LocalTags says that Info.Tag may be another one on another machine.
	LocalTags bool
	// Rename says that the places are Renamers.
	Rename bool
	// Deep says that a place is a tree, whose names may have slashes.
	Deep bool
	// Parallel is how many settlements the places take at once; 0 for one.
	Parallel int
	// Folder checks the folder of MoveTo, in which layouts of time are between braces, and returns it as the places are
	// given it.
	Folder func(folder string) (string, error)
}

// FromPolicy makes complete Options of what a user chose, or returns all violations.
func FromPolicy(p pickup.Policy, can Can) (Options, error) {
	var errs []error
	o := Options{
		StableFor: p.StableFor, MinAge: p.MinAge, Interval: p.Interval, IdleInterval: p.IdleInterval,
		Ignore: p.Ignore, DoneFile: p.DoneFile, ChecksumFile: p.ChecksumFile, Trigger: p.TriggerFile, Set: slices.Clone(p.Set),
		Empty: p.Empty, Claim: p.ClaimByRename, Parallel: can.Parallel, Deep: can.Deep, LocalTags: can.LocalTags,
		ByTime: p.Order == pickup.ByTime, Strict: p.StrictOrder, Logger: p.Logger,
	}
	if p.ClaimByRename && !can.Rename {
		errs = append(errs, errors.New("ClaimByRename is set, which this source cannot do: it has no rename"))
	}
	if p.Order != pickup.ByName && p.Order != pickup.ByTime {
		errs = append(errs, fmt.Errorf("the Order is %d, must be ByName or ByTime", p.Order))
	}
	switch p.OnSuccess.Kind() {
	case pickup.None:
		errs = append(errs, fmt.Errorf("OnSuccess is not set, must be %s", can.actions("Delete()")))
	case pickup.Deletes:
	default:
		errs = append(errs, can.action("OnSuccess", p.OnSuccess, &o.Success, &o.Keep, &o.SuccessTag))
	}
	switch p.OnFailure.Kind() {
	case pickup.None:
	case pickup.Deletes:
		errs = append(errs, fmt.Errorf("OnFailure is Delete(), must be %s: what failed is not dropped", can.actions("nothing")))
	default:
		errs = append(errs, can.action("OnFailure", p.OnFailure, &o.Failed, &o.FailedKeep, &o.FailedTag))
	}
	if o.Claim && (o.Keep || o.FailedKeep) {
		errs = append(errs, errors.New("ClaimByRename is set, but what was claimed does not stay under its name: use MoveTo(folder) instead of Keep or Tag"))
	}
	errs = append(errs, o.Complete())
	return o, errors.Join(errs...)
}

// actions lists what can be chosen.
func (can Can) actions(other string) string {
	all := []string{other, "MoveTo(folder)"}
	if can.Keep {
		all = append(all, "Keep()")
	}
	if can.Tag {
		all = append(all, "Tag(key, value)")
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// folder checks the folder as it is written and as it is at some time.
func (can Can) folder(given string) (Folder, error) {
	if err := Folder(given).check(); err != nil {
		return "", err
	}
	if _, err := can.Folder(Folder(given).At(time.Unix(0, 0))); err != nil {
		return "", err
	}
	clean, err := can.Folder(given)
	if err != nil {
		return "", err
	}
	return Folder(clean), Folder(clean).check()
}

func (can Can) action(field string, a pickup.Action, folder *Folder, keep *bool, tag *Label) error {
	switch a.Kind() {
	case pickup.Moves:
		clean, err := can.folder(a.Folder())
		if err != nil {
			return fmt.Errorf("%s moves to %q: %w", field, a.Folder(), err)
		}
		*folder = clean
	case pickup.Keeps:
		if !can.Keep {
			return fmt.Errorf("%s is %v, which this source cannot do; use MoveTo(folder)", field, a)
		}
		*keep = true
	case pickup.Tags:
		if !can.Tag {
			return fmt.Errorf("%s is %v, which this source cannot do: only objects have tags", field, a)
		}
		key, value := a.Label()
		if key == "" {
			return fmt.Errorf("%s is %v: the key of a tag must not be empty", field, a)
		}
		*keep, *tag = true, Label{key, value}
	}
	return nil
}

package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

// Renamer is a Place that can give a file another name where it is.
type Renamer interface {
	// Rename gives the file the name as, if it still is want, and never overwrites.
	Rename(ctx context.Context, name string, want Info, as string) error
}

// unclaimTime bounds how long a claim that failed takes to be undone after the caller's context has ended.
const unclaimTime = 5 * time.Second

// claims are the names of files that a group has claimed against outsiders: ours, a hash of the group's name, the fence of the
// owner, the file's own name. The fence is there for owners that have lost the resource and do not know it: a new owner gives
// what it takes over a name of its own, so what an old one still does to the file finds none. The zero value is for groups that do
// not claim.
type claims struct {
	on    bool
	group string // "" for any
	fence string
}

const claimedPrefix = ours + "claimed-"

func claimsOf(group string, fence int64) claims {
	sum := sha256.Sum256([]byte(group))
	return claims{on: true, group: hex.EncodeToString(sum[:4]), fence: strconv.FormatInt(fence, 36)}
}

// as is the name that a file is claimed under.
func (c claims) as(name string) string { return claimedPrefix + c.group + "-" + c.fence + "-" + name }

// original undoes as, for each owner of the group.
func (c claims) original(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, claimedPrefix)
	if !c.on || !ok {
		return "", false
	}
	group, rest, _ := strings.Cut(rest, "-")
	_, name, ok = strings.Cut(rest, "-")
	return name, ok && sound(name) && (c.group == "" || c.group == group)
}

// newer tells whether a claimed name is that of a later owner, who may have the file in hand.
func (c claims) newer(as string) bool {
	_, rest, _ := strings.Cut(strings.TrimPrefix(as, claimedPrefix), "-")
	fence, _, _ := strings.Cut(rest, "-")
	theirs, err := strconv.ParseInt(fence, 36, 64)
	ours, _ := strconv.ParseInt(c.fence, 36, 64)
	return err == nil && theirs > ours
}

// claim renames what is picked and returns what could be.
func (r *Reader) claim(ctx context.Context, picks []*file) []*file {
	renamer, ok := r.place.(Renamer)
	if !r.opt.Claim || !ok {
		return picks
	}
	done := r.act()
	if done == nil {
		return nil
	}
	defer done()
	var claimed, gone []*file
	for _, f := range picks {
		if ctx.Err() != nil {
			break
		}
		err := r.claimOne(ctx, renamer, f)
		switch {
		case err == nil:
			f.refused = 0
			claimed = append(claimed, f)
		case errors.Is(err, fs.ErrNotExist):
			gone = append(gone, f)
			r.noteUnclaimed(f)
		case errors.Is(err, rebalancer.ErrChanged):
			f.observed = false
		case ctx.Err() == nil:
			r.trouble(f, &f.refused, "file cannot be claimed by a rename; tried again later", err)
		}
	}
	r.items = without(r.items, gone)
	return claimed
}

// noteClaimed notes what Close has to give back.
func (r *Reader) noteClaimed(f *file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteListed(f)
}

// noteListed is noteClaimed with mu held, for a file of which a listing says how it is named.
func (r *Reader) noteListed(f *file) {
	if r.claimed == nil { // closed
		return
	}
	delete(r.claimed, f)
	for p := range f.parts() {
		if p.as != "" && !r.opt.claims.newer(p.as) {
			r.claimed[f] = slices.Collect(values(f.parts()))
			return
		}
	}
}

// noteUnclaimed notes that there is nothing to give back.
func (r *Reader) noteUnclaimed(f *file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.claimed, f)
}

func values(parts iter.Seq[*part]) iter.Seq[part] {
	return func(yield func(part) bool) {
		for p := range parts {
			if !yield(*p) {
				return
			}
		}
	}
}

// claimOne renames all files of a message, or none.
func (r *Reader) claimOne(ctx context.Context, renamer Renamer, f *file) error {
	for p := range f.parts() {
		as, from := r.opt.claims.as(p.name), p.at()
		if as == from {
			continue
		}
		err := error(nil)
		if len(as) > MaxName {
			err = fmt.Errorf("its name has %d bytes, and %d is the most for one that is claimed", len(p.name), MaxName-len(as)+len(p.name))
		} else {
			p.as = as // an error does not say that it was not carried out
			r.noteClaimed(f)
			err = renamer.Rename(ctx, from, p.info, as)
		}
		if err != nil {
			return errors.Join(err, r.undo(ctx, renamer, f, p, from))
		}
	}
	return nil
}

// undo gives the files of a message that cannot be claimed their names back. One of them has been renamed, or not.
func (r *Reader) undo(ctx context.Context, renamer Renamer, f *file, failed *part, from string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unclaimTime)
	defer cancel()
	err := r.unclaim(ctx, renamer, f.parts())
	if err == nil && from != failed.name { // an older claim
		old := *failed
		old.as = from
		err = r.unclaim(ctx, renamer, pointers([]part{old}))
	}
	if err == nil {
		r.noteUnclaimed(f)
	}
	return err
}

// unclaim gives the files of a message their names back, whatever they are by now: nothing worked them.
func (r *Reader) unclaim(ctx context.Context, renamer Renamer, parts iter.Seq[*part]) error {
	var errs []error
	for p := range parts {
		if p.as == "" {
			continue
		}
		info, err := r.place.Stat(ctx, p.as)
		if err == nil {
			err = renamer.Rename(ctx, p.as, info, p.name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("give %q its name back: %w", p.name, err))
			continue
		}
		p.as = ""
	}
	return errors.Join(errs...)
}

// unclaimAll gives back what this Reader has not worked. What fails stays claimed, and the next Reader of the group knows
// it.
func (r *Reader) unclaimAll(ctx context.Context, all map[*file][]part) {
	renamer, ok := r.place.(Renamer)
	if !ok {
		return
	}
	for f, parts := range all {
		if err := r.unclaim(ctx, renamer, pointers(parts)); err != nil {
			r.opt.Logger.Warn("claimed file cannot be given back; the next node of the group takes it",
				"resource", r.resource, "file", f.name, "error", err)
		}
	}
}

func pointers(parts []part) iter.Seq[*part] {
	return func(yield func(*part) bool) {
		for i := range parts {
			if !yield(&parts[i]) {
				return
			}
		}
	}
}

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
	"strings"

	"github.com/rebalancer-go/rebalancer"
)

// Renamer is a Place that can give a file another name where it is.
type Renamer interface {
	// Rename gives the file the name as, if it still is want, and never overwrites.
	Rename(ctx context.Context, name string, want Info, as string) error
}

// claims are the names of files that a group has claimed against outsiders: ours, a hash of the group's name, the file's
// own name. The zero value is for groups that do not.
type claims struct {
	on    bool
	group string // "" for any
}

const claimedPrefix = ours + "claimed-"

func claimsOf(group string) claims {
	sum := sha256.Sum256([]byte(group))
	return claims{on: true, group: hex.EncodeToString(sum[:4])}
}

// as is the name that a file is claimed under.
func (c claims) as(name string) string { return claimedPrefix + c.group + "-" + name }

// original undoes as.
func (c claims) original(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, claimedPrefix)
	if !c.on || !ok {
		return "", false
	}
	group, name, ok := strings.Cut(rest, "-")
	return name, ok && sound(name) && (c.group == "" || c.group == group)
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
		case errors.Is(err, rebalancer.ErrChanged):
			f.observed = false
		case ctx.Err() == nil:
			r.trouble(f, &f.refused, "file cannot be claimed by a rename; tried again later", err)
		}
	}
	r.items = without(r.items, gone)
	r.noteClaimed(claimed)
	return claimed
}

// noteClaimed notes what Close has to give back.
func (r *Reader) noteClaimed(all []*file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range all {
		if r.claimed != nil {
			r.claimed[f] = slices.Collect(values(f.parts()))
		}
	}
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
		if p.as != "" {
			continue
		}
		as := r.opt.claims.as(p.name)
		err := error(nil)
		if len(as) > MaxName {
			err = fmt.Errorf("its name has %d bytes, and %d is the most for one that is claimed", len(p.name), MaxName-len(as)+len(p.name))
		} else {
			err = renamer.Rename(ctx, p.name, p.info, as)
		}
		if err != nil {
			return errors.Join(err, r.unclaim(ctx, renamer, f.parts()))
		}
		p.as = as
	}
	return nil
}

// unclaim gives the files of a message their names back.
func (r *Reader) unclaim(ctx context.Context, renamer Renamer, parts iter.Seq[*part]) error {
	var errs []error
	for p := range parts {
		if p.as == "" {
			continue
		}
		err := renamer.Rename(ctx, p.as, p.info, p.name)
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

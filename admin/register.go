package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/coord"
)

const (
	// MaxWeight is the greatest weight that a registered resource can have.
	MaxWeight = 1_000_000

	maxLabels = 32  // that a resource requires or prefers: no node has more
	maxLabel  = 128 // bytes of each side of a label
)

// Registration is a registered resource with what decides where it goes.
type Registration struct {
	Name string
	// Weight is its load beside that of other resources, up to [MaxWeight]. Defaults to 1.
	Weight int
	// Require are labels, as "key=value", that a node must all have to be given the resource. Prefer are those of which it should have
	// any. At most 32 each, of up to 128 bytes each side. Default to none.
	Require, Prefer []string
}

// Register registers resources with their attributes and returns those that were not there before or had others, in the order given:
// the attributes of one that is there are replaced, also by defaults. It fails like [AddResources], and with ErrInvalid for attributes
// that cannot be, and when one resource is named twice.
func Register(ctx context.Context, store backends.Store, group string, resources ...Registration) ([]string, error) {
	want := map[string]coord.Registration{}
	var list []string
	var errs []error
	for _, r := range resources {
		if _, twice := want[r.Name]; twice {
			errs = append(errs, fmt.Errorf("%w: resource %q is named twice", ErrInvalid, r.Name))
		}
		list = append(list, r.Name)
		want[r.Name] = r.coord()
		errs = append(errs, r.check())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register resources: %w", err)
	}
	changed, err := change(ctx, store, group, record(store, KindRegister, attributes(resources)), list, func(name string, have registration) (backends.Txn, bool, error) {
		w := want[name]
		return putRegistration(w, have), have.version == 0 || !sameRegistration(w, have.Registration), nil
	})
	if err != nil {
		return nil, fmt.Errorf("register resources: %w", err)
	}
	return changed, nil
}

// SetWeight gives registered resources another weight (see [Registration]), leaves the labels that they require and prefer as they are, and returns
// those that had another one, in the order given. It fails like [Register], and with ErrRefused when one of them is not registered, and then
// changes none.
func SetWeight(ctx context.Context, store backends.Store, group string, weight int, resources ...string) ([]string, error) {
	rec := record(store, KindWeight, fmt.Sprintf("weight %d", weight))
	var err error
	if weight < 1 || weight > MaxWeight {
		err = fmt.Errorf("%w: weight %d: it must be 1 to %d", ErrInvalid, weight, MaxWeight)
	}
	var changed []string
	if err = errors.Join(err, checkResources(resources)); err == nil {
		changed, err = change(ctx, store, group, rec, resources, func(name string, have registration) (backends.Txn, bool, error) {
			if have.version == 0 {
				return backends.Txn{}, false, fmt.Errorf("%w: resource %q is not registered: add it first", ErrRefused, name)
			}
			r := have.Registration
			r.Weight = Registration{Weight: weight}.coord().Weight
			return putRegistration(r, have), max(have.Weight, 1) != weight, nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("set the weight of resources: %w", err)
	}
	return changed, nil
}

// attributes are those of all of the resources, in words; "" when they differ, or are all defaults.
func attributes(resources []Registration) string {
	var all string
	for i, r := range resources {
		c := r.coord()
		var words []string
		if c.Weight > 1 {
			words = append(words, fmt.Sprintf("weight %d", c.Weight))
		}
		for _, l := range c.Require {
			words = append(words, "requires "+l)
		}
		for _, l := range c.Prefer {
			words = append(words, "prefers "+l)
		}
		if text := shorten(strings.Join(words, ", "), maxReason); i == 0 {
			all = text
		} else if text != all {
			return ""
		}
	}
	return all
}

func sameRegistration(a, b coord.Registration) bool {
	return a.Name == b.Name && max(a.Weight, 1) == max(b.Weight, 1) && slices.Equal(a.Require, b.Require) && slices.Equal(a.Prefer, b.Prefer)
}

// coord is the form in which it stands in the store: equal ones have equal values.
func (r Registration) coord() coord.Registration {
	c := coord.Registration{Name: r.Name, Weight: r.Weight, Require: sortedSet(r.Require), Prefer: sortedSet(r.Prefer)}
	if c.Weight == 1 {
		c.Weight = 0
	}
	return c
}

func sortedSet(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

func (r Registration) check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: resource %q: "+format, append([]any{ErrInvalid, r.Name}, args...)...))
	}
	if r.Weight < 0 || r.Weight > MaxWeight {
		bad("weight %d: it must be 1 to %d", r.Weight, MaxWeight)
	}
	for _, l := range []struct {
		what string
		list []string
	}{{"require", r.Require}, {"prefer", r.Prefer}} {
		if len(l.list) > maxLabels {
			bad("%s has %d labels: at most %d are allowed", l.what, len(l.list), maxLabels)
		}
		keys := map[string]string{}
		for _, label := range l.list {
			key, value, ok := strings.Cut(label, "=")
			if !ok || key == "" || len(key) > maxLabel || len(value) > maxLabel || !utf8.ValidString(label) {
				bad("%s %q: it must be key=value, each side UTF-8 of at most %d bytes, and the key not empty", l.what, label, maxLabel)
			} else if other, twice := keys[key]; twice && other != value && l.what == "require" {
				bad("require %q: no node has two values of %q", label, key)
			}
			keys[key] = value
		}
	}
	return errors.Join(errs...)
}

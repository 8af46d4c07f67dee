// Package storereq checks the requests that every store refuses alike, so that all drivers give the same answer.
package storereq

import (
	"errors"
	"fmt"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

// Open checks the options of a session against the shortest TTL that the store can do. The error wraps ErrInvalid or ErrFatal.
func Open(o backends.SessionOptions, shortest time.Duration) error {
	var errs []error
	if o.Group == "" {
		errs = append(errs, fmt.Errorf("%w: a session needs a group", backends.ErrInvalid))
	}
	if len(o.Group) > backends.MaxKey {
		errs = append(errs, fmt.Errorf("%w: the group's name has %d bytes, the most is %d", backends.ErrInvalid, len(o.Group), backends.MaxKey))
	}
	if o.TTL <= 0 || o.TTL < shortest {
		errs = append(errs, fmt.Errorf("%w: a ttl of %v: this store can do no shorter one than %v", backends.ErrFatal, o.TTL, max(shortest, 1)))
	}
	return errors.Join(errs...)
}

// Keys checks keys that are to be read. The error wraps ErrInvalid.
func Keys(keys []string) error {
	var errs []error
	for _, k := range keys {
		errs = append(errs, key(k))
	}
	return errors.Join(errs...)
}

// Supersede checks the node whose older sessions are to be superseded. The error wraps ErrInvalid: sessions that were opened without
// a name have nothing to do with each other.
func Supersede(node string) error {
	if node == "" {
		return fmt.Errorf("%w: a supersede needs the name of a node", backends.ErrInvalid)
	}
	return nil
}

// Commit checks every transaction of a commit. The error wraps ErrInvalid and names all that is wrong.
func Commit(r backends.CommitRequest) error {
	var errs []error
	for i, t := range r.Txns {
		if err := txn(t); err != nil {
			errs = append(errs, fmt.Errorf("transaction %d of %d: %w", i+1, len(r.Txns), err))
		}
	}
	return errors.Join(errs...)
}

func txn(t backends.Txn) error {
	var errs []error
	for _, c := range t.Checks {
		errs = append(errs, key(c.Key))
		if c.Version < 0 {
			errs = append(errs, fmt.Errorf("%w: a check of %q against version %d", backends.ErrInvalid, c.Key, c.Version))
		}
	}
	written := make(map[string]bool, len(t.Puts)+len(t.Deletes))
	write := func(k string) {
		errs = append(errs, key(k))
		if written[k] {
			errs = append(errs, fmt.Errorf("%w: %q is written twice", backends.ErrInvalid, k))
		}
		written[k] = true
	}
	for _, p := range t.Puts {
		write(p.Key)
		if len(p.Value) > backends.MaxValue {
			errs = append(errs, fmt.Errorf("%w: the value of %q has %d bytes, the most is %d",
				backends.ErrInvalid, p.Key, len(p.Value), backends.MaxValue))
		}
	}
	for _, k := range t.Deletes {
		write(k)
	}
	if t.Grace < 0 {
		errs = append(errs, fmt.Errorf("%w: a grace of %v", backends.ErrInvalid, t.Grace))
	}
	return errors.Join(errs...)
}

func key(k string) error {
	switch {
	case k == "":
		return fmt.Errorf("%w: an empty key", backends.ErrInvalid)
	case len(k) > backends.MaxKey:
		return fmt.Errorf("%w: a key of %d bytes, the most is %d: %.40q…", backends.ErrInvalid, len(k), backends.MaxKey, k)
	}
	return nil
}

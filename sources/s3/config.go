package s3

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// DefaultIdleInterval is what the time between two listings grows to while no objects come: longer than for directories, because listings are
// paid for.
const DefaultIdleInterval = 15 * time.Second

// Config says which objects are messages and what becomes of them. Client, Bucket and OnSuccess are required; the zero value of every other field
// is a working default.
//
// Of the Policy two defaults differ from those of directories. StableFor is 0, which means none: an object appears when it is whole, and a test
// of stability costs a request each. IdleInterval defaults to DefaultIdleInterval. MoveTo takes a relative folder, which is below the resource's own
// prefix; an absolute one ("/archive"), which begins at the root of the bucket; or s3://bucket/folder in another bucket that the same client reaches. To
// the latter two the name of the resource is added.
type Config struct {
	pickup.Policy

	// Client speaks to S3. The caller closes nothing; it is used until Close has returned. Required.
	Client Client
	// Bucket is the name of the bucket, or the ARN of an access point to it. A directory bucket (S3 Express One Zone) is refused: its listings have
	// no order. Through an access point of several regions nothing can be copied, so MoveTo is refused there. Required.
	Bucket string
	// Base is the prefix below which resources are, with or without a slash at its end. Defaults to none: the whole bucket.
	Base string
	// Subtree makes all keys that begin with a resource's prefix its messages, with the rest of the key as their name, slashes included. Patterns of
	// Ignore are then held against the last part of the name. Defaults to false: only keys without a further slash are messages, as in a directory.
	Subtree bool
	// Deletion says how an object is deleted only if it is unchanged. Defaults to DeleteProbed.
	Deletion Deletion
}

// Deletion is how an object is deleted only if it is unchanged since it was read.
type Deletion int

const (
	// DeleteProbed finds out when the first resource is opened whether the store has conditional deletions, and refuses to work where it has not. It
	// asks for the deletion of an object that does not exist under a condition that cannot hold; a store that calls that a success is
	// asked again with an empty object .rebalancer-probe-… below the resource's prefix, which is written for it and deleted at once.
	DeleteProbed Deletion = iota
	// DeleteConditional relies on conditional deletions without a probe.
	DeleteConditional
	// DeleteChecked is for stores without conditional deletions: the object is looked at just before it is deleted. What is written
	// between the two, within milliseconds, is deleted unread.
	DeleteChecked
)

// settings are a checked Config.
type settings struct {
	Config
	options   files.Options
	copyLimit int64 // what is larger is copied in parts
	partSize  int64
}

// parallel is how many objects of one resource are settled at once: a bit less than a client of the SDK keeps connections for.
const parallel = 8

// The limits of S3 for a copy in one request, and the parts of a larger one.
const (
	copyLimit = 5_000_000_000
	partSize  = 512 << 20
	mostParts = 10_000
)

// check returns what New needs, or all violations.
func (c Config) check() (settings, error) {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("s3: "+format, args...))
		}
	}
	bad(c.Client == nil, "Client is nil, must be a client of S3")
	if err := checkBucket(c.Bucket); err != nil {
		bad(true, "Bucket is %q: %w", c.Bucket, err)
	}
	if c.Base = strings.TrimSuffix(c.Base, "/"); c.Base != "" {
		if err := checkPath(c.Base); err != nil {
			bad(true, "Base is %q: %w", c.Base, err)
		}
	}
	bad(c.Deletion < DeleteProbed || c.Deletion > DeleteChecked, "Deletion is %d, must be DeleteProbed, DeleteConditional or DeleteChecked", c.Deletion)
	p := c.Policy
	if p.StableFor == 0 {
		p.StableFor = -1
	}
	if p.IdleInterval == 0 {
		p.IdleInterval = max(DefaultIdleInterval, p.Interval)
	}
	options, err := files.FromPolicy(p, files.Can{Keep: true, Tag: true, Parallel: parallel, Deep: c.Subtree, Folder: c.folder})
	if err != nil {
		bad(true, "%w", err)
	}
	bad(strings.HasPrefix(c.Bucket, "arn:") && strings.HasSuffix(c.Bucket, multiRegion) && (options.Success != "" || options.Failed != ""),
		"Bucket is %q, an access point of several regions, from which S3 copies nothing: instead of MoveTo use Delete, Keep or Tag, or the access point of one region", c.Bucket)
	return settings{Config: c, options: options, copyLimit: copyLimit, partSize: partSize}, errors.Join(errs...)
}

// accessPoint is an ARN that is taken for a bucket: of an access point to a bucket or to one on an outpost.
var accessPoint = regexp.MustCompile(`^arn:[^:]+:(s3:[^:]*:[0-9]+:accesspoint|s3-outposts:[^:]+:[0-9]+:outpost[/:][^/:]+[/:]accesspoint)[/:][^/:]+$`)

// multiRegion ends the name of an access point of several regions.
const multiRegion = ".mrap"

func checkBucket(name string) error {
	switch {
	case name == "":
		return errors.New("it must be the name of a bucket")
	case strings.HasSuffix(name, "--x-s3"), strings.Contains(name, ":s3express:"):
		return errors.New("it is a directory bucket (S3 Express One Zone), whose listings have no order; use a general purpose bucket")
	case strings.HasPrefix(name, "arn:"):
		if !accessPoint.MatchString(name) {
			return errors.New("it is no ARN of an access point, such as arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME; of a bucket write the name")
		}
		return nil
	case strings.ContainsAny(name, "/:?#@ \x00"):
		return errors.New("it is no name of a bucket")
	}
	return nil
}

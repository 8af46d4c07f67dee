package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer"
)

const probePrefix = ".rebalancer-probe-"

// errUnconditional is why a store is refused.
var errUnconditional = errors.New("the store deletes objects whatever the condition of the request (If-Match) says, so that an object that is replaced while it is worked would be deleted unread: " +
	"use a store with conditional deletions, or MoveTo folders of another bucket with versions, or accept a look just before the deletion with Config.Deletion = DeleteChecked")

// deletes tells whether anything is ever deleted.
func (s *Source) deletes() bool {
	o := s.options
	return !o.Keep || o.Failed != "" || o.DoneFile != "" || o.Trigger != ""
}

// probe finds out whether deletions can be conditional, once.
func (s *Source) probe(ctx context.Context, prefix string) error {
	if s.Deletion != DeleteProbed || !s.deletes() {
		return nil
	}
	select {
	case s.probing <- struct{}{}:
		defer func() { <-s.probing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.probed {
		return nil
	}
	key := prefix + probePrefix + rand.Text()
	honest, err := s.refuses(ctx, key)
	if err == nil && !honest { // perhaps only because there is no such object
		honest, err = s.refusesExisting(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("whether the store has conditional deletions: %w; or set Config.Deletion", err)
	}
	if !honest {
		return errUnconditional
	}
	s.probed = true
	return nil
}

// refuses asks for a deletion whose condition cannot hold.
func (s *Source) refuses(ctx context.Context, key string) (bool, error) {
	err := s.remove(ctx, s.Bucket, key, aws.String(`"00000000000000000000000000000000"`))
	switch {
	case errors.Is(err, rebalancer.ErrChanged):
		return true, nil
	case errors.Is(err, fs.ErrNotExist): // which says nothing of the condition
		return false, nil
	case hasCode(err, "NotImplemented", "MethodNotAllowed"):
		return false, errUnconditional
	}
	return false, err
}

// refusesExisting asks the same of an object that there is. It removes that, whatever happens: only a process that dies here leaves it behind, empty and
// never taken for a message.
func (s *Source) refusesExisting(ctx context.Context, key string) (honest bool, err error) {
	once, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = s.Client.PutObject(once, &s3.PutObjectInput{Bucket: &s.Bucket, Key: &key, Body: bytes.NewReader(nil)})
	if hasCode(err, "AccessDenied") {
		return false, call{right: "s3:PutObject", bucket: s.Bucket, key: key}.fail(err)
	}
	defer func() { // also when the answer was lost
		if rerr := s.remove(context.WithoutCancel(ctx), s.Bucket, key, nil); !errors.Is(rerr, fs.ErrNotExist) && err == nil {
			err = rerr
		}
	}()
	if err != nil {
		return false, call{right: "s3:PutObject", bucket: s.Bucket, key: key}.fail(err)
	}
	return s.refuses(ctx, key)
}

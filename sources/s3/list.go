package s3

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

const (
	callTimeout = 30 * time.Second // of requests that carry no object
	// resumes is how often a page is asked for again, beyond the tries of the client, before a listing that has begun is given up.
	resumes = 5
	// slowestResume is the longest pause before it, and between two tries to read on.
	slowestResume = 5 * time.Second
)

// page is one page of a listing, its keys as they are.
type page struct {
	objects  []types.Object
	prefixes []string // what keys with a further delimiter begin with
}

// walk passes the pages of keys that begin with a prefix, in the order of the keys. A page that fails is asked for again from where the
// listing was. With a delimiter, keys that have a further one are passed as prefixes. most is how many keys are asked for in all; 0 for all.
func (s *Source) walk(ctx context.Context, prefix, delimiter string, most int32, each func(page) error) error {
	in := &s3.ListObjectsV2Input{Bucket: &s.Bucket, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
	if delimiter != "" {
		in.Delimiter = &delimiter
	}
	if most > 0 {
		in.MaxKeys = &most
	}
	for {
		out, err := s.listPage(ctx, in)
		if err != nil {
			return err
		}
		p, err := pageOf(out)
		if err != nil {
			return fmt.Errorf("bucket %q: %w", s.Bucket, err)
		}
		if err := each(p); err != nil {
			return err
		}
		if !aws.ToBool(out.IsTruncated) || most > 0 {
			return nil
		}
		next := aws.ToString(out.NextContinuationToken)
		if next == "" || next == aws.ToString(in.ContinuationToken) {
			return fmt.Errorf("bucket %q: the store says that there are more keys, and not how to go on", s.Bucket)
		}
		in.ContinuationToken = &next
	}
}

// listPage asks for one page. The first is not asked for again: nothing is lost with it, and the caller learns sooner.
func (s *Source) listPage(ctx context.Context, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	what := call{right: "s3:ListBucket", bucket: s.Bucket}
	for try := 0; ; try++ {
		once, cancel := context.WithTimeout(ctx, callTimeout)
		out, err := s.Client.ListObjectsV2(once, in)
		cancel()
		if err == nil {
			return out, nil
		}
		if in.ContinuationToken == nil || try >= resumes || !passing(err) || !pause(ctx, try) {
			return nil, what.fail(err)
		}
	}
}

// pause waits before another try; false when ctx has ended.
func pause(ctx context.Context, try int) bool {
	t := time.NewTimer(min(100*time.Millisecond<<min(try, 10), slowestResume))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pageOf undoes the encoding of keys, which is asked for since XML cannot carry all of them; not every store has it.
func pageOf(out *s3.ListObjectsV2Output) (page, error) {
	p := page{objects: out.Contents}
	encoded := out.EncodingType == types.EncodingTypeUrl
	for i := range p.objects {
		o := &p.objects[i]
		if o.Key == nil {
			return page{}, errors.New("the store listed an object without a key")
		}
		if !encoded || !strings.ContainsAny(*o.Key, "%+") {
			continue
		}
		key, err := url.QueryUnescape(*o.Key)
		if err != nil {
			return page{}, fmt.Errorf("the store listed a key that is not encoded as it says: %w", err)
		}
		o.Key = &key
	}
	for _, c := range out.CommonPrefixes {
		prefix := aws.ToString(c.Prefix)
		if encoded {
			var err error
			if prefix, err = url.QueryUnescape(prefix); err != nil {
				return page{}, fmt.Errorf("the store listed a prefix that is not encoded as it says: %w", err)
			}
		}
		p.prefixes = append(p.prefixes, prefix)
	}
	return p, nil
}

// entries are the objects of a page that are files of a resource.
func (s *Source) entries(resource string, p page) []files.Entry {
	prefix := s.prefix(resource)
	list := make([]files.Entry, 0, len(p.objects))
	last, moved := "", false // keys of one folder come one after the other
	for i := range p.objects {
		o := &p.objects[i]
		name, ok := strings.CutPrefix(*o.Key, prefix)
		if !ok || !s.isFile(name, aws.ToInt64(o.Size)) {
			continue
		}
		if dir := path.Dir(name); dir != "." {
			if dir != last {
				last, moved = dir, s.isMoved(dir, prefix+dir)
			}
			if moved {
				continue
			}
		}
		e := files.Entry{Name: name}
		if class := string(o.StorageClass); !archived(class) && class != "INTELLIGENT_TIERING" { // else only a look at it says whether it can be read
			e.Info = listed(s.Bucket, o)
		}
		list = append(list, e)
	}
	return list
}

// isFile leaves out what marks directories, what is our own, and in a subtree what is ignored by the last part of its name.
func (s *Source) isFile(name string, size int64) bool {
	if name == "" || size == 0 && (strings.HasSuffix(name, "/") || strings.HasSuffix(name, "_$folder$")) {
		return false
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	if strings.HasPrefix(last, probePrefix) {
		return false
	}
	if last == name {
		return true
	}
	for _, pattern := range s.options.Ignore { // the engine holds them against the whole name, of which a * does not match slashes
		if ok, _ := path.Match(pattern, last); ok {
			return false
		}
	}
	return true
}

// isMoved tells whether a folder in a subtree is one to which objects are moved.
func (s *Source) isMoved(dir, key string) bool {
	for _, f := range s.folders() {
		if isRelative(f) && f.Has(dir) || s.rooted(f, key) {
			return true
		}
	}
	return false
}

// archived tells whether objects of a storage class must be restored before they can be read.
func archived(class string) bool { return class == "GLACIER" || class == "DEEP_ARCHIVE" }

// Object is what Message.Native holds of an object: a *Object.
type Object struct {
	// Bucket and Key are where it is; Key is the whole key, as it is.
	Bucket, Key string
	// ETag is without its quotes.
	ETag string
	// StorageClass is "" where the store does not say, and for STANDARD.
	StorageClass string
}

// listed is the identity of an object in a listing.
func listed(bucket string, o *types.Object) *files.Info {
	return identity(bucket, *o.Key, aws.ToString(o.ETag), string(o.StorageClass), aws.ToInt64(o.Size), aws.ToTime(o.LastModified))
}

// identity is what makes an object another one. Times are of whole seconds, as not every request tells them more exactly.
func identity(bucket, key, etag, class string, size int64, modified time.Time) *files.Info {
	etag = strings.Trim(etag, `"`)
	if class == string(types.StorageClassStandard) {
		class = ""
	}
	return &files.Info{
		Size: size, ModTime: modified.UTC().Truncate(time.Second), Tag: etag,
		Native: &Object{Bucket: bucket, Key: key, ETag: etag, StorageClass: class},
	}
}

package sqs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const tagPrefix = "tag:"

// Discover lists the queues of the client's account and region that match a pattern, sorted. The pattern is one of path.Match for the name
// ("orders-*"), or tag:KEY=VALUE for the queues with a tag, where VALUE is such a pattern too. What Config.DeadLetter names is left out.
// A pattern that begins with plain letters lists only the queues that begin with them; tags cost a call for each queue.
func (s *Source) Discover(ctx context.Context, pattern string) ([]string, error) {
	found, err := s.discover(ctx, pattern)
	if err != nil {
		return nil, fmt.Errorf("sqs: discover %q: %w", pattern, err)
	}
	return found, nil
}

func (s *Source) discover(ctx context.Context, pattern string) ([]string, error) {
	names, key := pattern, ""
	if tag, ok := strings.CutPrefix(pattern, tagPrefix); ok {
		var value string
		if key, value, ok = strings.Cut(tag, "="); !ok || key == "" {
			return nil, errors.New("a pattern for tags has the form tag:KEY=VALUE")
		}
		names, pattern = "*", value
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	urls, err := s.list(ctx, literal(names))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, u := range urls {
		name := path.Base(u)
		if s.cfg.isDeadLetter(name) || s.cfg.Redrive && isFIFO(name) {
			continue
		}
		of := name
		if key != "" {
			tags, err := s.tags(ctx, u)
			if gone(err) { // it went meanwhile
				continue
			}
			if err != nil {
				return nil, err
			}
			value, tagged := tags[key]
			if !tagged {
				continue
			}
			of = value
		}
		if ok, _ := path.Match(pattern, of); ok {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// list lists the URLs of the queues whose names begin with prefix, page by page.
func (s *Source) list(ctx context.Context, prefix string) ([]string, error) {
	most := int32(1000)
	in := &sqs.ListQueuesInput{MaxResults: &most}
	if prefix != "" {
		in.QueueNamePrefix = &prefix
	}
	var urls []string
	for {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		out, err := s.cfg.Client.ListQueues(ctx, in)
		cancel()
		if err != nil {
			return nil, err
		}
		urls = append(urls, out.QueueUrls...)
		if out.NextToken == nil || *out.NextToken == "" {
			return urls, nil
		}
		in.NextToken = out.NextToken
	}
}

func (s *Source) tags(ctx context.Context, url string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.cfg.Client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil {
		return nil, err
	}
	return out.Tags, nil
}

// literal is what every name begins with that matches a pattern.
func literal(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// isDeadLetter tells whether messages that are given up go to the queue of this name.
func (c *Config) isDeadLetter(name string) bool {
	if c.DeadLetter == "" {
		return false
	}
	before, after, pattern := strings.Cut(strings.TrimSuffix(c.DeadLetter, fifoSuffix), "*")
	name = strings.TrimSuffix(name, fifoSuffix)
	if !pattern {
		return name == before
	}
	return len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// Lag returns how many messages of a queue wait to be received, about: SQS counts approximately.
func (s *Source) Lag(ctx context.Context, resource string) (int64, error) {
	n, err := s.lag(ctx, resource)
	if err != nil {
		return 0, fmt.Errorf("sqs: lag of %q: %w", resource, resourceError(err))
	}
	return n, nil
}

func (s *Source) lag(ctx context.Context, resource string) (int64, error) {
	name, err := s.canonical(resource)
	if err != nil {
		return 0, err
	}
	url, err := s.url(ctx, name)
	if err != nil {
		return 0, err
	}
	a, err := s.attributes(ctx, url, types.QueueAttributeNameApproximateNumberOfMessages)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(a[string(types.QueueAttributeNameApproximateNumberOfMessages)], 10, 64)
}

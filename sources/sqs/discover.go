package sqs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const tagPrefix = "tag:"

// atOnce is how many calls Discover makes side by side: as many as connections of which the SDK keeps idle ones, and some to spare.
const atOnce = 8

// Discover lists the queues of the client's account and region that match a pattern, sorted. The pattern is one of path.Match for the name
// ("orders-*"), or tag:KEY=VALUE for the queues with a tag, where VALUE is such a pattern too. Dead-letter queues are left out, whose messages would else be
// worked again: what Config.DeadLetter names, and what the redrive policy of a queue names that matches too. A pattern that matches only them lists them.
// A pattern that begins with plain letters lists only the queues that begin with them; tags cost a call for each queue, and redrive
// policies one for each that matches.
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
	urls = slices.DeleteFunc(urls, func(u string) bool {
		name := path.Base(u)
		return s.cfg.isDeadLetter(name) || s.cfg.Redrive && isFIFO(name)
	})
	if key == "" {
		urls = slices.DeleteFunc(urls, func(u string) bool { ok, _ := path.Match(pattern, path.Base(u)); return !ok })
	} else if urls, err = s.tagged(ctx, urls, key, pattern); err != nil {
		return nil, err
	}
	return s.withoutTargets(ctx, urls)
}

// tagged are the queues whose tag has a value that matches.
func (s *Source) tagged(ctx context.Context, urls []string, key, pattern string) ([]string, error) {
	match := make([]bool, len(urls))
	err := s.each(ctx, urls, func(ctx context.Context, i int) error {
		tags, err := s.tags(ctx, urls[i])
		if value, ok := tags[key]; ok && err == nil {
			match[i], _ = path.Match(pattern, value)
		}
		return err
	})
	var found []string
	for i, u := range urls {
		if match[i] {
			found = append(found, u)
		}
	}
	return found, err
}

// withoutTargets are the names of queues, sorted, without those that are dead-letter queues of others of them.
func (s *Source) withoutTargets(ctx context.Context, urls []string) ([]string, error) {
	names := make([]string, len(urls))
	targets := make([]string, len(urls))
	err := s.each(ctx, urls, func(ctx context.Context, i int) error {
		a, err := s.attributes(ctx, urls[i], types.QueueAttributeNameRedrivePolicy)
		if err != nil {
			return err
		}
		names[i] = path.Base(urls[i])
		if target := policyOf(a).target; target != names[i] {
			targets[i] = target
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" || slices.Contains(targets, name) })
	slices.Sort(names)
	return names, nil
}

// each makes a call for each queue, some at a time, until one fails; a queue that is gone meanwhile is no failure.
func (s *Source) each(ctx context.Context, urls []string, call func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(atOnce, len(urls)) {
		wg.Go(func() {
			for i := range next {
				if err := call(ctx, i); err != nil && !gone(err) {
					cancel(fmt.Errorf("queue %q: %w", path.Base(urls[i]), err))
				}
			}
		})
	}
	for i := range urls {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
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

package sourcetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

func faults() map[string]fault {
	fs := map[string]fault{}
	for _, group := range []map[string]fault{nameFaults(), fetchFaults(), settleFaults(), closeFaults()} {
		for what, f := range group {
			fs[what] = f
		}
	}
	return fs
}

func nameFaults() map[string]fault {
	return map[string]fault{
		"sorts names": {fails: "Names keeps", wrap: func(f faulty) faulty {
			f.names = func(in []string) ([]string, error) {
				out := slices.Clone(in)
				slices.Sort(out)
				return out, nil
			}
			return f
		}},
		"takes any name": {fails: "Names refuses", wrap: func(f faulty) faulty {
			f.names = func(in []string) ([]string, error) { return slices.Clone(in), nil }
			return f
		}},
		"opens what is missing": {fails: "Open and Fetch say", wrap: func(f faulty) faulty {
			f.open = func(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
				r, err := f.Source.Open(ctx, c)
				if errors.Is(err, sources.ErrGone) {
					return f.Source.Open(ctx, &rebalancer.Claim{Resource: "other", Fence: 1})
				}
				return r, err
			}
			return f
		}},
		"another error for what is gone": {fails: "Open and Fetch say", wrap: func(f faulty) faulty {
			f.fetch = func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
				ms, err := r.Fetch(ctx, max)
				if err != nil {
					err = errStrange
				}
				return ms, err
			}
			return f
		}},
		"a reader ends with the context of Open": {fails: "Open is bounded", wrap: func(f faulty) faulty {
			f.open = func(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
				r, err := f.Source.Open(ctx, c)
				if err == nil {
					context.AfterFunc(ctx, func() { _ = r.Close(context.Background()) })
				}
				return r, err
			}
			return f
		}},
	}
}

func fetchFaults() map[string]fault {
	return map[string]fault{
		"no fence": changed("Fetch gives", func(_ *rebalancer.Claim, ms []*rebalancer.Message) {
			for _, m := range ms {
				m.Fence = 0
			}
		}),
		"another resource": changed("Fetch gives", func(_ *rebalancer.Claim, ms []*rebalancer.Message) {
			for _, m := range ms {
				m.Resource = strings.ToUpper(m.Resource)
			}
		}),
		"counts from 0": changed("Fetch gives", func(_ *rebalancer.Claim, ms []*rebalancer.Message) {
			for _, m := range ms {
				m.Attempt--
			}
		}),
		"out of order": changed("Fetch gives", func(_ *rebalancer.Claim, ms []*rebalancer.Message) { slices.Reverse(ms) }),
		"more than max": {fails: "Fetch gives", wrap: func(f faulty) faulty {
			f.fetch = func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
				return r.Fetch(ctx, max+1)
			}
			return f
		}},
		"takes any max": {fails: "Fetch refuses", wrap: func(f faulty) faulty {
			f.fetch = func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, limit int) ([]*rebalancer.Message, error) {
				return r.Fetch(ctx, max(1, limit))
			}
			return f
		}},
		"returns nothing at once": {fails: "Fetch waits", wrap: func(f faulty) faulty {
			f.fetch = func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				return r.Fetch(ctx, max)
			}
			return f
		}},
		"loses messages when the context ends": {fails: "Fetch ends", wrap: func(f faulty) faulty {
			f.fetch = func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
				ms, err := r.Fetch(ctx, max)
				if err != nil {
					return nil, err
				}
				select {
				case <-time.After(5 * time.Millisecond):
					return ms, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return f
		}},
		"keeps the slice": {fails: "the slice is", wrap: func(f faulty) faulty {
			handed := map[sources.Reader][]*rebalancer.Message{}
			var mu sync.Mutex
			f.fetch = func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
				ms, err := r.Fetch(ctx, max)
				mu.Lock()
				defer mu.Unlock()
				handed[r] = append(handed[r], nil)
				handed[r] = ms
				return ms, err
			}
			f.set = func(ctx context.Context, r sources.Reader, s []sources.Settlement) error {
				mu.Lock()
				defer mu.Unlock()
				var known []sources.Settlement
				for _, one := range s {
					if slices.Contains(handed[r], one.Message) {
						known = append(known, one)
					}
				}
				return r.Settle(ctx, known)
			}
			return f
		}},
		"truncates payloads": changed("payloads", func(_ *rebalancer.Claim, ms []*rebalancer.Message) {
			for _, m := range ms {
				m.Body = m.Body[:min(50, len(m.Body))]
			}
		}),
	}
}

func settleFaults() map[string]fault {
	as := func(from, to sources.Outcome) func(sources.Settlement) *sources.Settlement {
		return func(s sources.Settlement) *sources.Settlement {
			if s.Outcome == from {
				s.Outcome = to
			}
			return &s
		}
	}
	return map[string]fault{
		"Done releases":     settling("Done is", as(sources.Done, sources.Release)),
		"Done does nothing": settling("Done is", func(sources.Settlement) *sources.Settlement { return nil }),
		"Release drops":     settling("Release comes", as(sources.Release, sources.Done)),
		"Release burns":     settling("Release comes", as(sources.Release, sources.Retry)),
		"Retry at once": settling("Retry comes", func(s sources.Settlement) *sources.Settlement {
			s.Delay = 0
			return &s
		}),
		"Retry burns nothing": settling("Retry comes", as(sources.Retry, sources.Release)),
		"Reject drops":        settling("Reject goes", as(sources.Reject, sources.Done)),
		"Reject releases":     settling("Reject goes", as(sources.Reject, sources.Release)),
		"one Reject fails all": {fails: "Reject fails alone", opts: []memory.Option{memory.WithoutDeadLetters()}, wrap: func(f faulty) faulty {
			f.set = func(ctx context.Context, r sources.Reader, s []sources.Settlement) error {
				for _, one := range s {
					if one.Outcome == sources.Reject {
						return sources.ErrNoDeadLetter
					}
				}
				return r.Settle(ctx, s)
			}
			return f
		}},
		"unknown messages are errors": {fails: "Settle ignores", wrap: func(f faulty) faulty {
			f.set = func(ctx context.Context, r sources.Reader, s []sources.Settlement) error {
				for _, one := range s {
					if one.Message == nil || one.Message.ID == "nobody" {
						return errStrange
					}
				}
				return r.Settle(ctx, s)
			}
			return f
		}},
		"Settle waits for Fetch": {fails: "Settle does not", wrap: func(f faulty) faulty {
			var mu sync.Mutex
			f.fetch = func(ctx context.Context, _ *rebalancer.Claim, r sources.Reader, max int) ([]*rebalancer.Message, error) {
				mu.Lock()
				defer mu.Unlock()
				return r.Fetch(ctx, max)
			}
			f.set = func(ctx context.Context, r sources.Reader, s []sources.Settlement) error {
				mu.Lock()
				defer mu.Unlock()
				return r.Settle(ctx, s)
			}
			return f
		}},
	}
}

func closeFaults() map[string]fault {
	return map[string]fault{
		"Close loses what was in hand": {fails: "Close gives back", wrap: func(f faulty) faulty {
			f.close = func(context.Context, sources.Reader) error { return nil }
			return f
		}},
		"Close twice is an error": {fails: "Close ends", wrap: func(f faulty) faulty {
			closed := map[sources.Reader]bool{}
			var mu sync.Mutex
			f.close = func(ctx context.Context, r sources.Reader) error {
				mu.Lock()
				defer mu.Unlock()
				if closed[r] {
					return errStrange
				}
				closed[r] = true
				return r.Close(ctx)
			}
			return f
		}},
		"delivers after Close": {fails: "nothing is delivered", wrap: func(f faulty) faulty {
			f.close = func(context.Context, sources.Reader) error { return nil }
			return f
		}},
		"a closed reader settles": {fails: "a late Settle", wrap: func(f faulty) faulty {
			closed := map[sources.Reader]bool{}
			var mu sync.Mutex
			closing := f.close
			f.close = func(_ context.Context, r sources.Reader) error {
				mu.Lock()
				defer mu.Unlock()
				closed[r] = true
				return nil
			}
			f.open = func(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
				mu.Lock()
				defer mu.Unlock()
				for r := range closed {
					_ = closing(ctx, r)
				}
				return f.Source.Open(ctx, c)
			}
			return f
		}},
		"mixes up resources": {fails: "resources do not", wrap: func(f faulty) faulty {
			f.open = func(ctx context.Context, c *rebalancer.Claim) (sources.Reader, error) {
				other := *c
				other.Resource = "a"
				return f.Source.Open(ctx, &other)
			}
			return f
		}},
	}
}

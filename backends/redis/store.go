package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

const (
	shortestTTL = 500 * time.Millisecond
	// longestTTL leaves the keys of sessions time before they expire.
	longestTTL = 3 * 24 * time.Hour
)

// Store is a Redis or Valkey. Make it with Open or New. It is safe for concurrent use.
type Store struct {
	client   redis.UniversalClient
	owned    bool
	name     string // for messages
	tls      bool
	reached  atomic.Bool // a server has answered
	prefix   string
	replicas int
	scripts  *scripts
	seen     seen
	ears     ears

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	once   sync.Once
	calls  atomic.Int64 // commits so far, so that a repeated one is known
}

var (
	_ backends.Store     = (*Store)(nil)
	_ backends.Inspector = (*Store)(nil)
)

// Option changes how a store works.
type Option func(*Store)

// WithPrefix sets what all keys and channels begin with. It must be the same on every node. Default DefaultPrefix.
func WithPrefix(prefix string) Option { return func(s *Store) { s.prefix = prefix } }

// WithReplicas lets renewals and commits count only when n replicas have confirmed them. It must be the same on every node.
// Default 0: the master alone; see the package's comment for what that means.
func WithReplicas(n int) Option { return func(s *Store) { s.replicas = n } }

// Open makes a store with a client of its own from a URL: redis://user:password@host:port/db, or rediss:// for TLS. Parameters are
// those of redis.ParseURL. It does no I/O. Errors wrap backends.ErrFatal.
func Open(rawURL string, opts ...Option) (*Store, error) {
	o, err := parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redis store: %w: %w", backends.ErrFatal, err)
	}
	s, err := New(redis.NewClient(o), opts...)
	if err != nil {
		return nil, err
	}
	s.owned = true
	return s, nil
}

// parse never repeats the URL in an error: it may hold a password.
func parse(raw string) (*redis.Options, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Fragment != "" || u.Host == "" {
		return nil, errors.New("the URL is none: it must be redis://user:password@host:port/db, with the special characters of user and password percent-encoded")
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, fmt.Errorf("the scheme of the URL is %q: it must be redis or rediss", u.Scheme)
	}
	o, err := redis.ParseURL(raw)
	if err != nil {
		return nil, fmt.Errorf("the URL of %s: %w", u.Host, err)
	}
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true // CLIENT SETINFO would be one more right, and one more command for each connection
	if !u.Query().Has("max_retries") {
		o.MaxRetries = -1 // the group retries
	}
	return o, nil
}

// New makes a store over a client, which the caller closes after the store. It does no I/O. Errors wrap backends.ErrFatal.
func New(client redis.UniversalClient, opts ...Option) (*Store, error) {
	s := &Store{client: client, prefix: DefaultPrefix}
	s.name, s.tls = nameOf(client)
	for _, o := range opts {
		o(s)
	}
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("a client is needed"))
	}
	if _, ring := client.(*redis.Ring); ring {
		errs = append(errs, errors.New("a redis.Ring cannot hold a group: its nodes need not agree on where a key is; use one server, Sentinel or Cluster"))
	}
	if s.prefix == "" || strings.ContainsAny(s.prefix, "{} \t\r\n\x00") {
		errs = append(errs, fmt.Errorf("the prefix %q: it must not be empty and have no braces or spaces", s.prefix))
	}
	if s.replicas < 0 {
		errs = append(errs, fmt.Errorf("%d replicas: 0 or more are needed", s.replicas))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redis store %s: %w: %w", s.name, backends.ErrFatal, err)
	}
	s.scripts = newScripts("")
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// sentinel is the name of a server that Sentinel tells.
const sentinel = "(by Sentinel)"

// nameOf says where a client leads to, without secrets, and whether it speaks TLS.
func nameOf(client redis.UniversalClient) (name string, tls bool) {
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		if o.Addr == "FailoverClient" {
			return sentinel, o.TLSConfig != nil
		}
		return o.Addr, o.TLSConfig != nil
	case *redis.ClusterClient:
		return "(cluster of " + strings.Join(c.Options().Addrs, ", ") + ")", c.Options().TLSConfig != nil
	}
	return "(client of the program)", false
}

// Open opens a session. TTLs from half a second to three days are granted as wanted.
func (s *Store) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	if err := storereq.Open(o, shortestTTL); err != nil {
		return nil, err
	}
	if o.TTL > longestTTL {
		return nil, fmt.Errorf("redis store %s: %w: a ttl of %v: this store can do no longer one than %v", s.name, backends.ErrFatal, o.TTL, longestTTL)
	}
	sp := spaceOf(s.prefix, o.Group)
	if err := s.inspectFor(ctx, sp); err != nil {
		return nil, err
	}
	h := &session{store: s, space: sp, id: rand.Text(), ttl: o.TTL, ended: make(chan struct{})}
	r, err := s.run(ctx, s.scripts.open, sp, h.id, o.TTL.Microseconds(), o.Node)
	if err != nil {
		return nil, err
	}
	h.opened = r.stamp
	return h, nil
}

// Groups lists the groups that have an entry which is not bound to a session. It scans the names of all keys of the server.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	var names []string
	err := s.within(ctx, func(ctx context.Context) (err error) {
		names, err = s.scanAll(ctx)
		return err
	})
	if err != nil {
		return nil, s.wrap(err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (s *Store) scanAll(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var names []string
	scan := func(ctx context.Context, c redis.Cmdable) error {
		it := c.Scan(ctx, 0, glob(s.prefix)+"{*}:"+keyNames[namesKey], 1000).Iterator()
		for it.Next(ctx) {
			if group, ok := groupOf(s.prefix, it.Val()); ok {
				mu.Lock()
				names = append(names, group)
				mu.Unlock()
			}
		}
		return it.Err()
	}
	if c, ok := s.client.(*redis.ClusterClient); ok {
		err := c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
		return names, err
	}
	err := scan(ctx, s.client)
	return names, err
}

// Close ends the subscription, and the client where Open made it. Sessions that were not closed end by their TTL.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		s.cancel()
		s.ears.close()
		if s.owned {
			err = s.client.Close()
		}
	})
	return err
}

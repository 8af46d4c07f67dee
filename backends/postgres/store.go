package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

const (
	shortestTTL  = time.Second
	longestClose = 3 * time.Second
)

// Store is a schema of a database. Make it with Open or New. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	ours    bool   // the pool is closed with the store
	schema  string // not quoted
	place   string // where it is, for errors
	creates bool
	process string // random, for this store: who wrote a hint
	dialect sqlstore.Dialect

	prepares      atomic.Bool            // statements, on connections that lead straight to the server
	behind        func() int64           // µs to subtract from the server's clock; for tests
	beforeCommit  atomic.Pointer[func()] // for tests
	trips         atomic.Int64           // round trips of transactions; for tests
	mostProcesses int
	countEvery    time.Duration

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	once   sync.Once
	line   *line
	ears   *ears
	out    *notifier
}

var _ backends.Store = (*Store)(nil)

// Option changes what Open and New make.
type Option func(*Store)

// Schema names the schema that the store uses: any name, as it is. Defaults to DefaultSchema.
func Schema(name string) Option { return func(s *Store) { s.schema = name } }

// CreateSchema lets the store make the schema and its tables when it finds them missing, as Create does. Default: it fails.
func CreateSchema() Option { return func(s *Store) { s.creates = true } }

// Open makes a store over a pool of its own. The URL, or the key=value words of libpq, may set what pgxpool.ParseConfig knows. It does no I/O;
// an error wraps backends.ErrFatal and does not show the password.
func Open(url string, opts ...Option) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres store: %w: %w", backends.ErrFatal, err)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("postgres store: %w: %w", backends.ErrFatal, err)
	}
	s, err := New(pool, opts...)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.ours = true
	return s, nil
}

// New makes a store over a pool, which it does not close. Besides the pool's connections it uses one of its own, made as the pool makes
// them, for renewals and hints. It does no I/O.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	s := &Store{pool: pool, schema: DefaultSchema, process: rand.Text(),
		behind: func() int64 { return 0 }, mostProcesses: mostProcesses, countEvery: countEvery}
	for _, o := range opts {
		o(s)
	}
	if n := len(s.schema); n == 0 || n > 63 {
		return nil, fmt.Errorf("postgres store: %w: the schema's name has %d bytes, it needs 1 to 63", backends.ErrFatal, n)
	}
	c := pool.Config().ConnConfig
	hosts := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		if more := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(hosts, more) {
			hosts = append(hosts, more)
		}
	}
	s.prepares.Store(mayPrepare(c))
	s.place = fmt.Sprintf("%s/%s, schema %q", strings.Join(hosts, ","), c.Database, s.schema)
	s.dialect = s.newDialect(0)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.ears, s.line, s.out = newEars(), newLine(s), newNotifier(s)
	for _, work := range []func(context.Context){s.line.attend, s.ears.deliver, s.out.run, s.watch} {
		s.work.Go(func() { work(s.ctx) })
	}
	return s, nil
}

// Open opens a session.
func (s *Store) Open(ctx context.Context, o backends.SessionOptions) (backends.Session, error) {
	return sqlstore.Open(ctx, base{s}, o)
}

// Groups lists the groups that have an entry which is not bound to a session.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	return sqlstore.Groups(ctx, base{s})
}

// Close ends the store's own connection, and its pool if Open made it. Calls under way are broken off. Sessions that were not closed
// end by their TTL.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.cancel()
		s.work.Wait()
		s.line.close()
		if s.ours {
			closed := make(chan struct{})
			go func() { s.pool.Close(); close(closed) }()
			select {
			case <-closed:
			case <-time.After(longestClose): // the server hangs: the connections are closed when they time out
			}
		}
	})
	return nil
}

func (s *Store) dialectNow() sqlstore.Dialect {
	if b := s.behind(); b != 0 {
		return s.newDialect(b)
	}
	return s.dialect
}

// bound gives a call a deadline, and ends it with the store.
func (s *Store) bound(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, s.wrap(err)
	}
	if s.ctx.Err() != nil {
		return nil, nil, backends.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// pooled runs f on a connection of the pool.
func (s *Store) pooled(ctx context.Context, f func(*pgconn.PgConn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil && state(err) == "" {
			err = fmt.Errorf("no connection of the pool in time (%d of %d are in use): %w", s.pool.Stat().AcquiredConns(), s.pool.Stat().MaxConns(), err)
		}
		return err
	}
	defer c.Release()
	return f(c.Conn().PgConn())
}

// urgent runs f on the store's own connection, or where that is held up or cannot be had, on one of the pool, if that has one to spare.
func (s *Store) urgent(ctx context.Context, f func(*pgconn.PgConn) error) error {
	err := s.line.use(ctx, false, f)
	if errors.Is(err, errLine) && ctx.Err() == nil {
		return s.pooled(ctx, f)
	}
	return err
}

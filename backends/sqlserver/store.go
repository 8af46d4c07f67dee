package sqlserver

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// Store is a schema of a database. Make it with Open or New. It is safe for concurrent use.
type Store struct {
	db      *sql.DB
	ours    bool   // db is closed with the store
	schema  string // not quoted
	place   string // where it is, for errors
	creates bool
	looked  atomic.Bool // the database's set-up was found to be right

	behind       func() int64           // µs to subtract from the server's clock; for tests
	beforeCommit atomic.Pointer[func()] // for tests

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	once   sync.Once
	line   *line
	wires  *wires // nil where the connections are not made here
}

var (
	_ backends.Store     = (*Store)(nil)
	_ backends.Inspector = (*Store)(nil)
)

// Option changes what Open and New make.
type Option func(*Store)

// Schema names the schema that the store uses: any name, as it is. Defaults to DefaultSchema.
func Schema(name string) Option { return func(s *Store) { s.schema = name } }

// CreateSchema lets the store make the schema and its tables when it finds them missing, as Create does. Default: it fails.
func CreateSchema() Option { return func(s *Store) { s.creates = true } }

// Open makes a store over connections of its own, from a URL like sqlserver://user:password@host:1433?database=name, with the parameters of
// go-mssqldb. It does no I/O; an error wraps backends.ErrFatal and does not show the password.
func Open(dsn string, opts ...Option) (*Store, error) {
	if strings.HasPrefix(dsn, "sqlserver://") {
		if _, err := url.Parse(dsn); err != nil { // its error would show all
			return nil, fmt.Errorf("sqlserver store: %w: this is no URL: escape what is special in the user's name and password", backends.ErrFatal)
		}
	}
	config, err := msdsn.Parse(dsn)
	if err != nil {
		return nil, fmt.Errorf("sqlserver store: %w: %s", backends.ErrFatal, without(err.Error(), dsn, config.Password))
	}
	w := newWires(mssql.NewConnectorConfig(config), config.KeepAlive)
	s, err := newStore(sql.OpenDB(w), opts)
	if err != nil {
		_ = s.db.Close()
		return nil, err
	}
	s.ours, s.wires = true, w
	s.line = newLine(s, sql.OpenDB(w))
	s.place = placeOf(config) + fmt.Sprintf(", schema %q", s.schema)
	return s, nil
}

func placeOf(c msdsn.Config) string {
	const usual = 1433
	host := c.Host
	switch {
	case c.Instance != "":
		host += `\` + c.Instance
	case c.Port == 0:
		host += ":" + strconv.Itoa(usual)
	default:
		host += ":" + strconv.FormatUint(c.Port, 10)
	}
	return host + "/" + c.Database
}

// without takes secrets out of a text.
func without(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

// New makes a store over a pool of connections to SQL Server by go-mssqldb, which it does not close. Of these connections it keeps one for itself,
// for renewals, so that a busy pool cannot stop them; a pool that has but one is shared. It does no I/O.
func New(db *sql.DB, opts ...Option) (*Store, error) {
	s, err := newStore(db, opts)
	if err != nil {
		return nil, err
	}
	s.place = fmt.Sprintf("of the given pool, schema %q", s.schema)
	s.line = newLine(s, db)
	return s, nil
}

// newStore gives a store also with an error.
func newStore(db *sql.DB, opts []Option) (*Store, error) {
	s := &Store{db: db, schema: DefaultSchema, behind: func() int64 { return 0 }}
	for _, o := range opts {
		o(s)
	}
	if n := len(utf16.Encode([]rune(s.schema))); n == 0 || n > 128 || strings.ContainsRune(s.schema, 0) {
		return s, fmt.Errorf("sqlserver store: %w: the schema's name has %d characters, it needs 1 to 128, none of them zero", backends.ErrFatal, n)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
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

// Close gives back the connection for renewals, and ends the others if Open made them. Calls under way are broken off. Sessions that were
// not closed end by their TTL.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.cancel()
		if s.wires != nil {
			s.wires.cut() // what hangs ends now
		}
		s.line.close()
		if s.ours {
			_ = s.db.Close()
		}
	})
	return nil
}

// bound gives a call a deadline, and ends it with the store.
func (s *Store) bound(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if s.ctx.Err() != nil {
		return nil, nil, backends.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, s.wrap(err)
	}
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

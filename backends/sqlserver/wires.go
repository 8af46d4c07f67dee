package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"sync"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// wires makes connections and remembers what they run over, so that one on which the server does not answer can be cut: the client has
// no other way of giving up.
type wires struct {
	*mssql.Connector
	dialer net.Dialer

	mu   sync.Mutex
	cuts bool                      // all were cut, and none is made any more
	open map[net.Conn]*mssql.Conn  // nil: it is being made
	by   map[*mssql.Conn]*net.Conn // the other way round
}

var _ driver.Connector = (*wires)(nil)

func newWires(c *mssql.Connector, keepAlive time.Duration) *wires {
	w := &wires{Connector: c, dialer: net.Dialer{KeepAlive: keepAlive}, open: map[net.Conn]*mssql.Conn{}, by: map[*mssql.Conn]*net.Conn{}}
	c.Dialer = w
	return w
}

type wireKey struct{}

// Connect makes a connection. It ends with the context also where the server accepts and then says nothing.
func (w *wires) Connect(ctx context.Context) (driver.Conn, error) {
	wire := new(net.Conn)
	var mu sync.Mutex
	set := func(n net.Conn) { mu.Lock(); *wire = n; mu.Unlock() }
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if *wire != nil {
			_ = (*wire).Close()
		}
	})
	defer stop()
	c, err := w.Connector.Connect(context.WithValue(ctx, wireKey{}, set))
	if err != nil {
		mu.Lock()
		defer mu.Unlock()
		if *wire != nil {
			_ = (*wire).Close() // the client leaves it open when the login fails
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if m, ok := c.(*mssql.Conn); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.by[m] = wire
		w.open[*wire] = m
	}
	return c, nil
}

// DialContext is what the client calls for each network connection.
func (w *wires) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	raw, err := w.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n := &wire{Conn: raw, w: w}
	w.mu.Lock()
	cut := w.cuts
	if !cut {
		w.open[n] = nil
	}
	w.mu.Unlock()
	if cut {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	if set, ok := ctx.Value(wireKey{}).(func(net.Conn)); ok {
		set(n)
	}
	return n, nil
}

// wire is a network connection that is forgotten when it is closed.
type wire struct {
	net.Conn
	w *wires
}

func (n *wire) Close() error {
	n.w.mu.Lock()
	delete(n.w.by, n.w.open[n])
	delete(n.w.open, n)
	n.w.mu.Unlock()
	return n.Conn.Close()
}

// cutter gives what cuts a connection, which nobody else uses. It does nothing where w is nil.
func (w *wires) cutter(c *sql.Conn) func() {
	var cut func()
	if w != nil {
		_ = c.Raw(func(d any) error {
			m, _ := d.(*mssql.Conn)
			w.mu.Lock()
			defer w.mu.Unlock()
			if n := w.by[m]; n != nil {
				cut = func() { _ = (*n).Close() }
			}
			return nil
		})
	}
	if cut == nil {
		return func() {}
	}
	return cut
}

// cut closes all connections.
func (w *wires) cut() {
	w.mu.Lock()
	w.cuts = true
	var all []net.Conn
	for n := range w.open {
		all = append(all, n)
	}
	w.mu.Unlock()
	for _, n := range all {
		_ = n.Close()
	}
}

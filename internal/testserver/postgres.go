//go:build linux

package testserver

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sys/unix"
)

// Postgres is a PostgreSQL server. Every user may connect without a password from this machine, but those of PasswordUser.
type Postgres struct {
	*Process
	version, port, uid, gid int
	dir                     string
}

// PasswordUser is the name of the role that needs a password to connect; a test creates it.
const PasswordUser = "with_password"

// StartPostgres starts a server of a major version: 15 of this release of Debian, or 17 of the next. settings are more arguments, as
// "-c", "wal_level=logical".
func StartPostgres(t testing.TB, version int, settings ...string) *Postgres {
	t.Helper()
	return startPostgres(t, version, newData, nil, settings)
}

// StartPostgresBy starts a server of version 15 that goes by a clock of the test.
func StartPostgresBy(t testing.TB, clock *Clock, settings ...string) *Postgres {
	t.Helper()
	return startPostgres(t, 15, newData, clock.env(), settings)
}

// newData makes the data of a new server.
const newData = `initdb -N -D data -U postgres -A trust --locale=C -E UTF8 --wal-segsize=1 &&
	{ echo "host all ` + PasswordUser + ` 127.0.0.1/32 scram-sha-256"; cat data/pg_hba.conf; } >hba && cat hba >data/pg_hba.conf`

// Standby starts a server that follows this one, which need not wait for it, until it is promoted (pg_promote) or this one is gone.
func (p *Postgres) Standby(settings ...string) *Postgres {
	p.t.Helper()
	backup := fmt.Sprintf(`pg_basebackup -D data -h 127.0.0.1 -p %d -U postgres -R -X stream -c fast`, p.port)
	return startPostgres(p.t, p.version, backup, nil, settings)
}

// Clone starts another server of the test over a copy of this one's data, which is quicker than a new one. This one must be stopped.
func (p *Postgres) Clone(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	if p.Running() {
		t.Fatal("testserver: Clone of a server that runs")
	}
	return startPostgres(t, p.version, "false", nil, settings, func(dir string) { copyAll(t, filepath.Join(p.dir, "data"), filepath.Join(dir, "data")) })
}

// startPostgres makes the data by a command, unless they are there.
func startPostgres(t testing.TB, version int, command string, env, settings []string, prepare ...func(dir string)) *Postgres {
	t.Helper()
	root := ""
	if version > 15 {
		root = Root(t)
	}
	server := Need(t, root, fmt.Sprintf("/usr/lib/postgresql/%d/bin/postgres", version))
	p := &Postgres{version: version, port: Port(t), dir: Dir(t)}
	p.uid, p.gid = idsBelow(t, root, "postgres")
	if err := os.Chown(p.dir, p.uid, p.gid); err != nil {
		t.Fatal(err)
	}
	for _, f := range prepare {
		f(p.dir)
	}
	script := fmt.Sprintf(`PATH="%s:$PATH"; cd "%s" && { [ -e data/PG_VERSION ] || { %s; } } && exec "$@"`, filepath.Dir(server), p.dir, command)
	t.Cleanup(p.forget) // after the server was killed
	args := append([]string{"-c", script, "sh", server, "-D", "data", "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "dynamic_shared_memory_type=mmap", "-c", "max_wal_size=64MB", "-c", "min_wal_size=5MB"}, settings...)
	// (dynamic_shared_memory_type: what a killed server leaves would fill the /dev/shm of a container, which has 64 MB.)
	p.Process = Start(t, Spec{Name: fmt.Sprintf("PostgreSQL %d", version), Path: "/bin/sh", Args: args, Dir: p.dir, User: "postgres", Root: root, Env: env,
		Ready: p.ready, Stop: syscall.SIGINT})
	return p
}

// forget removes the segment of shared memory that a killed server leaves in the kernel, which has room for 4096 of them. A server that
// starts over the same data does so itself.
func (p *Postgres) forget() {
	b, err := os.ReadFile(filepath.Join(p.dir, "data", "postmaster.pid"))
	if err != nil {
		return // it ended in good order, or never ran
	}
	if lines := strings.Split(string(b), "\n"); len(lines) > 6 {
		if fields := strings.Fields(lines[6]); len(fields) == 2 { // its key and its number
			if id, err := strconv.Atoi(fields[1]); err == nil {
				_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
			}
		}
	}
}

// idsBelow are the numbers of a user of the machine, or of a root.
func idsBelow(t testing.TB, root, name string) (uid, gid int) {
	t.Helper()
	if root == "" {
		return IDs(t, name)
	}
	f, err := os.Open(filepath.Join(root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 3 && fields[0] == name {
			uid, _ = strconv.Atoi(fields[2])
			gid, _ = strconv.Atoi(fields[3])
			return uid, gid
		}
	}
	Missing(t, "the user "+name+" in "+root)
	return 0, 0
}

func (p *Postgres) ready(ctx context.Context) error {
	c, err := pgconn.Connect(ctx, p.URL("postgres", ""))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.Exec(ctx, "SELECT 1").Close()
}

// Addr is host:port.
func (p *Postgres) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// URL connects as a user to the database postgres.
func (p *Postgres) URL(user, password string) string { return p.URLAt(p.Addr(), user, password) }

// URLAt is URL by way of another address, that of a proxy.
func (p *Postgres) URLAt(addr, user, password string) string {
	u := url.URL{Scheme: "postgres", Host: addr, Path: "/postgres", User: url.User(user), RawQuery: "sslmode=disable"}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// Exec runs statements as the superuser.
func (p *Postgres) Exec(t testing.TB, sql string) {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), p.URL("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if err := c.Exec(t.Context(), sql).Close(); err != nil {
		t.Fatal(err)
	}
}

// Copy copies the data as a loss of power would leave it, while the server runs on. The function that it returns kills the server and starts it
// over that copy.
func (p *Postgres) Copy() (restore func()) {
	p.t.Helper()
	saved, err := os.MkdirTemp(p.dir, "saved-")
	if err != nil {
		p.t.Fatal(err)
	}
	data := filepath.Join(p.dir, "data")
	p.Freeze()
	copyAll(p.t, data, filepath.Join(saved, "data"))
	p.Thaw()
	return func() {
		p.t.Helper()
		p.Kill()
		p.forget()
		if err := os.Rename(data, filepath.Join(saved, "lost")); err != nil {
			p.t.Fatal(err)
		}
		copyAll(p.t, filepath.Join(saved, "data"), data)
		_ = os.Remove(filepath.Join(data, "postmaster.pid"))
		p.start()
		if err := os.RemoveAll(filepath.Join(saved, "lost")); err != nil {
			p.t.Fatal(err)
		}
	}
}

func copyAll(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", "--reflink=auto", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// StartPgBouncer starts PgBouncer in front of the server, in the mode "transaction" or "session", and returns its address too.
func StartPgBouncer(t testing.TB, p *Postgres, mode string) (*Process, string) {
	t.Helper()
	bouncer := Need(t, "", "pgbouncer")
	dir, port := Dir(t), Port(t)
	uid, gid := IDs(t, "postgres")
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s/users
pool_mode = %s
default_pool_size = 20
`, p.port, port, dir, mode)
	for name, content := range map[string]string{"config": config, "users": `"postgres" ""` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	return Start(t, Spec{Name: "PgBouncer", Path: bouncer, Args: []string{filepath.Join(dir, "config")}, Dir: dir, User: "postgres",
		Ready: func(ctx context.Context) error {
			c, err := pgconn.Connect(ctx, p.URLAt(addr, "postgres", ""))
			if err != nil {
				return err
			}
			defer c.Close(ctx)
			return c.Exec(ctx, "SELECT 1").Close()
		}}), addr
}

//go:build linux

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// TestStorePostgres: a server that is well, missing tables, missing rights, a wrong password, a server that is away.
func TestStorePostgres(t *testing.T) {
	t.Parallel()
	s := testserver.StartPostgres(t, 15, "-c", "fsync=off")
	p := newProgram(t)
	url := s.URL("postgres", "")
	p.want(p.doctor("--store", url), "failed", "session", "rebalancer schema")
	ddl, errs, code := p.run("schema", "--store", url)
	if code != 0 {
		t.Fatal(errs)
	}
	s.Exec(t, ddl)
	fs := p.doctor("--store", url)
	p.well(fs)
	p.want(fs, "ok", "version", "PostgreSQL 15")
	p.want(fs, "ok", "clock", "")
	p.want(fs, "warning", "durability", "fsync")
	s.Exec(t, "CREATE ROLE poor LOGIN; CREATE ROLE "+testserver.PasswordUser+" LOGIN PASSWORD 'right'")
	p.want(p.doctor("--store", s.URL("poor", "")), "failed", "session", "rebalancer schema")
	fs = p.doctor("--store", s.URL(testserver.PasswordUser, "wrong"))
	p.want(fs, "failed", "", "REBALANCER_STORE_PASSWORD")
	if text := fmt.Sprint(fs); strings.Contains(text, "wrong@") {
		t.Errorf("the password is shown: %s", text)
	}
	s.Stop()
	p.want(p.doctor("--store", url), "failed", "", "nothing listens there")
}

func TestStoreRedis(t *testing.T) {
	t.Parallel()
	for _, kind := range []testserver.RedisKind{testserver.Redis, testserver.Valkey} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := testserver.StartRedis(t, kind)
			p := newProgram(t)
			url := "redis://" + s.Addr()
			fs := p.doctor("--store", url)
			p.well(fs)
			p.want(fs, "ok", "version", "tests ran on")
			p.want(fs, "ok", "hints", "")
			s.Must("ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@connection", "+info")
			p.want(p.doctor("--store", "redis://poor:pw@"+s.Addr()), "failed", "", "rebalancer schema")
			p.want(p.doctor("--store", "redis://poor:wrong@"+s.Addr()), "failed", "", "REBALANCER_STORE_PASSWORD")
			s.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb")
			p.want(p.doctor("--store", url), "failed", "", "maxmemory")
		})
	}
}

func TestStoreZooKeeper(t *testing.T) {
	t.Parallel()
	z := testserver.StartZooKeeper(t, "")
	p := newProgram(t)
	fs := p.doctor("--store", "zk://"+z.Addr())
	p.well(fs)
	p.want(fs, "ok", "reachable", "ZooKeeper")
	p.want(fs, "note", "durability", "name all servers of the ensemble")
	p.want(p.doctor("--store", "zk://"+z.Addr()+"/none"), "failed", "", "none")
	z.Stop()
	p.want(p.doctor("--store", "zk://"+z.Addr()), "failed", "", "")
}

package redis

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// grant runs what ACL gives, with the password "secret", and more rules.
func grant(t *testing.T, server *testserver.RedisServer, prefix string, more ...string) {
	t.Helper()
	words := strings.Fields(strings.Replace(ACL("app", prefix), ">PASSWORD", ">secret", 1))
	server.Must(append(words, more...)...)
}

// The user that ACL makes can do all that the store does, and reaches nothing else.
func TestUserWithNoMoreRightsThanNeeded(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		const prefix = "team[1]*:"
		grant(t, server, prefix)
		s := openURL(t, "redis://app:secret@"+server.Addr(), WithPrefix(prefix))
		defer s.Close()
		everything(t, s)
		if w := warnings(t, s); !strings.Contains(w, "append-only") || strings.Contains(w, "\n") {
			t.Fatalf("warnings: %q", w)
		}
		server.Must("SET", "other", "v")
		if denied := strings.TrimSpace(server.Must("ACL", "LOG", "1")); denied != "" {
			t.Fatalf("the server refused something: %s", denied)
		}
		for name, line := range map[string][]string{"a key": {"GET", "other"}, "another command": {"FLUSHALL"}, "a channel": {"PUBLISH", "other", ""}} {
			if out := server.Must(append([]string{"ACL", "DRYRUN", "app"}, line...)...); !strings.Contains(out, "no permissions") && !strings.Contains(out, "can't") {
				t.Errorf("%s: the user may: %s", name, out)
			}
		}
		elsewhere := openURL(t, "redis://app:secret@"+server.Addr())
		defer elsewhere.Close()
		_, err := elsewhere.Open(short(t), backends.SessionOptions{Group: "g", TTL: time.Minute})
		wantErr(t, "a session below another prefix", err, backends.ErrFatal)
	})
}

// everything makes each call once.
func everything(t *testing.T, s *Store) {
	t.Helper()
	h := begin(t, s, time.Minute)
	var hints atomic.Int64
	if err := h.Listen(t.Context(), "a", func() { hints.Add(1) }); err != nil {
		t.Fatal(err)
	}
	v := mustPut(t, h, "k", true)
	mustPut(t, h, "l", false)
	res := commitOne(t, h, h.Opened().Incarnation, backends.Txn{Checks: []backends.Check{{Key: "k", Version: v}}, Deletes: []string{"k"}, Wake: []string{"a"}})
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	eventually(t, 10*time.Second, func() error {
		if hints.Load() == 0 {
			return errors.New("no hint")
		}
		return nil
	})
	r, err := h.Renew(short(t), backends.RenewRequest{Incarnation: h.Opened().Incarnation, Keys: []string{"l"}, Digests: []string{"", "a/"}, Sweep: true})
	if err != nil || len(r.Keys) != 1 || r.Digests[""].Count != 1 {
		t.Fatalf("renewal: %+v, %v", r, err)
	}
	if read, err := h.Read(short(t), backends.ReadRequest{Prefixes: []string{""}}); err != nil || len(read.Entries) != 1 {
		t.Fatalf("read: %+v, %v", read, err)
	}
	if _, err := h.Supersede(short(t), "n"); err != nil {
		t.Fatal(err)
	}
	if groups, err := s.Groups(short(t)); err != nil || len(groups) != 1 {
		t.Fatalf("groups: %q, %v", groups, err)
	}
	if err := h.Close(short(t)); err != nil {
		t.Fatal(err)
	}
}

// The rights are those that the scripts need, and those of the client.
func TestRightsAreThoseOfTheScripts(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	files, err := sources.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := sources.ReadFile("lua/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(string(text), -1) {
			used[strings.ToLower(m[1])] = true
		}
	}
	for _, c := range []string{"eval", "evalsha", "config|get", "info", "hello", "auth", "ping", "select", "scan", "subscribe", "unsubscribe", "wait",
		"cluster|slots", "command", "readonly", "asking"} {
		used[c] = true
	}
	if want := slices.Sorted(maps.Keys(used)); !slices.Equal(slices.Sorted(slices.Values(commands[:])), want) {
		t.Errorf("rights are\n%q, used are\n%q", commands, want)
	}
}

func TestUserOfACluster(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		nodes := testserver.StartRedisCluster(t, kind, 2)
		o := &redis.ClusterOptions{Username: "app", Password: "secret", ContextTimeoutEnabled: true, DisableIdentity: true}
		for _, n := range nodes {
			grant(t, n, "")
			o.Addrs = append(o.Addrs, n.Addr())
		}
		everything(t, over(t, redis.NewClusterClient(o)))
		for _, n := range nodes {
			if denied := strings.TrimSpace(n.Must("ACL", "LOG", "1")); denied != "" {
				t.Fatalf("the server refused something: %s", denied)
			}
		}
	})
}

// Each command of the list is needed where it is used: without it the store says what is missing, or does without and warns.
func TestUserWithoutARight(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind, "--appendonly", "yes")
		grant(t, server, "")
		for _, missing := range []string{"info", "config|get", "info -config|get"} {
			server.Must("FLUSHALL")
			grant(t, server, "", strings.Fields("-"+missing)...)
			s := openURL(t, "redis://app:secret@"+server.Addr())
			everything(t, s)
			w := warnings(t, s)
			for _, name := range strings.Fields(strings.ReplaceAll(strings.ToUpper(missing), "|", " ")) {
				if name = strings.TrimPrefix(name, "-"); name != "GET" && !strings.Contains(w, name+" ") {
					t.Errorf("without %s the warnings are %q", missing, w)
				}
			}
			_ = s.Close()
		}
		for _, missing := range []string{"hset", "zadd", "time", "evalsha", "pexpire"} {
			server.Must("FLUSHALL")
			grant(t, server, "", "-"+missing)
			s := openURL(t, "redis://app:secret@"+server.Addr())
			_, err := s.Open(short(t), backends.SessionOptions{Group: "g", Node: "n", TTL: time.Minute})
			wantErr(t, "a session without "+missing, err, backends.ErrFatal)
			if !strings.Contains(err.Error(), "right") || strings.Contains(err.Error(), "secret") {
				t.Errorf("without %s: %v", missing, err)
			}
			_ = s.Close()
		}
		grant(t, server, "", "-subscribe")
		s := openURL(t, "redis://app:secret@"+server.Addr())
		defer s.Close()
		err := begin(t, s, time.Minute).Listen(short(t), "a", func() {})
		wantErr(t, "listening without SUBSCRIBE", err, backends.ErrFatal)
		grant(t, server, "", "-scan")
		_, err = s.Groups(short(t))
		wantErr(t, "listing groups without SCAN", err, backends.ErrFatal)
	})
}

// Without INFO the loss of all data is seen nonetheless.
func TestLossIsSeenWithoutInfo(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		grant(t, server, "", "-info")
		s := openURL(t, fmt.Sprintf("redis://app:secret@%s", server.Addr()))
		defer s.Close()
		first := begin(t, s, time.Minute)
		if again := begin(t, s, time.Minute); again.Opened().Incarnation != first.Opened().Incarnation {
			t.Fatal("another incarnation, and nothing was lost")
		}
		server.Must("FLUSHALL")
		if again := begin(t, s, time.Minute); again.Opened().Incarnation == first.Opened().Incarnation {
			t.Fatal("the loss was not seen")
		}
	})
}

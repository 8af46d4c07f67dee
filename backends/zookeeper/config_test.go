package zookeeper

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
)

func TestConnectStrings(t *testing.T) {
	t.Parallel()
	for connect, want := range map[string]string{
		"zk://a":                      "zk://a:2181/rebalancer",
		"zk://a/":                     "zk://a:2181/rebalancer",
		"zk://a:1,b,c:3/x/y":          "zk://a:1,b:2181,c:3/x/y",
		"zk://u:p%40ss@a,b/x/":        "zk://a:2181,b:2181/x",
		"zk://[::1]:5,[::2]/x":        "zk://[::1]:5,[::2]:2181/x",
		"zk://a/caf%C3%A9%3F":         "zk://a:2181/café?",
		"zk://a,127.0.0.1:2182/a%20b": "zk://a:2181,127.0.0.1:2182/a b",
	} {
		s, err := Open(connect)
		if err != nil {
			t.Errorf("%s: %v", connect, err)
			continue
		}
		if got := s.cfg.String(); got != want {
			t.Errorf("%s: %s, want %s", connect, got, want)
		}
		_ = s.Close()
	}
}

func TestConnectStringsThatAreRefusedSayWhyWithoutSecrets(t *testing.T) {
	t.Parallel()
	for connect, why := range map[string]string{
		"":                            "no server",
		"redis://a":                   "begins with zk://",
		"zk://":                       "no name",
		"zk://a,,b/x":                 "no name",
		"zk://u:secret@/x":            "no name",
		"zk://u:sec%ret@a/x":          "escaped",
		"zk://:secret@a":              "name of a user",
		"zk://a b/x":                  "host or host:port",
		"zk://u:secret@a/x?y=1":       "no ? or #",
		"zk://u:secret@a//x":          "no path",
		"zk://u:secret@a:b:c/x#y":     "no ? or #",
		"zk://u:secret@a/%zz":         "chroot",
		"zk://u:secret@a@b:secret/%2": "chroot",
	} {
		_, err := Open(connect)
		if err == nil || !strings.Contains(err.Error(), why) || !errors.Is(err, backends.ErrFatal) {
			t.Errorf("%q: %v, want %q", connect, err, why)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error has the password: %v", connect, err)
		}
	}
	_, err := Open("http://a", WithTLS(nil), WithChroot("x"), WithDigest("a:b", "secret"))
	if err == nil || strings.Count(err.Error(), "\n") < 3 || strings.Contains(err.Error(), "secret") {
		t.Errorf("not all that is wrong, or too much: %v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	own := zk.WorldACL(zk.PermRead)
	c, err := parse("", []Option{WithServers("a", "b:1"), WithChroot("/x/"), WithDigest("u", "p:q"), WithTLS(&tls.Config{ServerName: "s"})})
	if err != nil || c.String() != "zk://a:2181,b:1/x" || c.digest != "u:p:q" || c.acl[0].Scheme != "auth" || c.tls.ServerName != "s" {
		t.Fatalf("%+v, %v", c.String(), err)
	}
	if c, err = parse("zk://u:p@a", []Option{WithACL(own...)}); err != nil || !slices.Equal(c.acl, own) {
		t.Fatal(c.acl, err)
	}
	if c, err = parse("zk://a", nil); err != nil || c.acl[0].Scheme != "world" {
		t.Fatal(c.acl, err)
	}
}

func TestHostsAreTriedInTurnAndPauseAfterARound(t *testing.T) {
	t.Parallel()
	h := &hosts{}
	if err := h.Init([]string{"a", "b"}); err != nil || h.Len() != 2 {
		t.Fatal(err)
	}
	var got []string
	next := func(n int) {
		for range n {
			server, pause := h.Next()
			if pause {
				server = "pause " + server
			}
			got = append(got, server)
		}
	}
	next(5)
	h.Connected()
	next(3)
	if want := []string{"a", "b", "pause a", "b", "pause a", "b", "a", "pause b"}; !slices.Equal(got, want) {
		t.Fatalf("tried %q, want %q", got, want)
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "/", ".", "..", "a/b", "%", "%41", "é", "\xff", "a.b", "claim/=x", "\x00"} {
		f.Add(s, "a/b/c")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ea, eb := escape(a), escape(b)
		if back, ok := unescape(ea); !ok || back != a {
			t.Fatalf("%q is escaped as %q and comes back as %q, %v", a, ea, back, ok)
		}
		if (a == b) != (ea == eb) {
			t.Fatalf("%q and %q have names %q and %q", a, b, ea, eb)
		}
		if strings.ContainsAny(ea, "/\x00") || ea == "." || ea == ".." {
			t.Fatalf("%q is no name of a znode", ea)
		}
		if back, ok := unescape(a); ok && escape(back) != a {
			t.Fatalf("%q is read as %q, which is written %q", a, back, escape(back))
		}
		d := groupDir("/g/x")
		bucket, _ := d.where(a)
		folder, _ := split(a)
		for n := range len(a) + 1 { // each prefix of a key leads to its bucket
			if !slices.Contains(d.below(a[:n], []string{"f", folder, "dother"}), bucket) {
				t.Fatalf("%q is in %s, which its prefix %q does not lead to", a, bucket, a[:n])
			}
		}
	})
}

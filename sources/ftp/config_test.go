package ftp

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	ok := pickup.Policy{OnSuccess: pickup.Delete()}
	for what, c := range map[string]struct {
		Config
		want []string
	}{
		"nothing":        {Config{}, []string{"URL", "OnSuccess"}},
		"all at once":    {Config{URL: "ftp://h/a", TLS: &tls.Config{}, ImplicitTLS: true, Connections: 1, Timeout: -1, Password: "a", PasswordFile: "b"}, []string{"TLS is set", "ImplicitTLS", "Connections is 1", "Timeout", "PasswordFile", "OnSuccess"}},
		"no URL":         {Config{URL: "ftp://u:pa%ss-secret@h", Policy: ok}, []string{"URL"}},
		"another scheme": {Config{URL: "http://u:secret@h/", Policy: ok}, []string{"ftp://"}},
		"no host":        {Config{URL: "ftp:///secret", Policy: ok}, []string{"user@host"}},
		"a query":        {Config{URL: "ftp://u:secret@h/?secret", Policy: ok}, []string{"%3F"}},
		"a port":         {Config{URL: "ftp://u:secret@h:70000/", Policy: ok}, []string{"port"}},
		"dots":           {Config{URL: "ftp://u:secret@h/a/../b", Policy: ok}, []string{`".."`}},
		"a line end":     {Config{URL: "ftp://u:secret@h/a%0aDELE", Policy: ok}, []string{"line end"}},
		"a user":         {Config{URL: "ftp://h/a", User: "a\r\nDELE b", Policy: ok}, []string{"User"}},
		"a folder above": {Config{URL: "ftp://h/a", Policy: pickup.Policy{OnSuccess: pickup.MoveTo("../b")}}, []string{"OnSuccess", "inside"}},
		"the root":       {Config{URL: "ftp://h//a", Policy: pickup.Policy{OnSuccess: pickup.MoveTo("/a/")}}, []string{"come again"}},
		"a tag":          {Config{URL: "ftp://h//a", Policy: pickup.Policy{OnSuccess: pickup.Tag("a", "b")}}, []string{"only objects"}},
	} {
		_, err := New(c.Config)
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", what, w, err)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: a password may be in: %v", what, err)
		}
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][3]string{
		"ftp://h":                {"h:21", "", "."},
		"ftp://u@h/":             {"h:21", "u", "."},
		"ftp://u@h/in":           {"h:21", "u", "in"},
		"ftp://u@h//in//a/":      {"h:21", "u", "/in/a"},
		"ftps://u:p@[::1]:990/a": {"[::1]:990", "u", "a"},
		"sftp://u@h/a%20b":       {"h:22", "u", "a b"},
		"ftp://a%40b@h:2121/":    {"h:2121", "a@b", "."},
	} {
		got, root, err := Config{URL: url}.target()
		if err != nil || [3]string{got.addr, got.user, root} != want {
			t.Errorf("%s: %q %q %q, %v", url, got.addr, got.user, root, err)
		}
	}
	c := Config{URL: "ftps://h", ImplicitTLS: true}
	if got, _, err := c.target(); err != nil || got.addr != "h:990" {
		t.Errorf("implicit TLS: %q, %v", got.addr, err)
	}
}

func TestNamesAreNotWhereFilesGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, folder string
		names       []string
		ok          bool
	}{
		{"ftp://h/a", "done", []string{"in", "in/done"}, false},
		{"ftp://h/a", "done/{2006}", []string{"in", "in/done/2026"}, false},
		{"ftp://h/a", "done/{2006}", []string{"in", "in/done"}, true},
		{"ftp://h/a", "done", []string{".", "done"}, false},
		{"ftp://h/a", "done", []string{"in", "done"}, true},
		{"ftp://h//a", "/a/done", []string{"in", "done/in"}, false},
		{"ftp://h//a", "/b/done", []string{"in", "done/in"}, true},
	} {
		s, err := New(Config{URL: c.url, Policy: pickup.Policy{OnSuccess: pickup.MoveTo(c.folder)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Names(c.names); (err == nil) != c.ok {
			t.Errorf("%q with %q: %v", c.names, c.folder, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

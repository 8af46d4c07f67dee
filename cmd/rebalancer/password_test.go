package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPasswordFromOutside(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file/@:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url  string
		env  map[string]string
		want string // the password
		err  string
	}{
		{url: "redis://host", want: ""},
		{url: "redis://u:own@host", env: map[string]string{"REBALANCER_STORE_PASSWORD": "other"}, want: "own"},
		{url: "redis://u@host", env: map[string]string{"REBALANCER_STORE_PASSWORD": "x y"}, want: "x y"},
		{url: "redis://host", env: map[string]string{"REBALANCER_STORE_PASSWORD_FILE": file}, want: "from a file/@:"},
		{url: "sqlite:///path", env: map[string]string{"REBALANCER_STORE_PASSWORD": "x"}, want: ""},
		{url: "redis://host", env: map[string]string{"REBALANCER_STORE_PASSWORD_FILE": file, "REBALANCER_STORE_PASSWORD": "x"}, err: "exclude"},
		{url: "redis://host", env: map[string]string{"REBALANCER_STORE_PASSWORD_FILE": file + "no"}, err: "no such file"},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		p := &program{lookup: func(k string) (string, bool) { v, ok := c.env[k]; return v, ok }}
		got, err := p.withPassword("--store", u)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %v: %v", c.url, c.env, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if pw, _ := got.User.Password(); pw != c.want || got.User.Username() != u.User.Username() {
			t.Errorf("%s %v: %s", c.url, c.env, got)
		}
	}
}

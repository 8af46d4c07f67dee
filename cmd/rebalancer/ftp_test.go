package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer"
)

func TestFTPRefused(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"ftp://u:secret@h/a?timeout=secret":               "parameter timeout",
		"ftp://u:secret@h/a?connections=secret":           "parameter connections",
		"ftps://u:secret@h/a?implicit_tls=secret":         "parameter implicit_tls",
		"ftp://u:secret@h/a?trust_passive_address=secret": "parameter trust_passive_address",
		"ftp://u:secret@h/a?x=secret":                     "parameter x",
		"ftps://u:secret@h/a?cacertfile=/nowhere":         "cacertfile",
		"ftp://u:secret@h/a?implicit_tls=true":            "ImplicitTLS",
		"ftp://u:secret@h/a?connections=1":                "Connections",
		"ftp://u:secret@/a":                               "user@host",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = openFTP(t.Context(), u, sourceOptions{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestFTPPath(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"ftp://u:secret@h:2121//data?timeout=5s": "ftp://h:2121//data/in/a%20b",
		"ftps://u:secret@h/data":                 "ftps://h/data/in/a%20b",
		"sftp://u:secret@h":                      "sftp://h/in/a%20b",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		s, err := openFTP(t.Context(), u, sourceOptions{success: settle{"move", "done"}, failure: settle{"move", "failed"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.path(&rebalancer.Message{Resource: "in", Key: "a b"}); got != want || !s.DeadLetters() {
			t.Errorf("%s: %q", raw, got)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHostKeyInAURL: half of all fingerprints hold a +, which means a space there.
func TestHostKeyInAURL(t *testing.T) {
	t.Parallel()
	const key = "SHA256:ab+cd/ef+g"
	for _, written := range []string{key, url.QueryEscape(key)} {
		u, err := url.Parse("sftp://u@h/a?host_key=" + written)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := ftpConfig(u); err != nil || len(c.SSH.HostKeys) != 1 || c.SSH.HostKeys[0] != key {
			t.Errorf("%s: %q, %v", written, c.SSH.HostKeys, err)
		}
	}
}

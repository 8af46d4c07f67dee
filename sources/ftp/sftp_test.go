//go:build linux

package ftp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/sources"
)

func TestSFTPWritesAndMoves(t *testing.T) {
	t.Parallel()
	s, r, dir := sftpWorld(t)
	ctx := t.Context()
	shut := s.Mkdir("shut")
	writeFile(t, shut+"/x", "x")
	if err := os.Chmod(shut, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what string
		got  error
		want error // nil: no error
	}{
		{"put", r.put(ctx, dir+"/a", []byte("one")), nil},
		{"put again", r.put(ctx, dir+"/a", []byte("two")), fs.ErrExist},
		{"put nowhere", r.put(ctx, dir+"/no/a", []byte("two")), fs.ErrNotExist},
		{"put where it is forbidden", r.put(ctx, shut+"/a", nil), fs.ErrPermission},
		{"mkdir", r.mkdir(ctx, dir+"/d"), nil},
		{"mkdir again", r.mkdir(ctx, dir+"/d"), nil},
		{"mkdir on a file", r.mkdir(ctx, dir+"/a"), errRefused},
		{"mkdir nowhere", r.mkdir(ctx, dir+"/no/d"), fs.ErrNotExist},
		{"rename", r.rename(ctx, dir+"/a", dir+"/d/a"), nil},
		{"put the next", r.put(ctx, dir+"/a", []byte("two")), nil},
		{"rename over another", r.rename(ctx, dir+"/a", dir+"/d/a"), fs.ErrExist},
		{"rename over a directory", r.rename(ctx, dir+"/a", dir+"/d"), fs.ErrExist},
		{"rename to nowhere", r.rename(ctx, dir+"/a", dir+"/no/a"), errRefused},
		{"rename what is not there", r.rename(ctx, dir+"/b", dir+"/d/b"), fs.ErrNotExist},
		{"rename where it is forbidden", r.rename(ctx, dir+"/a", shut+"/a"), fs.ErrPermission},
		{"remove", r.remove(ctx, dir+"/a"), nil},
		{"remove again", r.remove(ctx, dir+"/a"), fs.ErrNotExist},
		{"remove where it is forbidden", r.remove(ctx, shut+"/x"), fs.ErrPermission},
		{"remove an empty directory", errors.Join(r.mkdir(ctx, dir+"/e"), r.remove(ctx, dir+"/e")), errRefused},
		{"a zero byte", r.remove(ctx, dir+"/d/a\x00b"), fs.ErrInvalid},
		{"sign of life", r.alive(ctx), nil},
	} {
		expect(t, step.what, step.got, step.want)
	}
	if body, err := readWhole(ctx, r, dir+"/d/a", 0); body != "one" || err != nil {
		t.Errorf("the file that was moved and was not to be overwritten holds %q, %v", body, err)
	}
}

// errRefused stands for a reply of the server that means nothing else.
var errRefused = errors.New("refused")

// expect compares an error. All errors that are wanted are replies: the connection goes on after them.
func expect(t *testing.T, what string, got, want error) {
	t.Helper()
	var a *answer
	switch {
	case want == nil && got == nil:
	case want == nil || got == nil || broken(got):
		t.Errorf("%s: error %v, want %v", what, got, want)
	case want == errRefused:
		if errors.As(got, &a) && a.err != nil {
			t.Errorf("%s: error %v, want one without a meaning", what, got)
		}
	case !errors.Is(got, want):
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

// A server that is not OpenSSH may overwrite, so it is asked before.
func TestSFTPRenameAsksWhereItMayOverwrite(t *testing.T) {
	t.Parallel()
	_, r, dir := sftpWorld(t)
	r.refuses = false
	writeFile(t, dir+"/a", "one")
	writeFile(t, dir+"/b", "two")
	expect(t, "rename over another", r.rename(t.Context(), dir+"/a", dir+"/b"), fs.ErrExist)
	expect(t, "rename", r.rename(t.Context(), dir+"/a", dir+"/c"), nil)
}

func TestSFTPListsByPages(t *testing.T) {
	t.Parallel()
	s, r, dir := sftpWorld(t)
	in := s.Mkdir("in")
	const n = 2500
	for i := range n {
		writeFile(t, fmt.Sprintf("%s/%06d", in, i), strings.Repeat("x", i%7))
	}
	all, longest := listed(t, r, in)
	if len(all) != n || longest > n/5 {
		t.Fatalf("%d of %d names, the longest page has %d", len(all), n, longest)
	}
	fi, err := os.Stat(in + "/000013")
	if err != nil {
		t.Fatal(err)
	}
	seen, err := r.stat(t.Context(), in+"/000013")
	e := all["000013"]
	if err != nil || e.info == nil || !e.info.Same(*seen.info) || e.info.Size != 6 || e.info.ModTime.Unix() != fi.ModTime().Unix() || e.kind != regular || seen.kind != regular {
		t.Errorf("listed %v %v, looked at %v %v, %v", e, e.info, seen, seen.info, err)
	}
	if all, _ := listed(t, r, dir); all["in"].kind != directory {
		t.Errorf("the directory is %v", all["in"])
	}
	enough := errors.New("enough")
	pages := 0
	if err := r.list(t.Context(), in, func([]entry) error { pages++; return enough }); err != enough || pages != 1 {
		t.Errorf("a listing whose first page is refused: %v after %d pages", err, pages)
	}
	expect(t, "the connection after it", r.alive(t.Context()), nil)
}

func TestSFTPListingsThatFail(t *testing.T) {
	t.Parallel()
	s, r, dir := sftpWorld(t)
	shut := s.Mkdir("shut")
	if err := os.Chmod(shut, 0); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/file", "")
	for name, want := range map[string]error{"missing": sources.ErrGone, "shut": fs.ErrPermission, "file": sources.ErrGone, "a\x00b": fs.ErrInvalid} {
		expect(t, name, r.list(t.Context(), dir+"/"+name, func([]entry) error { t.Error("a page"); return nil }), want)
	}
}

func TestSFTPNames(t *testing.T) {
	t.Parallel()
	s, r, _ := sftpWorld(t)
	in := s.Mkdir("in")
	names := []string{" ", "a b", "line\nfeed", "\r\n", "\x01\x1b[2J\x7f", "\xff\xfe", "-rf", "~", "*", "a\\b", "..a", strings.Repeat("x", 255), "é"}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(in, n), []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, _ := listed(t, r, in)
	if len(all) != len(names) {
		t.Errorf("%d names listed, want %d", len(all), len(names))
	}
	to := s.Mkdir("to")
	for _, n := range names {
		e, err := r.stat(t.Context(), in+"/"+n)
		if all[n].kind != regular || err != nil || e.name != n {
			t.Errorf("%q: listed as %v, looked at as %v, %v", n, all[n], e, err)
		}
		body, err := readWhole(t.Context(), r, in+"/"+n, 0)
		if body != n {
			t.Errorf("%q holds %q, %v", n, body, err)
		}
		expect(t, fmt.Sprintf("move %q", n), r.rename(t.Context(), in+"/"+n, to+"/"+n), nil)
		expect(t, fmt.Sprintf("remove %q", n), r.remove(t.Context(), to+"/"+n), nil)
	}
}

func TestSFTPFollowsNoLinks(t *testing.T) {
	t.Parallel()
	s, r, dir := sftpWorld(t)
	in := s.Mkdir("in")
	writeFile(t, dir+"/secret", "secret")
	for name, to := range map[string]string{"link": "../secret", "dir": "..", "nowhere": "nothing"} {
		if err := os.Symlink(to, in+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	all, _ := listed(t, r, in)
	for name, e := range all {
		seen, err := r.stat(t.Context(), in+"/"+name)
		if e.kind != other || seen.kind != other || err != nil {
			t.Errorf("%s is %v, %v, %v", name, e.kind, seen.kind, err)
		}
	}
	if _, err := r.open(t.Context(), in+"/link", 0); !errors.Is(err, fs.ErrNotExist) || broken(err) {
		t.Errorf("a link was opened: %v", err)
	}
	expect(t, "mkdir on a link to a directory", r.mkdir(t.Context(), in+"/dir"), errRefused)
	expect(t, "remove of a link", r.remove(t.Context(), in+"/link"), nil)
	if _, err := os.Stat(dir + "/secret"); err != nil {
		t.Error(err)
	}
}

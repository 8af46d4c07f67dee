package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/sources"
)

// storeDriver opens the stores of one URL scheme. A new driver is one file here and a line in storeDrivers.
type storeDriver struct {
	scheme string
	form   string // for the help
	// open opens the store. existing: it must be there already, else errNotFound.
	open func(ctx context.Context, u *url.URL, existing bool) (backends.Store, error)
	// schema is what must be there before, for an administrator to make. nil: nothing.
	schema func(u *url.URL) (string, error)
}

// sourceDriver opens the sources of one URL scheme. A new driver is one file here and a line in sourceDrivers.
type sourceDriver struct {
	scheme string
	form   string
	open   func(ctx context.Context, u *url.URL, o sourceOptions) (*openSource, error)
}

// sourceOptions are the flags that concern a source.
type sourceOptions struct {
	success settle // delete, move, keep or tag
	failure settle // move, keep, tag, stop or nothing
	logger  *slog.Logger
	list    bool // its resources are to be discovered
}

// settle is the value of --on-success or --on-failure.
type settle struct {
	action string // "", "delete", "move", "keep", "tag" or "stop"
	folder string // of move; of tag: KEY=VALUE
}

// stays reports whether the message is to stay where it is, which only files and objects can.
func (s settle) stays() bool { return s.action == "keep" || s.action == "tag" }

// openSource is a source and what the command line wants to know of it.
type openSource struct {
	sources.Source
	close func() error
	// path says where a message's payload can be found, "" when it has no such place.
	path func(*rebalancer.Message) string
	// local says why the store must not be left out, "" when it may: the source is of this machine alone.
	notLocal string
	// examine is what doctor looks at beyond what all sources have, and examineResource the same of one resource that is there; nil: nothing. They take no
	// message, and change nothing unless they may try writes.
	examine         func(ctx context.Context, d *doctor)
	examineResource func(ctx context.Context, d *doctor, check, name string, tryWrites bool)
}

func storeDrivers() []storeDriver {
	return slices.Concat([]storeDriver{sqliteStore()}, postgresStores(), redisStores(), []storeDriver{zookeeperStore(), sqlserverStore(), memoryStore()})
}

func sourceDrivers() []sourceDriver {
	return slices.Concat([]sourceDriver{fileSource()}, rabbitmqSources(), []sourceDriver{sqsSource(), s3Source()}, ftpSources())
}

// memoryStore explains itself: it is for programs, not for processes.
func memoryStore() storeDriver {
	return storeDriver{scheme: "memory", open: func(context.Context, *url.URL, bool) (backends.Store, error) {
		return nil, usagef("a memory store lives in one process, nobody else would see it: use sqlite:///path for processes on one machine")
	}}
}

func (p *program) openStore(ctx context.Context, raw string, existing bool) (backends.Store, error) {
	u, err := parseURL("--store", raw)
	if err != nil {
		return nil, err
	}
	if u, err = p.withPassword("--store", u); err != nil {
		return nil, err
	}
	for _, d := range p.stores {
		if d.scheme == u.Scheme {
			return d.open(ctx, u, existing)
		}
	}
	return nil, p.unknownStore(u)
}

func (p *program) unknownStore(u *url.URL) error {
	var forms []string
	for _, d := range p.stores {
		if d.form != "" {
			forms = append(forms, d.form)
		}
	}
	return usagef("--store %s: the scheme %q is not known: use %s", shown(u), u.Scheme, strings.Join(forms, ", "))
}

func (p *program) openSource(ctx context.Context, raw string, o sourceOptions) (*openSource, error) {
	u, err := parseURL("--source", raw)
	if err == nil {
		u, err = p.withPassword("--source", u)
	}
	if err != nil {
		return nil, err
	}
	var forms []string
	for _, d := range p.sources {
		if d.scheme == u.Scheme {
			return d.open(ctx, u, o)
		}
		forms = append(forms, d.form)
	}
	return nil, usagef("--source %s: the scheme %q is not known: use %s", shown(u), u.Scheme, strings.Join(forms, ", "))
}

// shown is what an error may show of a URL: the rest of it can be a password, or a part of one. Of one without // nobody can tell what it is.
func shown(u *url.URL) string {
	if u.Opaque != "" {
		return u.Scheme + ":"
	}
	who := ""
	if u.User != nil {
		who = url.User(u.User.Username()).String() + "@"
	}
	return u.Scheme + "://" + who + u.Host
}

// parseURL never shows what it was given, nor the reason, which quotes it: in u:pa/ss@host what looks like a wrong port begins a password.
func parseURL(flag, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, usagef("%s is no URL: write SCHEME://USER@HOST:PORT/PATH, and escape what is special in each part (%%2F for /)", flag)
	}
	if u.Scheme == "" {
		return nil, usagef("%s must be a URL like file:///data or sqlite:///var/lib/app/group.db", flag)
	}
	if _, err := url.ParseQuery(u.RawQuery); err != nil { // else what it does not understand would be left out
		return nil, usagef("%s: the parameters behind ? cannot be read: write %% as %%25, ; as %%3B and & as %%26 in their values", flag)
	}
	return u, nil
}

// localPath is the absolute path that a URL like file:///path names.
func localPath(u *url.URL) (string, error) {
	switch {
	case u.Opaque != "" || u.Host != "":
		return "", usagef("%s: an absolute path is needed, after three slashes: %s:///path", u.Redacted(), u.Scheme)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", usagef("%s: only a path is allowed; write ? as %%3F and # as %%23", u.Redacted())
	case u.Path == "":
		return "", usagef("%s: the path is missing", u.Redacted())
	case strings.ContainsRune(u.Path, 0):
		return "", usagef("%s: a path cannot hold a zero byte", u.Redacted())
	}
	return u.Path, nil
}

// parseSettle reads --on-success or --on-failure; other is the word allowed beside move:DIR, keep and tag:KEY=VALUE.
func parseSettle(flag, value, other string) (settle, error) {
	if value == "" || value == other {
		return settle{action: value}, nil
	}
	if dir, ok := strings.CutPrefix(value, "move:"); ok && dir != "" {
		return settle{action: "move", folder: dir}, nil
	}
	if tag, ok := strings.CutPrefix(value, "tag:"); ok && strings.Index(tag, "=") > 0 {
		return settle{action: "tag", folder: tag}, nil
	}
	if value == "keep" {
		return settle{action: value}, nil
	}
	return settle{}, usagef("--%s is %q: it must be %s, move:DIR, keep or tag:KEY=VALUE", flag, value, other)
}

func quoteIfOdd(s string) string {
	if q := fmt.Sprintf("%q", s); s == "" || len(q) != len(s)+2 {
		return q
	}
	return s
}

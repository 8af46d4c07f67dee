package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

var _ backends.Inspector = (*Store)(nil)

var versionLine = regexp.MustCompile(`(?m)^Zookeeper version: (\d+(?:\.\d+)*)`)

// srvr asks one server for its state by the four letter word, which servers allow unless they are told otherwise.
func (s *Store) srvr(ctx context.Context, server string) (string, error) {
	conn, err := s.cfg.open(ctx, "tcp", server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err = io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	return string(b), err
}

// Version is the version of the first server that tells. Servers that allow no four letter words are "ZooKeeper".
func (s *Store) Version(ctx context.Context) (string, error) {
	if err := s.open(); err != nil {
		return "", err
	}
	var errs []error
	for _, server := range s.cfg.servers {
		text, err := s.srvr(ctx, server)
		switch m := versionLine.FindStringSubmatch(text); {
		case m != nil:
			return "ZooKeeper " + m[1], nil
		case err == nil:
			return "ZooKeeper (its version is not told: srvr is not in 4lw.commands.whitelist)", nil
		}
		errs = append(errs, fmt.Errorf("server %s: %w", server, err))
	}
	return "", s.wrap(errors.Join(errs...))
}

// Warnings has nothing to tell: what would weaken the promises (forceSync=no) a server does not show.
func (s *Store) Warnings(context.Context) ([]string, error) { return nil, s.open() }

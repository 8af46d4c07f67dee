package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/sqlite"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/file"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// node is one process of the group.
func node(ctx context.Context, dir, name string) error {
	store, err := sqlite.Open(filepath.Join(dir, "group", "group.db"))
	if err != nil {
		return err
	}
	defer store.Close()

	source, err := file.New(file.Config{
		Root: filepath.Join(dir, "in"),
		Policy: pickup.Policy{
			OnSuccess: pickup.MoveTo("done"),
			StableFor: -1, // files are renamed into their place when they are complete
			Interval:  200 * time.Millisecond,
		},
	})
	if err != nil {
		return err
	}
	defer source.Close()

	journal, err := openJournal(dir, name)
	if err != nil {
		return err
	}
	defer journal.Close()

	g, err := group.New(group.Config{
		Name:      "quickstart",
		Node:      name,
		Store:     store,
		Source:    source,
		Resources: group.Static(directories()...),
		TTL:       ttl,
		OnEvent:   tell,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	return g.Consume(withParent(ctx), func(ctx context.Context, m *rebalancer.Message) error {
		return handle(ctx, journal, m)
	})
}

// handle reads one file, and writes down when it began and ended.
func handle(ctx context.Context, journal *os.File, m *rebalancer.Message) error {
	if err := record(journal, began, m); err != nil {
		return err
	}
	body, err := m.Open(ctx)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	pause(ctx, handleTime) // it is hard work
	if err := record(journal, ended, m); err != nil {
		return err
	}
	return nil
}

// tell reports to the stage what this node holds.
func tell(e group.Event) {
	switch e.Kind {
	case group.KindClaimed, group.KindReleased, group.KindLost:
		fmt.Println(e.Kind, e.Resource)
	}
}

// withParent ends with ctx or with the process that started this one.
func withParent(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other end is closed
	}()
	return ctx
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

// example is what the nodes share.
type example struct {
	store   backends.Store
	source  *memory.Source
	ledger  *Ledger
	account string
	out     io.Writer
}

// node joins the group, works one message, and leaves. It returns the message as it was delivered.
func (e *example) node(ctx context.Context, name, amount string) (*rebalancer.Message, error) {
	g, err := group.New(group.Config{
		Name: groupName, Node: name, Store: e.store, Source: e.source, TTL: ttl,
		Resources: group.Static(e.account),
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if err := e.source.Send(e.account, amount); err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var worked *rebalancer.Message
	err = g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
		if err := e.ledger.Handle(ctx, m); err != nil {
			return err
		}
		fmt.Fprintf(e.out, "the %s node books %s under fence %d\n", name, m.Body, m.Fence)
		worked = m
		leave()
		return nil
	})
	if err == nil && worked == nil {
		err = ctx.Err() // the program was interrupted
	}
	return worked, err
}

package watermill_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	stores "github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/memory"

	"github.com/rebalancer-go/rebalancer/adapters/watermill"
)

// A handler that was written for Watermill's router, with its middleware, works the queue of a group.
func Example() {
	source := memory.New()
	if err := source.Send("orders", "one", "two"); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	handle := func(m *message.Message) error {
		fmt.Printf("%s of %s\n", m.Payload, m.Metadata.Get(watermill.MetadataResource))
		if string(m.Payload) == "two" {
			stop()
		}
		return nil
	}
	h, err := watermill.Handler(watermill.Config{Middleware: []message.HandlerMiddleware{middleware.Recoverer}}, handle)
	if err != nil {
		log.Fatal(err)
	}
	g, err := group.New(group.Config{Name: "orders", Store: stores.New(), Source: source, Resources: group.Static("orders"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	if err := g.Consume(ctx, h); err != nil {
		log.Fatal(err)
	}
	// Output:
	// one of orders
	// two of orders
}

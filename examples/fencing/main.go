// Command fencing shows how to keep a database safe from an owner that was replaced and does not know it yet: a process that was
// frozen in the middle of its work, say. The library cannot stop it; the database can, with the fence that each message carries.
// The handler is in ledger.go. The program takes the URL of a PostgreSQL database, in which it makes two schemas, and
// lets two nodes work an account one after the other; then the first writes once more, as if it had been frozen meanwhile.
//
//	go run ./examples/fencing postgres://user@host/db
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/sources/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		log.Fatal("usage: fencing postgres://user@host/db")
	}
	if err := run(ctx, os.Args[1], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

const (
	groupName = "fencing-example"
	ttl       = 5 * time.Second
)

// account is a new one for each run, so that the sums are those of this run.
func account() string { return "acme-" + time.Now().UTC().Format("150405.000") }

func run(ctx context.Context, url string, out io.Writer) error {
	db, err := pgxpool.New(ctx, url)
	if err != nil {
		return errors.New("that is no URL of a PostgreSQL database: postgres://user@host/db") // the parser's error may show the password
	}
	defer db.Close()
	if _, err := db.Exec(ctx, tables); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	store, err := postgres.New(db, postgres.CreateSchema(), postgres.Schema("fencing_example_group"))
	if err != nil {
		return err
	}
	defer store.Close()
	// Nobody works in this group: its first start need not wait.
	if _, err := admin.Create(ctx, store, groupName, admin.Settings{TTL: ttl}); err != nil {
		return err
	}
	e := &example{store: store, source: memory.New(), ledger: &Ledger{db}, account: account(), out: out}

	first, err := e.node(ctx, "first", "5")
	if err != nil {
		return err
	}
	if _, err := e.node(ctx, "second", "7"); err != nil {
		return err
	}
	late := *first
	late.ID, late.Body = "late", []byte("1000")
	err = e.ledger.Handle(ctx, &late)
	fmt.Fprintf(out, "the first node wakes up and writes under its old fence %d: %v\n", late.Fence, err)
	if !errors.Is(err, rebalancer.ErrLost) {
		return fmt.Errorf("a stale write was not refused: %w", err)
	}
	total, err := e.ledger.Total(ctx, e.account)
	fmt.Fprintf(out, "the account has %d\n", total)
	return err
}

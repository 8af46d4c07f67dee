// Command s3prefixes works the objects below the prefixes of a bucket, one prefix by one process at a time. The prefixes are discovered: a new customer's
// prefix is worked within half a minute, without a restart. What was worked is moved to done/, what cannot be worked to failed/.
//
//	POSTGRES_URL=postgres://user@db/app go run ./examples/s3prefixes my-bucket incoming 'customer-*'
//
// Region, credentials and endpoint are those of the environment of every program of AWS.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/s3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("POSTGRES_URL"), os.Args[1:], log.Printf); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, postgresURL string, args []string, say func(format string, args ...any)) error {
	if postgresURL == "" || len(args) != 3 {
		return errors.New("usage: POSTGRES_URL=… s3prefixes BUCKET BASE PATTERN")
	}
	bucket, base, pattern := args[0], args[1], args[2]
	store, err := postgres.Open(postgresURL, postgres.CreateSchema())
	if err != nil {
		return err
	}
	defer store.Close()
	shared, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	source, err := s3.New(s3.Config{
		Client: awss3.NewFromConfig(shared, func(o *awss3.Options) { o.UsePathStyle = o.BaseEndpoint != nil }),
		Bucket: bucket, Base: base,
		Policy: pickup.Policy{OnSuccess: pickup.MoveTo("/done"), OnFailure: pickup.MoveTo("/failed")}, // from the top of the bucket
	})
	if err != nil {
		return err
	}
	defer source.Close()
	g, err := group.New(group.Config{
		Name:   "customers",
		Store:  store,
		Source: source,
		Resources: group.Discover(0, func(ctx context.Context) ([]string, error) {
			return source.Discover(ctx, pattern)
		}),
	})
	if err != nil {
		return err
	}
	return g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
		body, err := m.Open(ctx)
		if err != nil {
			return err
		}
		defer body.Close()
		n, err := io.Copy(io.Discard, body)
		if err != nil {
			return err
		}
		say("%s: %s, %d bytes, fence %d", m.Resource, m.Key, n, m.Fence)
		return nil
	})
}

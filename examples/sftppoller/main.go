// Command sftppoller fetches files from the directories of an SFTP server, as one active process and any number of backups: the backups stand by, and take
// over when the active one ends or crashes. A file that was worked is moved to done/ beside it, one that cannot be worked to failed/.
//
//	POSTGRES_URL=postgres://user@db/app SFTP_URL=sftp://user@host//upload SFTP_KEY=~/.ssh/id_ed25519 SFTP_HOST_KEY=SHA256:… go run ./examples/sftppoller in
//
// The fingerprint is what ssh-keygen -l shows of the server's key.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/backends/postgres"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/ftp"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Args[1:], log.Printf); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, env func(string) string, directories []string, say func(format string, args ...any)) error {
	if env("POSTGRES_URL") == "" || env("SFTP_URL") == "" || len(directories) == 0 {
		return errors.New("usage: POSTGRES_URL=… SFTP_URL=… SFTP_KEY=… SFTP_HOST_KEY=… sftppoller DIRECTORY…")
	}
	store, err := postgres.Open(env("POSTGRES_URL"), postgres.CreateSchema())
	if err != nil {
		return err
	}
	defer store.Close()
	source, err := ftp.New(ftp.Config{
		URL: env("SFTP_URL"),
		SSH: ftp.SSH{PrivateKeyFile: env("SFTP_KEY"), HostKeys: []string{env("SFTP_HOST_KEY")}},
		Policy: pickup.Policy{
			StableFor: 5 * time.Second, // a file is whole when it has not changed for so long
			OnSuccess: pickup.MoveTo("done"), OnFailure: pickup.MoveTo("failed"),
		},
	})
	if err != nil {
		return err
	}
	defer source.Close()
	g, err := group.New(group.Config{
		Name:      "uploads",
		Store:     store,
		Source:    source,
		Resources: group.Static(directories...),
		MaxActive: 1, // the others stand by
	})
	if err != nil {
		return err
	}
	return g.Consume(ctx, func(ctx context.Context, m *rebalancer.Message) error {
		body, err := m.Open(ctx) // a stream: a file may be larger than memory
		if err != nil {
			return err
		}
		defer body.Close()
		n, err := io.Copy(io.Discard, body)
		if err != nil {
			return err
		}
		say("%s/%s: %d bytes, fence %d", m.Resource, m.Key, n, m.Fence)
		return nil
	})
}

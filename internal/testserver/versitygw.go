//go:build linux

package testserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// VersityGW is a server that speaks S3, over a directory in which each bucket is a directory. It has conditional requests, versions where they are asked
// for, tags and uploads in parts. Its listings are not encoded, so that keys which XML cannot hold are not to be had.
type VersityGW struct {
	*Process
	Port int
	// Access and Secret are the credentials of its only user, who may do everything.
	Access, Secret string
}

// StartVersityGW starts one without buckets.
func StartVersityGW(t testing.TB) *VersityGW {
	t.Helper()
	path := Need(t, "", filepath.Join(servers(t), "versitygw", "bin", "versitygw"))
	s := &VersityGW{Port: Port(t), Access: "access", Secret: "secret-key"}
	dir := Dir(t)
	for _, sub := range []string{"data", "versions"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Process = Start(t, Spec{
		Name: "versitygw", Path: path, Dir: dir, Ready: s.ready,
		Args: []string{"--port", s.Addr(), "--health", "/health", "--keep-alive", "--quiet", "posix", "--versioning-dir", filepath.Join(dir, "versions"), filepath.Join(dir, "data")},
		Env:  []string{"ROOT_ACCESS_KEY=" + s.Access, "ROOT_SECRET_KEY=" + s.Secret},
	})
	return s
}

// Addr is where it listens, as host:port.
func (s *VersityGW) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Endpoint is the server's URL, for a client that puts the bucket into the path.
func (s *VersityGW) Endpoint() string { return "http://" + s.Addr() }

func (s *VersityGW) ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint()+"/health", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s", answer.Status)
	}
	return nil
}

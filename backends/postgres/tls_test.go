//go:build linux

package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// certificate writes one for a name and an address, signed by itself, with its key, for the server's user.
func certificate(t *testing.T, name string, ip net.IP) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	if ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	der2, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := testserver.Dir(t)
	uid, gid := testserver.IDs(t, "postgres")
	write := func(file, kind string, der []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert", "CERTIFICATE", der), write("key", "PRIVATE KEY", der2)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	serve := func(ip net.IP) (url string) {
		cert, key := certificate(t, "db.example", ip)
		p := testserver.StartPostgres(t, 15, "-c", "ssl=on", "-c", "ssl_cert_file="+cert, "-c", "ssl_key_file="+key)
		p.Exec(t, DDL(DefaultSchema))
		return strings.Replace(p.URL("postgres", secret), "sslmode=disable", "sslmode=verify-full&sslrootcert="+cert, 1)
	}
	good := serve(net.IPv4(127, 0, 0, 1))
	uses(t, openStore(t, good))
	fails(t, openStore(t, serve(nil)), true, "not for this name", "127.0.0.1")
	other, _ := certificate(t, "db.example", nil)
	before, _, _ := strings.Cut(good, "sslrootcert=")
	fails(t, openStore(t, before+"sslrootcert="+other), true, "not trusted")
}

//go:build linux

package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// CA is a certificate authority of a test, good for an hour.
type CA struct {
	// PEM is its certificate, Pool the same for clients that trust it alone.
	PEM  []byte
	Pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes one.
func NewCA(t testing.TB) *CA {
	t.Helper()
	c := &CA{Pool: x509.NewCertPool()}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "a test's CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	c.PEM, c.key = c.sign(t, template)
	block, _ := pem.Decode(c.PEM)
	var err error
	if c.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	c.Pool.AddCert(c.cert)
	return c
}

// Issue makes a certificate and its key, in PEM, for a server of this name, which is the address 127.0.0.1 too, or for a client.
func (c *CA) Issue(t testing.TB, name string) (certPEM, keyPEM []byte) {
	t.Helper()
	certPEM, key := c.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Client is the configuration of a client that trusts this authority; with a name it shows a certificate for it.
func (c *CA) Client(t testing.TB, name string) *tls.Config {
	t.Helper()
	config := &tls.Config{RootCAs: c.Pool, MinVersion: tls.VersionTLS12}
	if name != "" {
		pair, err := tls.X509KeyPair(c.Issue(t, name))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// sign makes a key and signs its certificate, by itself as long as there is no authority.
func (c *CA) sign(t testing.TB, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, with := c.cert, c.key
	if parent == nil {
		parent, with = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, with)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

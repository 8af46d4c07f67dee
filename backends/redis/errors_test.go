package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

// openErr opens a session and gives the error, which must not hold the secret.
func openErr(t *testing.T, s *Store) error {
	t.Helper()
	_, err := s.Open(short(t), backends.SessionOptions{Group: "g", TTL: time.Minute})
	if err == nil {
		t.Fatal("a session was opened")
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("the error tells the password: %v", err)
	}
	return err
}

func wantText(t *testing.T, err error, fatal bool, parts ...string) {
	t.Helper()
	if errors.Is(err, backends.ErrFatal) != fatal {
		t.Errorf("fatal is %v, want %v: %v", !fatal, fatal, err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q is not in the error: %v", p, err)
		}
	}
}

func TestErrorsSayWhatAndWhere(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind, "--requirepass", "right")
		server.Password = "right"
		addr := server.Addr()
		wantText(t, openErr(t, connect(t, ":s3cret@"+addr)), true, addr, "password")
		wantText(t, openErr(t, connect(t, "nobody:s3cret@"+addr)), true, addr, "user")
		wantText(t, openErr(t, connect(t, addr)), true, addr, "password")
		wantText(t, openErr(t, connect(t, ":right@"+addr+"/99")), true, addr, "no database of that number")
		begin(t, connect(t, ":right@"+addr), time.Minute)
		replica := testserver.StartRedis(t, kind, "--replicaof", "127.0.0.1 1")
		wantText(t, openErr(t, connect(t, replica.Addr())), false, replica.Addr())
	})
	t.Run("unreachable", func(t *testing.T) {
		t.Parallel()
		wantText(t, openErr(t, connect(t, ":s3cret@127.0.0.1:1")), false, "127.0.0.1:1", "refused")
		wantText(t, openErr(t, connect(t, ":s3cret@host.invalid:6379")), false, "host.invalid:6379")
	})
}

func TestServersThatCannotKeepAGroup(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		for _, policy := range []string{"allkeys-lru", "volatile-lru", "volatile-ttl", "volatile-random"} {
			server := testserver.StartRedis(t, kind, "--maxmemory", "100mb", "--maxmemory-policy", policy)
			wantText(t, openErr(t, connect(t, server.Addr())), true, server.Addr(), policy, "noeviction")
			grant(t, server, "", "-info")
			wantText(t, openErr(t, connect(t, "app:secret@"+server.Addr())), true, policy)
		}
		begin(t, connect(t, testserver.StartRedis(t, kind, "--maxmemory", "100mb").Addr()), time.Minute)
		begin(t, connect(t, testserver.StartRedis(t, kind, "--maxmemory-policy", "allkeys-lru").Addr()), time.Minute)
		nodes := testserver.StartRedisCluster(t, kind, 2)
		for _, n := range nodes { // one of them has the group; the other answers MOVED
			if _, err := connect(t, n.Addr()).Open(short(t), backends.SessionOptions{Group: "g", TTL: time.Minute}); err != nil {
				wantText(t, err, true, n.Addr(), "redis.ClusterClient")
			}
		}
		single := testserver.StartRedis(t, kind)
		wantText(t, openErr(t, over(t, clusterClient([]*testserver.RedisServer{single}))), true, single.Addr(), "Cluster")
	})
}

// An older version is refused by what INFO tells of it.
func TestOldServerIsRefused(t *testing.T) {
	t.Parallel()
	for version, fits := range map[string]bool{"6.2.14": false, "5.0.7": false, "7.0.15": true, "7.2.4": true, "8.0.2": true, "10.1.0": true, "": true} {
		sv := server{}
		sv.read(fields("# Server\r\nredis_version:"+version+"\r\n"), nil)
		if err := sv.unfit(); (err == nil) != fits {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestVersionAndDurability(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind, "--appendonly", "yes", "--appendfsync", "everysec")
		s := connect(t, server.Addr())
		version, err := s.Version(short(t))
		if want := map[testserver.RedisKind]string{testserver.Redis: "Redis 7.", testserver.Valkey: "Valkey 8."}[kind]; err != nil || !strings.HasPrefix(version, want) {
			t.Errorf("version %q, %v; want %s…", version, err, want)
		}
		if w := warnings(t, s); !strings.Contains(w, "appendfsync") {
			t.Errorf("warnings: %q", w)
		}
		server.Must("CONFIG", "SET", "appendonly", "no")
		if w := warnings(t, s); !strings.Contains(w, "append-only") {
			t.Errorf("warnings: %q", w)
		}
		grant(t, server, "", "-info")
		forbidden := connect(t, "app:secret@"+server.Addr())
		if version, err := forbidden.Version(short(t)); err != nil || !strings.Contains(version, "INFO") {
			t.Errorf("version %q, %v", version, err)
		}
	})
}

// Data of a later version of the store is left alone.
func TestLaterFormatIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		server.Must("HSET", spaceOf(DefaultPrefix, "g").keys[0], "format", "2")
		wantText(t, openErr(t, connect(t, server.Addr())), true, "newer version")
	})
}

func TestOutOfMemoryIsSaidAndHeals(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		server := testserver.StartRedis(t, kind)
		h := begin(t, connect(t, server.Addr()), time.Minute)
		server.Must("CONFIG", "SET", "maxmemory", "1")
		_, err := renewIn(t, h, h.Opened().Incarnation)
		if err == nil {
			t.Fatal("it was renewed")
		}
		wantText(t, err, false, "limit of memory")
		res := commitOne(t, h, h.Opened().Incarnation, backends.Txn{Puts: []backends.Put{{Key: "k"}}, Deletes: []string{"l"}})
		wantErr(t, "a commit without memory", res.Err, backends.ErrUnknown)
		server.Must("CONFIG", "SET", "maxmemory", "0")
		mustRenew(t, h)
	})
}

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "s3cret", "http://:s3cret@h:1", "redis://:s3/cret@h:1", "redis://:s3cret@h:port", "redis://:s3cret@h:1/x", "redis://:s#3cret@h",
		"redis://u:s3cret@h:1?no_such=1", "redis://u:s3cret@", "://s3cret", "redis://u:s3cret%@h"} {
		_, err := Open(url)
		wantErr(t, url, err, backends.ErrFatal)
		if strings.Contains(err.Error(), "3cret") || strings.Contains(err.Error(), "s3") {
			t.Errorf("the error for %q tells the password: %v", url, err)
		}
	}
	client := redis.NewClient(&redis.Options{Addr: "h:1"})
	defer client.Close()
	_, err := New(client, WithPrefix("{x}"), WithReplicas(-1))
	wantText(t, err, true, "prefix", "replicas", "h:1")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	_, err = New(ring)
	wantText(t, err, true, "Ring")
	_, err = New(nil)
	wantText(t, err, true, "client")
	s, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Open(short(t), backends.SessionOptions{Group: "g", TTL: longestTTL + 1})
	wantErr(t, "a ttl too long", err, backends.ErrFatal)
}

func TestTLS(t *testing.T) {
	onEach(t, func(t *testing.T, kind testserver.RedisKind) {
		certPEM, keyPEM, pool := certificate(t, "redis.example")
		server := testserver.StartRedisTLS(t, kind, certPEM, keyPEM)
		client := func(c *tls.Config) *Store {
			return over(t, redis.NewClient(&redis.Options{Addr: server.Addr(), Password: "", TLSConfig: c, MaxRetries: -1}))
		}
		everything(t, client(&tls.Config{RootCAs: pool, ServerName: "redis.example"}))
		wantText(t, openErr(t, client(&tls.Config{RootCAs: pool, ServerName: "other.example"})), true, server.Addr(), "another name", "other.example")
		wantText(t, openErr(t, client(&tls.Config{ServerName: "redis.example"})), true, server.Addr(), "not trusted")
		url := openURL(t, "rediss://:s3cret@"+server.Addr())
		defer url.Close()
		wantText(t, openErr(t, url), true, server.Addr(), "certificate")
		plain := testserver.StartRedis(t, kind)
		wrong := openURL(t, "rediss://:s3cret@"+plain.Addr())
		defer wrong.Close()
		wantText(t, openErr(t, wrong), false, plain.Addr(), "does not speak TLS")
		wantText(t, openErr(t, connect(t, server.Addr())), false, server.Addr(), "wants TLS")
	})
}

// certificate makes one for a name, signed by itself.
func certificate(t *testing.T, name string) (certPEM, keyPEM []byte, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certPEM, keyPEM, pool
}

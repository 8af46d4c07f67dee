//go:build linux

package ftp

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

const secret = "s3cret pass"

// newSigner makes a key: ed25519, ecdsa or rsa.
func newSigner(tb testing.TB, kind string) ssh.Signer {
	tb.Helper()
	var key any
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		tb.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// smallServer is a server of our own, for what an sshd without privileges cannot do, such as passwords.
func smallServer(tb testing.TB, cfg *ssh.ServerConfig, hostKeys ...ssh.Signer) string {
	tb.Helper()
	for _, k := range hostKeys {
		cfg.AddHostKey(k)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveOne(c, cfg)
		}
	}()
	return l.Addr().String()
}

func serveOne(c net.Conn, cfg *ssh.ServerConfig) {
	defer c.Close()
	_, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for n := range channels {
		ch, requests, err := n.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				_ = r.Reply(r.Type == "subsystem", nil)
			}
		}()
		go sftp.NewRequestServer(ch, sftp.InMemHandler()).Serve()
	}
}

func byPassword(_ ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
	if string(p) != secret {
		return nil, fmt.Errorf("no")
	}
	return nil, nil
}

// asking is a server that asks questions; answers must be right.
func asking(questions []string, echo bool) func(ssh.ConnMetadata, ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
	return func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		echos := make([]bool, len(questions))
		for i := range echos {
			echos[i] = echo
		}
		got, err := ask("", "be polite", questions, echos)
		if err != nil {
			return nil, err
		}
		if _, err := ask("", "welcome", nil, nil); err != nil {
			return nil, err
		}
		if len(got) != 1 || got[0] != secret {
			return nil, fmt.Errorf("no")
		}
		return nil, nil
	}
}

func TestSFTPLoginByPassword(t *testing.T) {
	t.Parallel()
	host := newSigner(t, "ed25519")
	file := filepath.Join(t.TempDir(), "password")
	writeFile(t, file, secret+"\n")
	for _, c := range []struct {
		name   string
		server ssh.ServerConfig
		cfg    Config
		want   string // in the error; "": none
	}{
		{"password", ssh.ServerConfig{PasswordCallback: byPassword}, Config{Password: secret}, ""},
		{"from a file", ssh.ServerConfig{PasswordCallback: byPassword}, Config{PasswordFile: file}, ""},
		{"from a file that is missing", ssh.ServerConfig{PasswordCallback: byPassword}, Config{PasswordFile: file + "-not"}, "no such file"},
		{"wrong", ssh.ServerConfig{PasswordCallback: byPassword}, Config{Password: secret + "x"}, `the login of "me" is refused`},
		{"interactive", ssh.ServerConfig{KeyboardInteractiveCallback: asking([]string{"Password: "}, false)}, Config{Password: secret}, ""},
		{"interactive, wrong", ssh.ServerConfig{KeyboardInteractiveCallback: asking([]string{"Password: "}, false)}, Config{Password: secret + "x"}, "is refused"},
		{"interactive, two questions", ssh.ServerConfig{KeyboardInteractiveCallback: asking([]string{"Password: ", "Code: "}, false)}, Config{Password: secret}, `"Code: "`},
		{"interactive, a question that shows the answer", ssh.ServerConfig{KeyboardInteractiveCallback: asking([]string{"Name: "}, true)}, Config{Password: secret}, `"Name: "`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.cfg.URL = "sftp://me@" + smallServer(t, &c.server, host)
			c.cfg.SSH.HostKeys = []string{ssh.FingerprintSHA256(host.PublicKey())}
			connects(t, c.cfg, c.want)
		})
	}
}

// connects logs in, or fails with an error that has a text in it and no secret.
func connects(t *testing.T, cfg Config, want string) {
	t.Helper()
	r, err := dialSFTP(t.Context(), cfg)
	switch {
	case err == nil:
		defer r.close()
		if aerr := r.alive(t.Context()); want != "" || aerr != nil {
			t.Errorf("connected, %v; want the error %q", aerr, want)
		}
	case want == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret):
		t.Errorf("error %v, want %q, and no secret", err, want)
	}
}

func TestSFTPLoginByKey(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	raw, err := ssh.ParseRawPrivateKey(s.Key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(*raw.(*ed25519.PrivateKey), "", []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	locked, pass, other := dir+"/locked", dir+"/pass", dir+"/other"
	writeFile(t, locked, string(pem.EncodeToMemory(block)))
	writeFile(t, pass, secret+"\n")
	writeFile(t, other, "no key")
	for name, c := range map[string]struct {
		ssh  SSH
		want string
	}{
		"passphrase":              {SSH{PrivateKeyFile: locked, Passphrase: secret}, ""},
		"passphrase from a file":  {SSH{PrivateKeyFile: locked, PassphraseFile: pass}, ""},
		"no passphrase":           {SSH{PrivateKeyFile: locked}, "is encrypted: set SSH.Passphrase"},
		"a wrong passphrase":      {SSH{PrivateKeyFile: locked, Passphrase: secret + "x"}, "no key that can be opened"},
		"a missing passphrase":    {SSH{PrivateKeyFile: locked, PassphraseFile: pass + "-not"}, "SSH.PassphraseFile"},
		"no key":                  {SSH{PrivateKeyFile: other}, "no key that can be opened"},
		"a missing key":           {SSH{PrivateKeyFile: other + "-not"}, "SSH.PrivateKeyFile"},
		"agent":                   {SSH{Agent: serveAgent(t, *raw.(*ed25519.PrivateKey))}, ""},
		"an agent of another key": {SSH{Agent: serveAgent(t, nil)}, "there is nothing to log in with"},
		"a missing agent":         {SSH{Agent: dir + "/socket"}, "SSH.Agent"},
		"a frozen agent":          {SSH{Agent: frozenAgent(t)}, "the agent does not give its keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := sftpConfig(t, s, s.Addr())
			c.ssh.HostKeys = cfg.SSH.HostKeys
			cfg.SSH = c.ssh
			if name == "a frozen agent" {
				cfg.Timeout = shortTimeout
			}
			connects(t, cfg, c.want)
		})
	}
}

func serveAgent(t *testing.T, key any) string {
	t.Helper()
	keys := agent.NewKeyring()
	if key, ok := key.(ed25519.PrivateKey); ok {
		if err := keys.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	return listenAgent(t, func(c net.Conn) { _ = agent.ServeAgent(keys, c) })
}

func frozenAgent(t *testing.T) string {
	t.Helper()
	return listenAgent(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

func listenAgent(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // short: a socket's path is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return l.Addr().String()
}

// line is one of a file of known hosts.
func line(marker, name string, key ssh.PublicKey) string {
	return strings.TrimPrefix(marker+" "+name+" "+string(ssh.MarshalAuthorizedKey(key)), " ")
}

func TestSFTPHostKeys(t *testing.T) {
	t.Parallel()
	ed, ec, rs, stranger := newSigner(t, "ed25519"), newSigner(t, "ecdsa"), newSigner(t, "rsa"), newSigner(t, "ed25519")
	authority := newSigner(t, "ed25519")
	addr := smallServer(t, &ssh.ServerConfig{PasswordCallback: byPassword}, ed, ec, rs)
	name := knownhosts.Normalize(addr)
	cert := &ssh.Certificate{Key: ec.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	certified, err := ssh.NewCertSigner(cert, ec)
	if err != nil {
		t.Fatal(err)
	}
	withCert := smallServer(t, &ssh.ServerConfig{PasswordCallback: byPassword}, ed, certified)
	print := func(s ssh.Signer) string { return ssh.FingerprintSHA256(s.PublicKey()) }
	for what, c := range map[string]struct {
		addr  string
		known string
		pins  []string
		want  []string // all in the error; none: no error
	}{
		"known":                     {addr, line("", name, ed.PublicKey()), nil, nil},
		"known by another type":     {addr, line("", name, rs.PublicKey()), nil, nil},
		"hashed":                    {addr, line("", knownhosts.HashHostname(name), ec.PublicKey()), nil, nil},
		"several known":             {addr, line("", name, stranger.PublicKey()) + line("", name, ed.PublicKey()), nil, nil},
		"changed":                   {addr, line("", name, stranger.PublicKey()), nil, []string{print(ed), print(stranger), "the key was changed"}},
		"unknown":                   {addr, line("", "example.com", ed.PublicKey()), nil, []string{"has none for it"}},
		"revoked":                   {addr, line("", name, ed.PublicKey()) + line("@revoked", "*", ed.PublicKey()), nil, []string{print(ed), "revoked"}},
		"certified":                 {withCert, line("@cert-authority", knownhosts.Normalize(withCert), authority.PublicKey()), nil, nil},
		"certified by another":      {withCert, line("@cert-authority", knownhosts.Normalize(withCert), stranger.PublicKey()), nil, []string{"host key"}},
		"pinned":                    {addr, "", []string{print(stranger), print(ec)}, nil},
		"pinned, the last it has":   {addr, "", []string{print(rs)}, nil},
		"pinned, a key it has not":  {addr, "", []string{print(stranger)}, []string{print(stranger), "SSH.HostKeys has", "the key was changed"}},
		"a file that has no format": {addr, "no line\n", nil, []string{"host keys cannot be read"}},
		"a file that is missing":    {addr, "-", nil, []string{"host keys cannot be read", "no such file"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: "sftp://me@" + c.addr, Password: secret, SSH: SSH{HostKeys: c.pins}}
			if c.pins == nil {
				cfg.SSH.KnownHosts = filepath.Join(t.TempDir(), "known")
				if c.known != "-" {
					writeFile(t, cfg.SSH.KnownHosts, c.known)
				}
			}
			r, err := dialSFTP(t.Context(), cfg)
			if err == nil {
				defer r.close()
			}
			if (err == nil) != (c.want == nil) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			for _, text := range c.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error %v, want %q in it", err, text)
				}
			}
		})
	}
}

// The server's key changes while it is down: the next connection says so.
func TestSFTPHostKeyChanges(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	cfg := sftpConfig(t, s, s.Addr())
	before := s.HostKey
	connected(t, cfg)
	s.ChangeHostKey()
	s.Restart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := dialSFTP(ctx, cfg)
	for _, want := range []string{ssh.FingerprintSHA256(before), ssh.FingerprintSHA256(s.HostKey)} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s in it", err, want)
		}
	}
}

func TestSFTPConfigViolations(t *testing.T) {
	t.Parallel()
	cfg := Config{URL: "sftp://127.0.0.1/x", SSH: SSH{
		KnownHosts: "a", HostKeys: []string{"MD5:00"}, Passphrase: secret, PassphraseFile: "b",
	}}
	_, err := New(cfg)
	for _, want := range []string{
		"User is empty", "nothing to log in with", "SSH.KnownHosts and SSH.HostKeys", `"MD5:00"`, "without SSH.PrivateKeyFile",
		"SSH.Passphrase and SSH.PassphraseFile",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v has a secret in it", err)
	}
}

//go:build linux

package testserver

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// OpenSSH is an sshd that gives SFTP and nothing else to one user, without a chroot. It runs as that user: as nobody where the test is root, else
// as whoever runs the test. So the user logs in with Key: an sshd without privileges knows no passwords.
type OpenSSH struct {
	*Process
	t    testing.TB
	User string
	Port int
	Dir  string // its configuration and keys
	// Data is a directory that belongs to the user, and the start for everything that is served.
	Data string
	// Key is the private key that may log in, in the format of ssh-keygen.
	Key []byte
	// HostKey is the server's key.
	HostKey ssh.PublicKey
}

// StartOpenSSH starts one with a host key of type ed25519. Lines are added to its configuration, such as "MaxSessions 1".
func StartOpenSSH(t testing.TB, lines ...string) *OpenSSH {
	t.Helper()
	s := &OpenSSH{t: t, Port: Port(t), Dir: Dir(t), User: os.Getenv("USER")}
	sshd := Need(t, "", "sshd")
	run := ""
	if os.Geteuid() == 0 {
		s.User, run = "nobody", "nobody"
	}
	s.Data = filepath.Join(s.Dir, "data")
	err := os.Mkdir(s.Data, 0o755)
	key, pub := newKey(t)
	s.Key = key
	for _, w := range []error{err, os.WriteFile(s.path("authorized_keys"), ssh.MarshalAuthorizedKey(pub), 0o644), os.WriteFile(s.path("sshd_config"), []byte(s.config(lines)), 0o644)} {
		if w != nil {
			t.Fatal(w)
		}
	}
	s.own(s.Data, s.Dir)
	s.ChangeHostKey()
	s.Process = Start(t, Spec{Name: "OpenSSH", Path: sshd, Args: []string{"-D", "-e", "-f", s.path("sshd_config")}, Dir: s.Dir, User: run,
		Ready: func(ctx context.Context) error { return greets(ctx, s.Port) }})
	return s
}

func (s *OpenSSH) config(lines []string) string {
	return fmt.Sprintf(`%[3]s
Port %[1]d
ListenAddress 127.0.0.1
HostKey %[2]s/host_key
AuthorizedKeysFile %[2]s/authorized_keys
PidFile none
StrictModes no
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
MaxStartups 1000
Subsystem sftp internal-sftp
ForceCommand internal-sftp
`, s.Port, s.Dir, strings.Join(lines, "\n"))
}

func (s *OpenSSH) path(name string) string { return filepath.Join(s.Dir, name) }

// own gives files to the user.
func (s *OpenSSH) own(paths ...string) {
	s.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	uid, gid := IDs(s.t, s.User)
	for _, p := range paths {
		if err := os.Chown(p, uid, gid); err != nil {
			s.t.Fatal(err)
		}
	}
}

// ChangeHostKey gives the server another key, from its next start on.
func (s *OpenSSH) ChangeHostKey() {
	s.t.Helper()
	key, pub := newKey(s.t)
	if err := os.WriteFile(s.path("host_key"), key, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.own(s.path("host_key"))
	s.HostKey = pub
}

// Addr is host:port.
func (s *OpenSSH) Addr() string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(s.Port)) }

// Mkdir makes a directory below Data that belongs to the user, and returns its path.
func (s *OpenSSH) Mkdir(name string) string {
	s.t.Helper()
	p := filepath.Join(s.Data, name)
	if err := os.Mkdir(p, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.own(p)
	return p
}

// For is the same server for another test, which must not kill, freeze or restart it.
func (s *OpenSSH) For(t testing.TB) *OpenSSH {
	p, c := *s.Process, *s
	p.t, c.t, c.Process = t, t, &p
	return &c
}

func newKey(t testing.TB) ([]byte, ssh.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), pub
}

package ftp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeys decides about one server's host key during one login.
type hostKeys struct {
	addr       string
	check      ssh.HostKeyCallback
	algorithms []string // those to offer; nil: all
	refused    error    // why the key was refused
	presented  string   // its type, when it is none of the pinned ones: the server may have another
}

// hostKeys reads what is known. without are types of keys that are not asked for.
func (d *sftpDial) hostKeys(without []string) (*hostKeys, error) {
	h := &hostKeys{addr: d.addr}
	if len(d.ssh.HostKeys) > 0 {
		h.check = h.pinned(d.ssh.HostKeys)
		h.algorithms = plainAlgorithms(without)
		return h, nil
	}
	file, err := d.ssh.knownHosts()
	if err != nil {
		return nil, err
	}
	known, err := knownhosts.New(file)
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("host keys cannot be read; make the file with ssh-keyscan, or set SSH.HostKeys: %w", err)
	}
	h.check = h.known(file, known)
	h.algorithms = knownAlgorithms(d.addr, known, strings.Split(string(text), "\n"))
	return h, nil
}

// callback remembers why a key was refused: the handshake's own error says less.
func (h *hostKeys) callback(host string, remote net.Addr, key ssh.PublicKey) error {
	h.refused = h.check(host, remote, key)
	return h.refused
}

func (h *hostKeys) pinned(pins []string) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		got := ssh.FingerprintSHA256(key)
		if slices.Contains(pins, got) {
			return nil
		}
		h.presented = key.Type()
		return fmt.Errorf("the host key of %s is %s (%s), and SSH.HostKeys has %s: the key was changed or this is another server",
			h.addr, got, key.Type(), strings.Join(pins, ", "))
	}
}

func (h *hostKeys) known(file string, check ssh.HostKeyCallback) ssh.HostKeyCallback {
	return func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := check(host, remote, key)
		got := fmt.Sprintf("%s (%s)", ssh.FingerprintSHA256(key), key.Type())
		var other *knownhosts.KeyError
		var revoked *knownhosts.RevokedError
		switch {
		case errors.As(err, &revoked):
			return fmt.Errorf("the host key of %s is %s, which is revoked in line %d of %s: %w", h.addr, got, revoked.Revoked.Line, file, err)
		case errors.As(err, &other) && len(other.Want) == 0:
			return fmt.Errorf("the host key of %s is %s, and %s has none for it: compare it with the server's and add it: %w", h.addr, got, file, err)
		case errors.As(err, &other):
			var want []string
			for _, k := range other.Want {
				want = append(want, fmt.Sprintf("%s (%s, line %d)", ssh.FingerprintSHA256(k.Key), k.Key.Type(), k.Line))
			}
			return fmt.Errorf("the host key of %s is %s, and %s has %s: the key was changed or this is another server: %w",
				h.addr, got, file, strings.Join(want, ", "), err)
		case err != nil:
			return fmt.Errorf("the host key of %s is %s: %w", h.addr, got, err)
		}
		return nil
	}
}

// knownAlgorithms are those of the keys that are known of a server. A server has several keys, and would present another
// one else, which looks like a changed key. nil: none is known.
func knownAlgorithms(addr string, check ssh.HostKeyCallback, lines []string) []string {
	var known *knownhosts.KeyError
	if err := check(addr, &net.TCPAddr{}, noKey{}); !errors.As(err, &known) {
		return nil
	}
	var plain, certified []string
	for _, k := range known.Want {
		if k.Line <= len(lines) && strings.HasPrefix(strings.TrimSpace(lines[k.Line-1]), "@cert-authority") {
			certified = certificates()
			continue
		}
		for _, a := range algorithmsOf(k.Key.Type()) {
			if !slices.Contains(plain, a) {
				plain = append(plain, a)
			}
		}
	}
	return append(certified, plain...)
}

// algorithmsOf are the signatures that a type of key makes.
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// plainAlgorithms are those without certificates, but for some types of keys.
func plainAlgorithms(without []string) []string {
	var not []string
	for _, t := range without {
		not = append(not, algorithmsOf(t)...)
	}
	return slices.DeleteFunc(supported(), func(a string) bool { return isCertificate(a) || slices.Contains(not, a) })
}

func certificates() []string {
	return slices.DeleteFunc(supported(), func(a string) bool { return !isCertificate(a) })
}

func supported() []string { return slices.Clone(ssh.SupportedAlgorithms().HostKeys) }

func isCertificate(algorithm string) bool { return strings.Contains(algorithm, "-cert-") }

func isFingerprint(s string) bool {
	b, ok := strings.CutPrefix(s, "SHA256:")
	sum, err := base64.RawStdEncoding.DecodeString(b)
	return ok && err == nil && len(sum) == 32
}

// noKey is a key that nobody has, to ask which ones are known.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.ErrUnsupported }

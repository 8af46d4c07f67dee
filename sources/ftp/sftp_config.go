package ftp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SSH says how SFTP is spoken. How the server proves who it is has no switch that turns it off: its host key must be in
// KnownHosts or among HostKeys.
type SSH struct {
	// KnownHosts is a file of known host keys, as ssh keeps one; hashed names, certificate authorities and revoked keys are
	// understood. It is read at each login. Defaults to .ssh/known_hosts in the user's home. It excludes HostKeys.
	KnownHosts string
	// HostKeys are the fingerprints of the server's keys, as ssh-keygen -l prints them ("SHA256:…"). One of them must be
	// the server's. Defaults to none: KnownHosts decides.
	HostKeys []string
	// PrivateKeyFile is a file with the private key of the user, in a format that ssh-keygen writes. It is read at each
	// login. Defaults to none.
	PrivateKeyFile string
	// Passphrase opens PrivateKeyFile. Defaults to none, for a key that is not encrypted.
	Passphrase string
	// PassphraseFile is a file that holds the passphrase; its last line end is left out. It excludes Passphrase.
	PassphraseFile string
	// Agent is the socket of an agent whose keys log in, usually os.Getenv("SSH_AUTH_SOCK"). Defaults to none. Keys are
	// offered before the password: that of PrivateKeyFile first, then those of the agent.
	Agent string
}

// sftpDialer checks what concerns SFTP and returns what connects; the violations are without a prefix. The password
// answers both the method of that name and the questions of keyboard-interactive.
func (c Config) sftpDialer(t target) (dialer, []error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	s := c.SSH
	if t.user == "" {
		bad("User is empty, must be who logs in: write sftp://user@host/path")
	}
	inURL := func() bool { p, err := t.password(); return err != nil || p != "" } // without a file no I/O
	if c.PasswordFile == "" && s.PrivateKeyFile == "" && s.Agent == "" && !inURL() {
		bad("there is nothing to log in with: set Password, PasswordFile, SSH.PrivateKeyFile or SSH.Agent")
	}
	if s.KnownHosts != "" && len(s.HostKeys) > 0 {
		bad("SSH.KnownHosts and SSH.HostKeys are set, must be one of them")
	}
	for _, pin := range s.HostKeys {
		if !isFingerprint(pin) {
			bad("SSH.HostKeys has %q, must be a fingerprint as ssh-keygen -l prints it: SHA256: and 43 characters", pin)
		}
	}
	if s.PrivateKeyFile == "" && (s.Passphrase != "" || s.PassphraseFile != "") {
		bad("SSH.Passphrase or SSH.PassphraseFile is set without SSH.PrivateKeyFile, which it would open")
	}
	if s.Passphrase != "" && s.PassphraseFile != "" {
		bad("SSH.Passphrase and SSH.PassphraseFile are set, must be one of them")
	}
	s.HostKeys = append([]string(nil), s.HostKeys...)
	d := &sftpDial{target: t, ssh: s}
	return func(ctx context.Context) (remote, error) { return d.dial(ctx) }, errs
}

// knownHosts is the file of known host keys.
func (s SSH) knownHosts() (string, error) {
	if s.KnownHosts != "" {
		return s.KnownHosts, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("SSH.KnownHosts is not set and there is no home directory to look in: %w", err)
	}
	return filepath.Join(home, ".ssh", "known_hosts"), nil
}

// passphrase is what opens the private key; "" for none.
func (s SSH) passphrase() (string, error) {
	if s.PassphraseFile == "" {
		return s.Passphrase, nil
	}
	b, err := os.ReadFile(s.PassphraseFile)
	if err != nil {
		return "", fmt.Errorf("SSH.PassphraseFile: %w", err)
	}
	pass := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if pass == "" {
		return "", errors.New("SSH.PassphraseFile is empty")
	}
	return pass, nil
}

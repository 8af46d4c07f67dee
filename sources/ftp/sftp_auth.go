package ftp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// login is what one login may use. done frees it.
func (d *sftpDial) login(ctx context.Context, deadline time.Time) (methods []ssh.AuthMethod, done func(), err error) {
	done = func() {}
	var keys []ssh.Signer
	if d.ssh.PrivateKeyFile != "" {
		key, err := d.ssh.privateKey()
		if err != nil {
			return nil, done, err
		}
		keys = append(keys, key)
	}
	if d.ssh.Agent != "" {
		conn, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "unix", d.ssh.Agent)
		if err != nil {
			return nil, done, fmt.Errorf("SSH.Agent: %w", err)
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		done = func() { stop(); conn.Close() }
		err = conn.SetDeadline(deadline)
		if err == nil {
			var more []ssh.Signer
			more, err = agent.NewClient(conn).Signers()
			keys = append(keys, more...)
		}
		if err != nil {
			done()
			return nil, func() {}, fmt.Errorf("SSH.Agent: the agent does not give its keys: %w", err)
		}
	}
	if len(keys) > 0 { // as one method: each is tried once
		methods = append(methods, ssh.PublicKeys(keys...))
	}
	password, err := d.password()
	if err != nil {
		done()
		return nil, func() {}, err
	}
	if password != "" {
		methods = append(methods, ssh.Password(password), ssh.KeyboardInteractive(answers(password)))
	}
	if len(methods) == 0 {
		done()
		return nil, func() {}, errors.New("there is nothing to log in with: the agent has no keys, or the password is empty")
	}
	return methods, done, nil
}

// answers gives the password to the one question that hides what is typed. Others cannot be answered, and rounds
// without questions only tell something.
func answers(password string) ssh.KeyboardInteractiveChallenge {
	return func(_, _ string, questions []string, echos []bool) ([]string, error) {
		switch {
		case len(questions) == 0:
			return nil, nil
		case len(questions) > 1 || echos[0]:
			return nil, fmt.Errorf("the server asks %q, and only a single password can be given: use a key", questions)
		}
		return []string{password}, nil
	}
}

// privateKey reads the user's key. No error holds the passphrase.
func (s SSH) privateKey() (ssh.Signer, error) {
	b, err := os.ReadFile(s.PrivateKeyFile)
	if err != nil {
		return nil, fmt.Errorf("SSH.PrivateKeyFile: %w", err)
	}
	pass, err := s.passphrase()
	if err != nil {
		return nil, err
	}
	var key ssh.Signer
	if pass == "" {
		key, err = ssh.ParsePrivateKey(b)
	} else {
		key, err = ssh.ParsePrivateKeyWithPassphrase(b, []byte(pass))
	}
	var missing *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &missing):
		return nil, fmt.Errorf("SSH.PrivateKeyFile: the key in %q is encrypted: set SSH.Passphrase or SSH.PassphraseFile", s.PrivateKeyFile)
	case err != nil:
		return nil, fmt.Errorf("SSH.PrivateKeyFile: %q is no key that can be opened: %w", s.PrivateKeyFile, err)
	}
	return key, nil
}

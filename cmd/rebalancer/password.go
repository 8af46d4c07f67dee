package main

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// withPassword gives the URL of --store or --source the password that does not stand in it, from REBALANCER_STORE_PASSWORD, or from the file
// that REBALANCER_STORE_PASSWORD_FILE names, whose last line end is left out, or from the configuration file: other users of the machine can see a command line.
func (p *program) withPassword(flag string, u *url.URL) (*url.URL, error) {
	if _, has := u.User.Password(); has || u.Host == "" {
		return u, nil
	}
	key := strings.TrimPrefix(flag, "--") + "-password"
	name := variable(key)
	password, ok := p.lookup(name)
	if file, named := p.lookup(name + "_FILE"); named && file != "" {
		if ok && password != "" {
			return nil, usagef("%s and %s_FILE exclude each other", name, name)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s_FILE: %w", name, err)
		}
		password, ok = withoutLineEnd(b), true
	}
	if !ok || password == "" {
		var err error
		if password, err = p.secretOf(key); err != nil {
			return nil, err
		}
	}
	if password == "" {
		return u, nil
	}
	c := *u
	c.User = url.UserPassword(u.User.Username(), password)
	return &c, nil
}

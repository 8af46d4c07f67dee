package main

import (
	"context"
	"errors"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources/ftp"
)

// ftpSources open ftp://user@host/path, ftps:// and sftp://: each directory below the path is a resource, each file in it a message.
func ftpSources() []sourceDriver {
	return []sourceDriver{
		{scheme: "ftp", form: "ftp://user@host/path", open: openFTP},
		{scheme: "ftps", form: "ftps://user@host/path", open: openFTP},
		{scheme: "sftp", form: "sftp://user@host/path", open: openFTP},
	}
}

func openFTP(_ context.Context, u *url.URL, o sourceOptions) (*openSource, error) {
	policy, rest, err := pickupPolicy(u.Query(), o)
	bare := *u
	bare.RawQuery, bare.ForceQuery = rest.Encode(), false
	c, err2 := ftpConfig(&bare)
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	c.Policy = policy
	s, err := ftp.New(c)
	if err != nil {
		return nil, &kindError{errUsage, err.Error()}
	}
	place := url.URL{Scheme: u.Scheme, Host: u.Host}
	return &openSource{
		Source: s, close: s.Close,
		path: func(m *rebalancer.Message) string {
			at := place
			at.Path = path.Join("/", u.Path, m.Resource, m.Key)
			if strings.HasPrefix(u.Path, "//") {
				at.Path = "/" + at.Path
			}
			return at.String()
		},
		notLocal: "the server can be reached by nodes on other machines, and all must use one store",
	}, nil
}

// ftpConfig reads the URL. No error holds a password.
func ftpConfig(u *url.URL) (ftp.Config, error) {
	var c ftp.Config
	var ca, cert, key string
	var errs []error
	for name, values := range u.Query() {
		v, err := values[len(values)-1], error(nil)
		switch name {
		case "timeout":
			c.Timeout, err = seconds(v)
		case "connections":
			c.Connections, err = count(v)
		case "implicit_tls":
			c.ImplicitTLS, err = truth(v)
		case "trust_passive_address":
			c.TrustPassiveAddress, err = truth(v)
		case "ignore_unique":
			c.IgnoreUnique, err = truth(v)
		case "cacertfile":
			ca = v
		case "certfile":
			cert = v
		case "keyfile":
			key = v
		case "known_hosts":
			c.SSH.KnownHosts = v
		case "host_key":
			c.SSH.HostKeys = values
		case "private_key":
			c.SSH.PrivateKeyFile = v
		case "passphrase_file":
			c.SSH.PassphraseFile = v
		case "agent":
			c.SSH.Agent = v
		default:
			err = errors.New("it is not known: use timeout, connections, implicit_tls, trust_passive_address, ignore_unique, cacertfile, certfile, keyfile, " +
				"known_hosts, host_key, private_key, passphrase_file or agent, or one for all sources of files (see --help)")
		}
		if err != nil {
			errs = append(errs, usagef("--source: the parameter %s: %v", name, err))
		}
	}
	var err error
	if c.TLS, err = tlsFiles(ca, cert, key); err != nil {
		errs = append(errs, usagef("--source: %v", err))
	}
	plain := *u
	plain.RawQuery, plain.ForceQuery = "", false
	c.URL = plain.String()
	return c, errors.Join(errs...)
}

// truth reads true or false. Its error does not show what it was given.
func truth(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, errors.New("it must be true or false")
	}
	return b, nil
}

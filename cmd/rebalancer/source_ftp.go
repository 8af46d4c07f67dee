package main

import (
	"context"
	"errors"
	"net/url"
	"path"
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
	doctor := &ftpDoctor{at: u, policy: policy}
	place := url.URL{Scheme: u.Scheme, Host: u.Host}
	return &openSource{
		Source: s, close: s.Close, examine: doctor.place,
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
			err = setTruth(&c.ImplicitTLS)(v)
		case "trust_passive_address":
			err = setTruth(&c.TrustPassiveAddress)(v)
		case "ignore_unique":
			err = setTruth(&c.IgnoreUnique)(v)
		case "cacertfile":
			ca = v
		case "certfile":
			cert = v
		case "keyfile":
			key = v
		case "known_hosts":
			c.SSH.KnownHosts = v
		case "host_key":
			for _, v := range values { // in a fingerprint a space is a + that was not escaped
				c.SSH.HostKeys = append(c.SSH.HostKeys, strings.ReplaceAll(v, " ", "+"))
			}
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

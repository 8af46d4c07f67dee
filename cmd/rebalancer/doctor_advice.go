package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/rebalancer-go/rebalancer/sources"
)

// advice is what may heal an error, "" when the error says it or nobody knows. It goes by what the error is, and only then by what servers are known to say.
func advice(about string, err error) string {
	var unverified *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, sources.ErrGone):
		return "make the resource, or mend its name: consume tries again until it is there"
	case errors.As(err, &other):
		return "use the name that the server's certificate is for"
	case errors.As(err, &unverified), errors.As(err, &unknown):
		return "make the authority of the server's certificate known: cacertfile in the URL, or that of the system"
	case errors.As(err, &name):
		return "look at the host's name in the URL, and at the resolver of this machine"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: look at host and port in the URL, and whether the server runs"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to the server from this machine: look at routes and firewalls"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the server, or something between, ended the connection: look at its log, and whether it wants TLS"
	case errors.Is(err, fs.ErrPermission):
		return "give this user the right to it"
	}
	if todo := adviceFor(about, strings.ToLower(err.Error())); todo != "" {
		return todo
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return "no answer in time: look at host and port, firewalls, and how busy the server is"
	}
	return ""
}

// adviceFor goes by what servers say, in lower case.
func adviceFor(about, text string) string {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	password := "look at user and password: REBALANCER_" + strings.ToUpper(about) + "_PASSWORD, or " + about + "-password in the configuration file"
	switch {
	case has("noauth", "wrongpass", "invalid username", "password authentication failed", "login failed", "access_refused", "username or password",
		"530 ", "unable to authenticate", "invalidclienttokenid", "signaturedoesnotmatch", "invalidaccesskeyid", "unable to sign request", "no credentials"):
		return password
	case about == "store" && has("noperm", "permission denied", "does not exist", "undefined table", "invalid object name", "no auth"):
		return "`rebalancer schema --store URL` prints what an administrator must make, and the rights"
	case has("permission denied", "accessdenied", "access denied", "access to", "not authorized", "forbidden", "550 "):
		return "give the user the right to it; the documentation of the source lists which it needs"
	case has("no such host", "connection refused"):
		return "look at host and port in the URL, and whether the server runs"
	case has("host key", "knownhosts"):
		return "add known_hosts or host_key to the URL, after asking the server's administrator for the fingerprint"
	}
	return ""
}

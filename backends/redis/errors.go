package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/rebalancer-go/rebalancer/backends"
)

// refusals are the beginnings or parts of what a server says, and what they mean.
var refusals = [...]struct {
	said  string
	means string
	fatal bool
}{
	{"WRONGPASS", "the server refuses the user or the password", true},
	{"NOAUTH", "the server wants a user or a password", true},
	{"invalid password", "the server refuses the password", true},
	{"without any password configured", "the server wants no password, but one was given", true},
	{"NOPERM", "the user lacks a right (ACL gives the command that makes one who has them all)", true},
	{"has no permissions", "the user lacks a right (ACL gives the command that makes one who has them all)", true},
	{"The user executing the script", "the user lacks a right (ACL gives the command that makes one who has them all)", true},
	{"FORMAT", "the data was written by a newer version of this store", true},
	{"MOVED", "the server is one of a Cluster, which needs a redis.ClusterClient", true},
	{"CROSSSLOT", "the server is one of a Cluster, which needs a redis.ClusterClient", true},
	{"cluster support disabled", "the server is none of a Cluster, which a redis.ClusterClient needs", true},
	{"DB index is out of range", "the server has no database of that number", true},
	{"READONLY", "the server is a replica: connect to the master, or through Sentinel", false},
	{"NOREPLICAS", "too few replicas are connected for min-replicas-to-write", false},
	{"MISCONF", "the server cannot save its data to disk", false},
	{"OOM", "the server has reached its limit of memory", false},
	{"LOADING", "the server is still loading its data", false},
	{"MASTERDOWN", "the replica has lost its master", false},
	{"CLUSTERDOWN", "the Cluster does not serve the group's slot", false},
	{"max number of clients", "the server has too many clients", false},
	{"BUSY", "the server runs somebody's long script", false},
}

// wrap says which server an error is about and what it means; errors that no retry heals get ErrFatal.
func (s *Store) wrap(err error) error {
	if err == nil || errors.Is(err, backends.ErrClosed) || strings.HasPrefix(err.Error(), s.preamble()) {
		return err
	}
	if errors.Is(err, redis.ErrClosed) && s.ctx.Err() != nil {
		return backends.ErrClosed
	}
	what, fatal := s.meaning(err)
	if what != "" {
		what += ": "
	}
	if fatal && !errors.Is(err, backends.ErrFatal) {
		return fmt.Errorf("%s%w: %s%w", s.preamble(), backends.ErrFatal, what, err)
	}
	return fmt.Errorf("%s%s%w", s.preamble(), what, err)
}

func (s *Store) preamble() string { return "redis store " + s.name + ": " }

func (s *Store) meaning(err error) (what string, fatal bool) {
	var host x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &host):
		return "the server's certificate is for another name than the one that is connected to", true
	case errors.As(err, &unknown):
		return "the server's certificate is of an authority that is not trusted here", true
	case errors.As(err, &plain):
		return "the server does not speak TLS at this port", true
	case errors.As(err, &certificate):
		return "the server's certificate does not hold", false
	case errors.Is(err, context.DeadlineExceeded) && s.tls && !s.reached.Load():
		return "no answer in time; perhaps the server does not speak TLS at this port", false
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time", false
	case (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) && !s.tls && !s.reached.Load():
		return "the server closed the connection without an answer; perhaps it wants TLS (rediss)", false
	case errors.Is(err, redis.ErrClosed):
		return "the client was closed before the store", true
	}
	var said redis.Error
	if !errors.As(err, &said) {
		return "", false
	}
	for _, r := range refusals {
		if strings.Contains(said.Error(), r.said) {
			return r.means, r.fatal
		}
	}
	return "", false
}

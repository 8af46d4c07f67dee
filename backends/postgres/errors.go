package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// States of PostgreSQL.
const (
	notSupported    = "0A000" // also: to write while it follows another server
	divisionByZero  = "22012"
	uniqueViolation = "23505"
	readOnlyServer  = "25006"
	fellSilent      = "25P03" // it was ended for its silence within a transaction
	badPassword     = "28P01"
	badRole         = "28000"
	noDatabase      = "3D000"
	invalidSchema   = "3F000"
	noStatement     = "26000"
	serialization   = "40001"
	deadlock        = "40P01"
	noRight         = "42501"
	statementExists = "42P05"
	undefinedColumn = "42703"
	undefinedTable  = "42P01"
	tooMany         = "53300"
	inRecovery      = "55000"
	cancelled       = "57014" // also by the statement's time limit
	shutDown        = "57P01"
	crashed         = "57P02"
	startingUp      = "57P03"
	databaseDropped = "57P04"
)

func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func isState(err error, states ...string) bool {
	have := state(err)
	for _, s := range states {
		if have == s {
			return true
		}
	}
	return false
}

// lacksRecord tells whether the guard failed. No other statement divides.
func lacksRecord(err error) bool { return isState(err, divisionByZero) }

// passing tells whether the same call may succeed at once, or soon, and was not applied for certain.
func passing(err error) bool {
	var e *pgconn.PgError
	switch {
	case errors.Is(err, backends.ErrUnknown), errors.Is(err, backends.ErrFatal), sqlstore.IsRefused(err):
		return false
	case errors.As(err, &e):
		return unprepared(err) || isState(err, serialization, deadlock, uniqueViolation, fellSilent, shutDown, crashed, startingUp)
	}
	return broken(err)
}

// broken tells whether the connection failed, rather than the call.
func broken(err error) bool {
	var c *pgconn.ConnectError
	if errors.As(err, &c) {
		return false // the server cannot be reached: the caller paces its own tries
	}
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && brokenPipe(err)
}

// wrap says which server an error is about and what to do; errors that no retry heals get ErrFatal.
func (s *Store) wrap(err error) error {
	switch {
	case err == nil, errors.Is(err, backends.ErrClosed):
		return err
	case s.ctx.Err() != nil && !errors.Is(err, backends.ErrUnknown):
		return backends.ErrClosed
	}
	if sqlstore.IsRefused(err) && !errors.Is(err, backends.ErrFatal) {
		return err
	}
	what, fatal := s.advice(err)
	if fatal && !errors.Is(err, backends.ErrFatal) {
		return fmt.Errorf("postgres store %s: %w: %s%w", s.place, backends.ErrFatal, what, err)
	}
	return fmt.Errorf("postgres store %s: %s%w", s.place, what, err)
}

// advice is what an error means, and whether no retry heals it.
func (s *Store) advice(err error) (what string, fatal bool) {
	switch state(err) {
	case badPassword, badRole:
		return "the server refuses the role or its password; correct them, or what pg_hba.conf says of them: ", true
	case noDatabase, databaseDropped:
		return "there is no such database; name another or create it: ", true
	case invalidSchema, undefinedTable, undefinedColumn:
		return "the schema or a table in it is missing; run what DDL gives, or open the store with CreateSchema: ", true
	case noRight:
		return "the role lacks a right; run what Grants gives: ", true
	case readOnlyServer, inRecovery, notSupported:
		return "the server is a standby or read-only; the address must lead to the primary: ", false
	case tooMany:
		return "the server has no connection left; raise max_connections or make pools smaller: ", false
	case shutDown, crashed, startingUp:
		return "the server is starting or stopping: ", false
	}
	var (
		name      x509.HostnameError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		connect   *pgconn.ConnectError
	)
	switch {
	case errors.As(err, &name):
		return "the server's TLS certificate is not for this name; connect by a name that it has, or give it one: ", true
	case errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &verify):
		return "the server's TLS certificate is not trusted; name its authority in sslrootcert: ", true
	case errors.As(err, &connect) && strings.Contains(err.Error(), "refused TLS"):
		return "the server does not speak TLS; turn it on there, or use sslmode=disable where the network is trusted: ", true
	case errors.As(err, &connect):
		return "the server cannot be reached: ", false
	}
	return "", false
}

// oldest is the oldest server that is supported.
const oldest = 15

// supportedVersion refuses a server that is too old.
func supportedVersion(text string) error {
	digits, _, _ := strings.Cut(strings.TrimLeft(text, " ")+".", ".")
	if i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		digits = digits[:i]
	}
	major, err := strconv.Atoi(digits)
	if err == nil && major < oldest {
		return fmt.Errorf("%w: the server is PostgreSQL %s, the oldest that is supported is %d", backends.ErrFatal, text, oldest)
	}
	return nil // also where a pooler hides it
}

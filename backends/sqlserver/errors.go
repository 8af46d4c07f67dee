package sqlserver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// Numbers of the server's errors.
const (
	noFunction   = 195
	noColumn     = 207
	noObject     = 208
	noRight      = 229
	noRightCol   = 230
	noRightTo    = 262
	noServer     = 297
	noPermission = 300
	noDatabase   = 911
	restoring    = 927
	inTransition = 952
	notQueryable = 976
	logFull      = 9002
	diskFull     = 1105
	deadlock     = 1205
	lockTimeout  = 1222
	longKey      = 1946
	duplicateKey = 2601
	duplicateRow = 2627
	noSchema     = 2760
	readOnly     = 3906
	cannotOpen   = 4060
	stopping     = 6005
	badLogin     = 18456
	notTrusted   = 18452
	disabled     = 18470
	expired      = 18487
	mustChange   = 18488
	// unnumbered is what Babelfish says where it knows no number.
	unnumbered = 33557097
	// notGranted is thrown by our own statements.
	notGranted = 51222
)

// passingNumbers are of errors that undid everything and are over soon: the last ones are those of Azure SQL when it moves or throttles a database.
var passingNumbers = []int32{deadlock, lockTimeout, notGranted, duplicateKey, duplicateRow, 3960, 40143, 40197, 40501, 40540, 40613, 49918, 49919, 49920, 10928, 10929, 4221}

func numberOf(err error) int32 {
	var e mssql.Error
	if !errors.As(err, &e) {
		return 0
	}
	switch {
	case e.Number == unnumbered && strings.Contains(e.Message, "does not exist"):
		return noObject
	case e.Number == unnumbered && strings.Contains(e.Message, "permission denied"):
		return noRight
	}
	return e.Number
}

func isNumber(err error, numbers ...int32) bool { return slices.Contains(numbers, numberOf(err)) }

// fatalClass is that of errors with which the server ends the connection.
const fatalClass = 20

// fromServer tells whether the error is the server's answer, on a connection that works: what it was asked for is undone.
func fromServer(err error) bool {
	var e mssql.Error
	var broke mssql.ServerError
	return errors.As(err, &e) && !errors.As(err, &broke) && e.Number != 0 && e.Class < fatalClass
}

// passing tells whether the same call may succeed at once, or soon, and was not applied for certain.
func passing(err error) bool {
	switch {
	case errors.Is(err, backends.ErrUnknown), errors.Is(err, backends.ErrFatal), sqlstore.IsRefused(err):
		return false
	case fromServer(err):
		return isNumber(err, passingNumbers...)
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false // the server cannot be reached: the caller paces its own tries
	}
	return broken(err) || errors.Is(err, errCut) || errors.Is(err, errLine)
}

// broken tells whether the connection failed, rather than the call.
func broken(err error) bool {
	var n net.Error
	var broke mssql.ServerError
	var stream mssql.StreamError
	var e mssql.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &broke), errors.As(err, &stream), errors.As(err, &n):
		return true
	case errors.As(err, &e):
		return e.Number == 0 || e.Class >= fatalClass
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
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
	what, class := advice(err)
	if class != nil && !errors.Is(err, class) {
		return fmt.Errorf("sqlserver store %s: %w: %s%w", s.place, class, what, err)
	}
	return fmt.Errorf("sqlserver store %s: %s%w", s.place, what, err)
}

// advice is what an error means, and ErrFatal or ErrInvalid where no retry heals it.
func advice(err error) (what string, class error) {
	switch numberOf(err) {
	case badLogin, notTrusted, disabled, expired, mustChange:
		return "the server refuses the login or its password; correct them: ", backends.ErrFatal
	case cannotOpen, noDatabase:
		return "there is no such database, or the login has no user in it; name another, create it, or create the user: ", backends.ErrFatal
	case noObject, noColumn, noSchema:
		return "the schema or a table in it is missing, or not to be seen; run what DDL and Grants give, or open the store with CreateSchema: ", backends.ErrFatal
	case noRight, noRightCol, noRightTo, noServer, noPermission:
		return "the user lacks a right; run what Grants gives: ", backends.ErrFatal
	case noFunction:
		return "the server is too old, SQL Server 2016 is the oldest that is supported: ", backends.ErrFatal
	case longKey:
		return "the names of the group and the key are too long together: ", backends.ErrInvalid
	case readOnly, notQueryable:
		return "the database is read-only or a secondary; the address must lead to the primary: ", nil
	case restoring, inTransition, stopping:
		return "the server is starting or stopping, or the database is being restored: ", nil
	case logFull, diskFull:
		return "the database is full: ", nil
	case lockTimeout, notGranted:
		return "another process holds a lock for long; if it is frozen, end it, or its connection: ", nil
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "certificate is valid for"), strings.Contains(text, "certificate is not valid for any names"),
		strings.Contains(text, "doesn't contain any IP SANs"):
		return "the server's TLS certificate is not for this name; connect by a name that it has, or set hostNameInCertificate: ", backends.ErrFatal
	case strings.Contains(text, "x509:"):
		return "the server's TLS certificate is not trusted; name its authority in the parameter certificate: ", backends.ErrFatal
	case strings.Contains(text, "server does not support encryption"), strings.Contains(text, "does not support TLS"):
		return "the server does not speak TLS; turn it on there, or use encrypt=disable where the network is trusted: ", backends.ErrFatal
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" || strings.Contains(text, "unable to open tcp connection") {
		return "the server cannot be reached: ", nil
	}
	return "", nil
}

package ftp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

const (
	// DefaultConnections is how many connections a Source has at most.
	DefaultConnections = 8
	// DefaultTimeout is how long a server may take for one step.
	DefaultTimeout = 30 * time.Second
)

// Config says where the server is, and which files are messages and what becomes of them. URL and OnSuccess are required;
// the zero value of every other field is a working default.
type Config struct {
	// URL is the server and the directory below which resources are:
	//
	//	ftp://user@host:21/path     without encryption
	//	ftps://user@host:21/path    TLS, asked for with AUTH TLS; from the first byte on port 990 or with ImplicitTLS
	//	sftp://user@host:22/path    SFTP, over SSH
	//
	// The path begins at the directory that the user is in after the login; one that begins with a second slash
	// (ftp://host//data) begins at the root. A password in it is taken, but one in Password or PasswordFile is seen by fewer.
	URL string
	// User is who logs in. Defaults to the user in URL, or anonymous for FTP.
	User string
	// Password is the user's. Defaults to the one in URL, or none.
	Password string
	// PasswordFile is a file that holds the password, read at each login; its last line end is left out. It excludes Password.
	PasswordFile string

	// TLS is how FTPS is spoken: authorities, certificates of the client, the server's name. Defaults to the authorities of
	// the system and the host in URL. What servers need beside it is added: sessions are kept, because most refuse a data
	// connection that does not go on with the session of the control connection; and MaxVersion is TLS 1.2 unless it is set,
	// because some resume no session of TLS 1.3 for uploads.
	TLS *tls.Config
	// ImplicitTLS speaks TLS from the first byte. Defaults to false, or true where URL has port 990. For ftps:// alone.
	ImplicitTLS bool
	// SSH is how SFTP is spoken.
	SSH SSH

	// TrustPassiveAddress connects for data to the address that the server names in its reply to PASV. Defaults to false:
	// to the host of the control connection, whatever the server names, so that a server cannot send the client elsewhere
	// and one behind a NAT that names its inner address works.
	TrustPassiveAddress bool
	// Connections is how many connections to the server the Source has at most: each file that is being read takes one, and
	// one is kept for listings and settlements. Files that are opened beyond that wait; a handler that opens several at once needs
	// as many, see the package's documentation. At least 2. Defaults to 8.
	Connections int
	// Timeout is how long the server may take to connect, to answer a command or to send or take the next bytes. A
	// connection that takes longer is closed. Defaults to 30 s.
	Timeout time.Duration
	// IgnoreUnique leaves the servers' own identification of files out of what a file is known by, which is then its size
	// and its time alone. Defaults to false. For several servers behind one address that identify the same file differently.
	IgnoreUnique bool

	// Policy is what sources of files have in common. OnSuccess is pickup.Delete(), pickup.MoveTo(folder) or pickup.Keep(),
	// OnFailure MoveTo, Keep or none. An absolute folder is a path on the server. A move is a rename, so the folder must be where the
	// server can rename to.
	pickup.Policy
}

// settings are a checked Config.
type settings struct {
	dial        dialer
	root        string // as URL has it: absolute, or below the directory of the login
	connections int
	timeout     time.Duration
	options     files.Options
	logger      *slog.Logger
}

// target is what both protocols need to connect and log in.
type target struct {
	scheme   string // ftp, ftps or sftp
	host     string // a name or an address, without brackets
	addr     string // host:port
	user     string
	password func() (string, error) // "" for none; read anew for each login
	timeout  time.Duration
	logger   *slog.Logger
}

// check returns what New needs, or all violations. No error holds a password.
func (c Config) check() (settings, error) {
	s := settings{connections: c.Connections}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("ftp: "+format, args...)) }
	if s.connections == 0 {
		s.connections = DefaultConnections
	} else if s.connections < 2 {
		bad("Connections is %d, must be at least 2: one of them is for listings and settlements", c.Connections)
	}
	if c.Timeout < 0 {
		bad("Timeout is %v, must not be negative", c.Timeout)
	}
	t, root, err := c.target()
	if err != nil {
		bad("URL: %w", err)
	}
	s.root, s.timeout = root, t.timeout
	options, err := files.FromPolicy(c.Policy, files.Can{
		Rename: true, Keep: true, Parallel: max(1, s.connections/2), Folder: func(folder string) (string, error) { return cleanFolder(s.root, folder) },
	})
	if err != nil {
		bad("%w", err)
	}
	s.options, s.logger = options, options.Logger
	t.logger = s.logger
	if c.Password != "" && c.PasswordFile != "" {
		bad("Password and PasswordFile are set, must be one of them")
	}
	if c.TLS != nil && t.scheme != "ftps" && t.scheme != "" {
		bad("TLS is set, and URL begins with %s://, which does not use it: write ftps://", t.scheme)
	}
	if c.ImplicitTLS && t.scheme != "ftps" && t.scheme != "" {
		bad("ImplicitTLS is set, and URL begins with %s://, which does not use it: write ftps://", t.scheme)
	}
	var more []error
	switch t.scheme {
	case "ftp", "ftps":
		s.dial, more = c.ftpDialer(t)
	case "sftp":
		s.dial, more = c.sftpDialer(t)
	}
	for _, err := range more {
		bad("%w", err)
	}
	return s, errors.Join(errs...)
}

// target reads the URL.
func (c Config) target() (target, string, error) {
	t := target{timeout: c.Timeout, user: c.User}
	if t.timeout == 0 {
		t.timeout = DefaultTimeout
	}
	u, err := url.Parse(c.URL)
	if err != nil || strings.ContainsAny(c.URL, "\x00\r\n") { // the error quotes the URL, which may hold a password
		return t, "", errors.New("it is not a URL: write ftp://user@host:21/path, and escape what is special in each part (%2F for /)")
	}
	port := map[string]int{"ftp": 21, "ftps": 21, "sftp": 22}[u.Scheme]
	if port == 0 {
		return t, "", errors.New("it must begin with ftp://, ftps:// or sftp://")
	}
	if u.Opaque != "" || u.Hostname() == "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return t, "", fmt.Errorf("write %s://user@host:%d/path, and escape what is special in each part (%%3F for ?)", u.Scheme, port)
	}
	if c.ImplicitTLS {
		port = 990
	}
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
			return t, "", errors.New("the port must be 1 to 65535")
		}
	}
	t.scheme, t.host, t.addr = u.Scheme, u.Hostname(), net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	if t.user == "" {
		t.user = u.User.Username()
	}
	inURL, _ := u.User.Password()
	t.password = func() (string, error) { return c.password(inURL) }
	root := strings.TrimPrefix(u.Path, "/")
	if strings.ContainsAny(root, "\x00\r\n") {
		return t, "", errors.New("the path holds a zero byte or a line end")
	}
	for part := range strings.SplitSeq(root, "/") {
		if part == ".." {
			return t, "", errors.New("the path holds \"..\"")
		}
	}
	return t, path.Clean(root), nil
}

// password is what the next login uses.
func (c Config) password(inURL string) (string, error) {
	switch {
	case c.PasswordFile != "":
		b, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("PasswordFile: %w", err)
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
	case c.Password != "":
		return c.Password, nil
	}
	return inURL, nil
}

// cleanFolder checks a folder of MoveTo.
func cleanFolder(root, folder string) (string, error) {
	switch {
	case folder == "":
		return "", errors.New("the folder must have a name")
	case !carries(folder):
		return "", errors.New("the folder holds a byte that cannot be sent")
	case strings.HasPrefix(folder, "/"):
		if folder = path.Clean(folder); folder == root {
			return "", errors.New("that is the directory in URL, files would come again")
		}
		return folder, nil
	}
	if folder = path.Clean(folder); folder == "." || folder == ".." || strings.HasPrefix(folder, "../") {
		return "", errors.New("a relative folder must be inside the directory of the resource")
	}
	return folder, nil
}

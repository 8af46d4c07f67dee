//go:build linux

package testserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// secretHash is that of the password "secret", by crypt with MD5, which costs next to nothing: tests log in often.
const secretHash = "$1$rebalanc$kmcp362.giOSc47Ujulgl/"

// FTPServers are the kinds of servers that StartFTP knows.
func FTPServers() []string { return []string{"vsftpd", "proftpd", "pure-ftpd"} }

// FTPOptions say what an FTP server is. The zero value of TLS is none.
type FTPOptions struct {
	Kind  string   // one of FTPServers
	TLS   string   // "", "explicit" or "implicit", which pure-ftpd cannot; with TLS nothing goes without, and sessions are to be resumed
	CA    *CA      // of the certificate, which is for localhost; nil: one of its own
	Lines []string // added to the configuration of vsftpd and proftpd, to the arguments of pure-ftpd
}

// FTP is a server that listens on 127.0.0.1. Whoever logs in sees a root in which there is nothing but the directory /home, which is Home here; there
// everything is allowed. What the server writes belongs to UID. User and Password are those of the one user; vsftpd, without PAM, takes any password.
type FTP struct {
	*Process
	t              testing.TB
	Options        FTPOptions
	Port           int
	Home           string
	User, Password string
	UID            int
	CA             *CA
	dir, install   string
}

// StartFTP starts a server with an empty Home.
func StartFTP(t testing.TB, o FTPOptions) *FTP {
	t.Helper()
	s := &FTP{t: t, Options: o, Port: Port(t), User: "worker", Password: "secret", CA: o.CA, dir: Dir(t), install: filepath.Join(servers(t), "ftp")}
	s.Home = filepath.Join(s.dir, "root", "home")
	if s.CA == nil {
		s.CA = NewCA(t)
	}
	binary := Need(t, "", filepath.Join(s.install, "usr", "sbin", o.Kind))
	gid := 0
	s.UID, gid = IDs(t, "daemon")
	if err := os.MkdirAll(s.Home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(s.Home, s.UID, gid); err != nil {
		t.Fatal(err)
	}
	s.Certify(s.CA)
	var args []string
	switch o.Kind {
	case "vsftpd":
		s.User = "anonymous"
		args = s.vsftpd()
	case "proftpd":
		args = s.proftpd(gid)
	case "pure-ftpd":
		args = s.pureftpd(gid)
	default:
		t.Fatalf("testserver: no FTP server %q", o.Kind)
	}
	ready := greets
	if o.TLS == "implicit" {
		ready = dials
	}
	s.Process = Start(t, Spec{
		Name: o.Kind, Path: binary, Args: args, Dir: s.dir, Env: s.env(),
		Ready: func(ctx context.Context) error { return ready(ctx, s.Port) },
	})
	return s
}

// Addr is where clients connect to.
func (s *FTP) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// Certify gives the server a certificate of another authority; it holds after a Restart.
func (s *FTP) Certify(ca *CA) {
	s.t.Helper()
	cert, key := ca.Issue(s.t, "localhost")
	s.write("cert.pem", string(key)+string(cert))
}

// env is where the servers find the libraries that came with them.
func (s *FTP) env() []string {
	libs, _ := filepath.Glob(filepath.Join(s.install, "usr", "lib", "*-linux-gnu*"))
	more, _ := filepath.Glob(filepath.Join(s.install, "lib", "*-linux-gnu*"))
	return []string{"LD_LIBRARY_PATH=" + strings.Join(append(libs, more...), ":")}
}

func (s *FTP) write(name, text string) string {
	s.t.Helper()
	p := filepath.Join(s.dir, name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *FTP) vsftpd() []string {
	lines := []string{
		"listen=YES", "background=NO", "listen_address=127.0.0.1", "listen_port=" + strconv.Itoa(s.Port),
		"anonymous_enable=YES", "local_enable=NO", "ftp_username=daemon", "anon_root=" + filepath.Dir(s.Home),
		"write_enable=YES", "anon_upload_enable=YES", "anon_mkdir_write_enable=YES", "anon_other_write_enable=YES",
		"anon_world_readable_only=NO", "anon_umask=022", "secure_chroot_dir=" + s.dir, "connect_from_port_20=NO",
		"seccomp_sandbox=NO", "xferlog_enable=NO", "max_per_ip=0", "accept_timeout=20",
	}
	if s.Options.TLS != "" {
		cert := filepath.Join(s.dir, "cert.pem")
		lines = append(lines, "ssl_enable=YES", "allow_anon_ssl=YES", "force_anon_logins_ssl=YES", "force_anon_data_ssl=YES", "require_ssl_reuse=YES",
			"ssl_tlsv1=YES", "rsa_cert_file="+cert, "rsa_private_key_file="+cert, "ssl_ciphers=HIGH")
	}
	if s.Options.TLS == "implicit" {
		lines = append(lines, "implicit_ssl=YES")
	}
	lines = append(lines, s.Options.Lines...)
	return []string{s.write("vsftpd.conf", strings.Join(lines, "\n")+"\n")}
}

func (s *FTP) proftpd(gid int) []string {
	users := s.write("users", fmt.Sprintf("%s:%s:%d:%d::%s:/bin/sh\n", s.User, secretHash, s.UID, gid, filepath.Dir(s.Home)))
	lines := []string{
		"ServerName test", "ServerType standalone", "DefaultServer on", "DefaultAddress 127.0.0.1", "Port " + strconv.Itoa(s.Port), "UseIPv6 off", "UseReverseDNS off",
		"User daemon", "Group daemon", "AuthOrder mod_auth_file.c", "AuthUserFile " + users, "RequireValidShell off", "AuthPAM off", "WtmpLog off", "TransferLog none",
		"DefaultRoot ~", "AllowOverwrite on", "AllowStoreRestart on", "AllowRetrieveRestart on", "Umask 022", "MaxInstances none",
		"DelayEngine off", "PidFile " + filepath.Join(s.dir, "pid"), "ScoreboardFile " + filepath.Join(s.dir, "scoreboard"),
		"SystemLog " + filepath.Join(s.dir, "proftpd.log"), "ModulePath " + filepath.Join(s.install, "usr", "lib", "proftpd"),
	}
	if s.Options.TLS != "" {
		cert := filepath.Join(s.dir, "cert.pem")
		lines = append(lines, "LoadModule mod_tls.c", "TLSEngine on", "TLSRequired on", "TLSLog "+filepath.Join(s.dir, "tls.log"),
			"TLSECCertificateFile "+cert, "TLSECCertificateKeyFile "+cert)
	}
	if s.Options.TLS == "implicit" {
		lines = append(lines, "TLSOptions UseImplicitSSL")
	}
	lines = append(lines, s.Options.Lines...)
	return []string{"-n", "-q", "-c", s.write("proftpd.conf", strings.Join(lines, "\n")+"\n")}
}

func (s *FTP) pureftpd(gid int) []string {
	s.t.Helper()
	db := filepath.Join(s.dir, "users.pdb")
	users := s.write("users", fmt.Sprintf("%s:%s:%d:%d::%s/./::::::::::::\n", s.User, secretHash, s.UID, gid, filepath.Dir(s.Home)))
	build := exec.Command(filepath.Join(s.install, "usr", "bin", "pure-pw"), "mkdb", db, "-f", users)
	build.Env = s.env()
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("testserver: pure-pw: %v: %s", err, out)
	}
	args := []string{"-S", "127.0.0.1," + strconv.Itoa(s.Port), "-l", "puredb:" + db, "-E", "-H", "-u", "1", "-A", "-g", filepath.Join(s.dir, "pid"), "-U", "022:022", "-L", "10000000:10", "-z", "-c", "1000"}
	switch s.Options.TLS {
	case "explicit":
		args = append(args, "-Y", "3", "-2", filepath.Join(s.dir, "cert.pem"))
	case "implicit":
		s.t.Fatal("testserver: pure-ftpd has no implicit TLS")
	}
	return append(args, s.Options.Lines...)
}

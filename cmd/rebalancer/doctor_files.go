package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// wholeness says what of a policy may let files be taken before they are whole.
func wholeness(d *doctor, p pickup.Policy) {
	if p.StableFor < 0 && p.DoneFile == "" && p.ChecksumFile == "" && p.TriggerFile == "" {
		d.find(stateWarning, "policy", "set stable_for, done_file, checksum_file or trigger_file, unless files appear whole, by a rename", "a file is taken as soon as it is there")
	}
}

// fileDoctor looks at directories.
type fileDoctor struct {
	root   string
	policy pickup.Policy
}

func (f *fileDoctor) place(_ context.Context, d *doctor) {
	d.find(stateOK, "directory", "", "%s", f.root)
	if shared := networkDisk(f.root); shared != "" {
		d.find(stateNote, "directory", "use a store that all machines reach, and read what sources/file says about shares", "%s", shared)
	}
	wholeness(d, f.policy)
}

// directory looks at whether what is worked can be moved away or deleted.
func (f *fileDoctor) directory(ctx context.Context, d *doctor, check, name string, tryWrites bool) {
	dir := filepath.Join(f.root, filepath.FromSlash(name))
	if err := mayWrite(dir); err != nil {
		d.failed(check, fmt.Errorf("files cannot be moved away or deleted: %w", err))
		return
	}
	if !tryWrites {
		return
	}
	d.step(ctx, check+" writes", func(context.Context) (string, error) {
		t, err := os.CreateTemp(dir, ".rebalancer-doctor-*")
		if err != nil {
			return "", err
		}
		return "a file was made and removed", errors.Join(t.Close(), os.Remove(t.Name()))
	})
}

// ftpDoctor looks at a server for files.
type ftpDoctor struct {
	at     *url.URL
	policy pickup.Policy
}

// place reads what the server says of itself before anybody logs in.
func (f *ftpDoctor) place(ctx context.Context, d *doctor) {
	if f.at.Query().Get("implicit_tls") == "" {
		d.step(ctx, "connect "+f.at.Host, func(ctx context.Context) (string, error) {
			said, err := f.greeting(ctx)
			d.version(said)
			return said, err
		})
	}
	wholeness(d, f.policy)
	d.find(stateNote, "rights", "", "whether files may be moved or deleted shows when the first is: doctor changes nothing on the server")
	if f.at.Scheme == "ftp" {
		d.find(stateWarning, "encryption", "use ftps:// or sftp://", "ftp:// sends the password and the files in the clear")
	}
}

func (f *ftpDoctor) greeting(ctx context.Context) (string, error) {
	port := map[string]string{"ftp": "21", "ftps": "21", "sftp": "22"}[f.at.Scheme]
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(f.at.Hostname(), orElse(f.at.Port(), port)))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return "", err
		}
	}
	line, err := bufio.NewReaderSize(conn, 512).ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(line), "?")), nil
}

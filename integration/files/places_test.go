//go:build linux

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/crypto/ssh"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/file"
	"github.com/rebalancer-go/rebalancer/sources/ftp"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	s3source "github.com/rebalancer-go/rebalancer/sources/s3"
)

// place is where files are uploaded to and taken from. Servers serve directories of this machine, so uploads are files, but for S3.
type place struct {
	Kind     string
	Root     string // a directory; not for s3
	URL      string // of the server
	Password string
	Key      string // a file
	HostKey  string
	Bucket   string
}

// source opens the place as a node.
func (p place) source(doneFile string) (interface {
	sources.Source
	Close() error
}, error) {
	policy := pickup.Policy{
		OnSuccess: pickup.Delete(), StableFor: stableFor, Interval: 100 * time.Millisecond, IdleInterval: 300 * time.Millisecond, DoneFile: doneFile,
	}
	switch p.Kind {
	case "file":
		return file.New(file.Config{Root: p.Root, Policy: policy})
	case "s3":
		return s3source.New(s3source.Config{Client: p.client(), Bucket: p.Bucket, Policy: policy})
	}
	return ftp.New(ftp.Config{
		URL: p.URL, Password: p.Password, Policy: policy, Timeout: 10 * time.Second, SSH: ftp.SSH{PrivateKeyFile: p.Key, HostKeys: hostKeys(p.HostKey)},
	})
}

func hostKeys(key string) []string {
	if key == "" {
		return nil
	}
	return []string{key}
}

func (p place) client() *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: &p.URL, Region: "us-east-1", UsePathStyle: true, Credentials: aws.CredentialsProviderFunc(
		func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: p.Key, SecretAccessKey: p.Password}, nil
		})})
}

// put uploads a file that appears at once, in place of one of its name.
func (p place) put(ctx context.Context, resource, name string, body []byte) error {
	if p.Kind == "s3" {
		key := resource + "/" + name
		_, err := p.client().PutObject(ctx, &s3.PutObjectInput{Bucket: &p.Bucket, Key: &key, Body: bytes.NewReader(body)})
		return err
	}
	temp := p.path(resource, fmt.Sprintf(".%s.%d", name, os.Getpid()))
	return errors.Join(os.WriteFile(temp, body, 0o644), os.Rename(temp, p.path(resource, name)))
}

func (p place) path(resource, name string) string { return filepath.Join(p.Root, resource, name) }

// left are the files of a resource.
func (p place) left(t *testing.T, resource string) (names []string) {
	t.Helper()
	if p.Kind == "s3" {
		prefix := resource + "/"
		out, err := p.client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &p.Bucket, Prefix: &prefix})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out.Contents {
			names = append(names, *o.Key)
		}
		return names
	}
	entries, err := os.ReadDir(p.path(resource, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") { // what a process left that died while it uploaded
			names = append(names, e.Name())
		}
	}
	return names
}

// places start a server each and make an empty place, with its resources.
func places() map[string]func(t *testing.T, resources []string) place {
	return map[string]func(*testing.T, []string) place{"file": localPlace, "sftp": sftpPlace, "ftp": ftpPlace, "s3": s3Place}
}

func localPlace(t *testing.T, resources []string) place {
	p := place{Kind: "file", Root: t.TempDir()}
	p.make(t, resources)
	return p
}

// make makes directories in which every user may do everything: servers have one of their own.
func (p place) make(t *testing.T, resources []string) {
	t.Helper()
	for _, r := range resources {
		dir := p.path(r, "")
		if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
}

func sftpPlace(t *testing.T, resources []string) place {
	s := testserver.StartOpenSSH(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, s.Key, 0o600); err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "sftp", User: url.User(s.User), Host: s.Addr(), Path: "/" + s.Data}
	p := place{Kind: "sftp", Root: s.Data, URL: u.String(), Key: key, HostKey: ssh.FingerprintSHA256(s.HostKey)}
	p.make(t, resources)
	return p
}

func ftpPlace(t *testing.T, resources []string) place {
	s := testserver.StartFTP(t, testserver.FTPOptions{Kind: "proftpd"})
	u := url.URL{Scheme: "ftp", User: url.User(s.User), Host: s.Addr(), Path: "//home"}
	p := place{Kind: "ftp", Root: s.Home, URL: u.String(), Password: s.Password}
	p.make(t, resources)
	return p
}

func s3Place(t *testing.T, _ []string) place {
	s := testserver.StartVersityGW(t)
	p := place{Kind: "s3", URL: s.Endpoint(), Key: s.Access, Password: s.Secret, Bucket: "bucket"}
	if _, err := p.client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &p.Bucket}); err != nil {
		t.Fatal(err)
	}
	return p
}

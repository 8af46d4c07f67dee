//go:build linux

package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/crypto/ssh"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func TestSourceRabbitMQ(t *testing.T) {
	t.Parallel()
	r := servers.RabbitMQ(t, 4)
	vhost := r.VHost(t)
	queue := func(name string, arguments map[string]any) {
		r.Must(http.MethodPut, "/api/queues/"+url.PathEscape(vhost)+"/"+name, map[string]any{"durable": true, "arguments": arguments}, nil)
	}
	queue("orders.0", map[string]any{"x-queue-type": "quorum"})
	queue("orders.1", map[string]any{"x-queue-type": "classic", "x-message-ttl": 1000})
	p := newProgram(t)
	source := func(user, password string) string {
		return r.URLAt(r.Addr(), user, password, vhost) + "?management=" + url.QueryEscape("http://"+r.ManagementAddr())
	}
	fs := p.doctor("--source", source("guest", "guest"), "--discover", "orders.*", "--resource", "orders.0")
	p.well(fs)
	p.want(fs, "ok", "version", "RabbitMQ 4.0")
	p.want(fs, "ok", "list", "2 resources found")
	p.want(fs, "warning", "resource orders.0", "returned 20 times")
	p.want(fs, "warning", "resource orders.1", "message-ttl")
	p.want(p.doctor("--source", source("guest", "guest"), "--resource", "none"), "failed", "resource none", "make the resource")
	p.want(p.doctor("--source", source("guest", "wrong-password"), "--resource", "orders.0"), "failed", "connect", "REBALANCER_SOURCE_PASSWORD")
	user := "doctor-" + strings.ReplaceAll(vhost, "/", "-")
	r.User(user, "pw")
	r.Permit(user, vhost, "", "", "")
	fs = p.doctor("--source", source(user, "pw"), "--resource", "orders.0")
	p.want(fs, "warning", "management", "tag management")
	if strings.Contains(fmt.Sprint(fs), "wrong-password") {
		t.Error("the password is shown")
	}
}

func TestSourceSQS(t *testing.T) {
	t.Parallel()
	s := testserver.StartFauxQS(t)
	client := sqs.New(sqs.Options{BaseEndpoint: aws.String(s.Endpoint()), Region: "us-east-1", Credentials: credentials("id", "key")})
	for _, q := range []string{"orders-1", "orders-2", "mail"} {
		if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &q}); err != nil {
			t.Fatal(err)
		}
	}
	p := newProgram(t, "AWS_ENDPOINT_URL_SQS="+s.Endpoint(), "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=key")
	fs := p.doctor("--source", "sqs://us-east-1", "--discover", "orders-*")
	p.well(fs)
	p.want(fs, "ok", "list", "2 resources found")
	p.want(fs, "note", "resource orders-1", "no RedrivePolicy")
	p.want(p.doctor("--source", "sqs://us-east-1", "--resource", "none"), "failed", "resource none", "make the resource")
}

func TestSourceS3(t *testing.T) {
	t.Parallel()
	s := testserver.StartVersityGW(t)
	client := s3.New(s3.Options{BaseEndpoint: aws.String(s.Endpoint()), Region: "us-east-1", UsePathStyle: true, Credentials: credentials(s.Access, s.Secret)})
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("orders")})
	if err == nil {
		_, err = client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("orders"), Key: aws.String("in/a"), Body: strings.NewReader("x")})
	}
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, "AWS_ACCESS_KEY_ID="+s.Access, "AWS_SECRET_ACCESS_KEY="+s.Secret)
	query := "?region=us-east-1&endpoint=" + s.Endpoint()
	fs := p.doctor("--source", "s3://orders"+query, "--discover", "*", "--try-writes")
	p.well(fs)
	p.want(fs, "ok", "resource in", "1 message")
	p.want(fs, "ok", "resource in writes", "made and removed")
	p.want(p.doctor("--source", "s3://none"+query, "--resource", "in"), "failed", "bucket", "")
	p = newProgram(t, "AWS_ACCESS_KEY_ID="+s.Access, "AWS_SECRET_ACCESS_KEY=wrong-secret")
	p.want(p.doctor("--source", "s3://orders"+query, "--resource", "in"), "failed", "bucket", "REBALANCER_SOURCE_PASSWORD")
}

func credentials(id, key string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: key}, nil
	})
}

// TestSourceFTP and SFTP: directories are discovered and worked, too.
func TestSourceFTP(t *testing.T) {
	t.Parallel()
	s := testserver.StartFTP(t, testserver.FTPOptions{Kind: "proftpd"})
	folders(t, s.Home, s.UID)
	p := newProgram(t, "REBALANCER_SOURCE_PASSWORD="+s.Password)
	source := fmt.Sprintf("ftp://%s@%s//home?stable_for=0s&interval=100ms", s.User, s.Addr())
	fs := p.doctor("--source", source, "--discover", "in-*")
	p.well(fs)
	p.want(fs, "ok", "list", "2 resources found")
	p.want(fs, "warning", "encryption", "in the clear")
	p.want(fs, "warning", "policy", "stable_for")
	p.discovered(source)
	p = newProgram(t, "REBALANCER_SOURCE_PASSWORD=wrong-password")
	p.want(p.doctor("--source", source, "--discover", "in-*"), "failed", "list", "REBALANCER_SOURCE_PASSWORD")
}

func TestSourceSFTP(t *testing.T) {
	t.Parallel()
	s := testserver.StartOpenSSH(t)
	for _, name := range []string{"in-1", "in-2", "other"} {
		dir := s.Mkdir(name)
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, s.Key, 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProgram(t)
	at := fmt.Sprintf("sftp://%s@%s/%s?stable_for=0s&interval=100ms&private_key=%s", s.User, s.Addr(), s.Data, key)
	source := at + "&host_key=" + url.QueryEscape(ssh.FingerprintSHA256(s.HostKey))
	fs := p.doctor("--source", source, "--discover", "in-*")
	p.well(fs)
	p.want(fs, "ok", "connect", "OpenSSH")
	p.want(fs, "ok", "version", "OpenSSH 9.2")
	p.want(fs, "ok", "resource in-1", "1 message")
	p.discovered(source)
	p.want(p.doctor("--source", at+"&host_key=SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "--discover", "in-*"), "failed", "list", "host_key")
}

// folders makes in-1 and in-2, and one that is not asked for, with a file each.
func folders(t *testing.T, root string, uid int) {
	t.Helper()
	for _, name := range []string{"in-1", "in-2", "other"} {
		dir, file := filepath.Join(root, name), filepath.Join(root, name, "a")
		for _, err := range []error{os.Mkdir(dir, 0o755), os.WriteFile(file, []byte(name), 0o644), os.Chown(dir, uid, -1), os.Chown(file, uid, -1)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// discovered works the two files that are in the directories which match.
func (p *program) discovered(source string) {
	p.t.Helper()
	out, errs, code := p.run("consume", "g", "--source", source, "--store", "sqlite://"+filepath.Join(p.t.TempDir(), "g.db"), "--discover", "in-*", "--count", "2",
		"--ttl", "5s", "--", "sh", "-c", `echo "$RB_RESOURCE $RB_KEY $(cat)"`)
	if code != 0 || !strings.Contains(out, "in-1 a in-1\n") || !strings.Contains(out, "in-2 a in-2\n") || strings.Contains(out, "other") {
		p.t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
}

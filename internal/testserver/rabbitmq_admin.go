//go:build linux

package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Call asks the management API: path is escaped, and begins with /api. body and answer are JSON; nil for none.
func (r *RabbitMQ) Call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, r.ManagementURL()+path, content)
	if err != nil {
		return err
	}
	request.Close = true // no connection is left for tests that look for leaks
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, b)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(b, answer)
	}
	return err
}

// Must is Call that fails the test when the server refuses.
func (r *RabbitMQ) Must(method, path string, body, answer any) {
	r.t.Helper()
	if err := r.Call(context.WithoutCancel(r.t.Context()), method, path, body, answer); err != nil {
		r.t.Fatalf("testserver: RabbitMQ %d: %v", r.Version, err)
	}
}

// VHost makes a virtual host, with a name of its own, and removes it after the test, with all that is in it.
func (r *RabbitMQ) VHost(t testing.TB) string {
	t.Helper()
	r = r.For(t)
	name := fmt.Sprintf("v%08x", rand.Uint32())
	r.Must(http.MethodPut, "/api/vhosts/"+name, struct{}{}, nil)
	t.Cleanup(func() {
		if r.Running() { // a server that is down or frozen ends with its own test
			_ = r.Call(context.Background(), http.MethodDelete, "/api/vhosts/"+name, nil, nil)
		}
	})
	r.Permit("guest", name, ".*", ".*", ".*")
	return name
}

// User makes a user, or gives it another password and other tags, such as "monitoring". It may enter no virtual host: see Permit. It is removed
// after the test.
func (r *RabbitMQ) User(name, password string, tags ...string) {
	r.t.Helper()
	r.Must(http.MethodPut, "/api/users/"+url.PathEscape(name), map[string]string{"password": password, "tags": strings.Join(tags, ",")}, nil)
	r.t.Cleanup(func() {
		if r.Running() {
			_ = r.Call(context.Background(), http.MethodDelete, "/api/users/"+url.PathEscape(name), nil, nil)
		}
	})
}

// Permit sets what a user may do in a virtual host: three regular expressions of names, "" for none.
func (r *RabbitMQ) Permit(user, vhost, configure, write, read string) {
	r.t.Helper()
	r.Must(http.MethodPut, "/api/permissions/"+url.PathEscape(vhost)+"/"+url.PathEscape(user),
		map[string]string{"configure": configure, "write": write, "read": read}, nil)
}

// Forbid takes all permissions of a user in a virtual host away.
func (r *RabbitMQ) Forbid(user, vhost string) {
	r.t.Helper()
	r.Must(http.MethodDelete, "/api/permissions/"+url.PathEscape(vhost)+"/"+url.PathEscape(user), nil, nil)
}

// CloseConnections closes all client connections of a user, as an operator does, and tells how many. Statistics show a connection up to a second
// after it began.
func (r *RabbitMQ) CloseConnections(user string) int {
	r.t.Helper()
	var all []struct{ Name, User string }
	r.Must(http.MethodGet, "/api/connections", nil, &all)
	n := 0
	for _, c := range all {
		if c.User == user && r.Call(r.t.Context(), http.MethodDelete, "/api/connections/"+url.PathEscape(c.Name), nil, nil) == nil {
			n++
		}
	}
	return n
}

// MemoryAlarm raises the alarm of too much memory in use, which blocks connections that publish, or takes it back.
func (r *RabbitMQ) MemoryAlarm(on bool) {
	r.t.Helper()
	mark := "0.4"
	if on {
		mark = "0"
	}
	r.Ctl("set_vm_memory_high_watermark", mark)
}

// Ctl runs rabbitmqctl on this server and returns what it prints. It takes two seconds or more: most things are quicker with Must.
func (r *RabbitMQ) Ctl(args ...string) string {
	r.t.Helper()
	c := Process{t: r.t, spec: r.spec}
	c.spec.Path = filepath.Join(filepath.Dir(r.spec.Path), "rabbitmqctl")
	c.spec.Args = append([]string{"--quiet"}, args...)
	out, err := c.command().CombinedOutput()
	if err != nil {
		r.t.Fatalf("testserver: rabbitmqctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

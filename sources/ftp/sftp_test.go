//go:build linux

package ftp

import (
	"context"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/testserver"
)

func TestSFTPFirst(t *testing.T) {
	s := testserver.StartOpenSSH(t)
	t.Cleanup(func() { t.Log(s.Output()) })
	r := connected(t, sftpConfig(t, s, s.Addr()))
	t.Log(r.home(), s.Output())
	ctx := context.Background()
	t.Log(r.put(ctx, s.Data+"/a", []byte("hello")))
	t.Log(r.put(ctx, s.Data+"/a", []byte("hello")))
	t.Log(r.mkdir(ctx, s.Data+"/d"), r.mkdir(ctx, s.Data+"/d"), r.mkdir(ctx, s.Data+"/a"))
	t.Log(r.stat(ctx, s.Data+"/a"))
	t.Log(r.rename(ctx, s.Data+"/a", s.Data+"/b"))
	t.Log(r.put(ctx, s.Data+"/a", []byte("hello")))
	t.Log(r.rename(ctx, s.Data+"/a", s.Data+"/b"))
	t.Log(r.rename(ctx, s.Data+"/a", s.Data+"/x/b"))
	t.Log(r.rename(ctx, s.Data+"/c", s.Data+"/x/b"))
	t.Log(r.list(ctx, s.Data, func(p []entry) error { t.Log(p); return nil }))
	t.Log(r.list(ctx, s.Data+"/no", func(p []entry) error { t.Log(p); return nil }))
	t.Log(r.remove(ctx, s.Data+"/d"))
	t.Log(r.alive(ctx))
}

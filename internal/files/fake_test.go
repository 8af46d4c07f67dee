package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a place in memory. fail, when set, is asked before each operation.
type fake struct {
	mu     sync.Mutex
	files  map[string]*fakeFile
	moved  map[string]string // folder/name → body
	plain  bool              // folders take plain names alone
	gone   bool
	hidden map[string]bool // what listings lack
	fail   func(op, name string) error
	stats  int
	lists  int
	exact  bool          // listings tell all
	block  chan struct{} // List waits for it when set
	hang   time.Duration // Move takes so long
	inode  int
}

type fakeFile struct {
	body  string
	mod   time.Time
	inode int
}

func newFake() *fake { return &fake{files: map[string]*fakeFile{}, moved: map[string]string{}} }

// put writes a file, a new one each time.
func (p *fake) put(name, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inode++
	p.files[name] = &fakeFile{body, time.Now(), p.inode}
}

// grow appends to a file in place.
func (p *fake) grow(name, more string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[name]
	p.files[name] = &fakeFile{f.body + more, time.Now(), f.inode}
}

func (p *fake) remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.files, name)
}

func (p *fake) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[name] != nil
}

func (p *fake) names() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.files)
}

func (p *fake) set(f func(p *fake)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// begin is the start of each operation; mu is held on return.
func (p *fake) begin(ctx context.Context, op, name string) error {
	p.mu.Lock()
	if p.fail != nil {
		if err := p.fail(op, name); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (f *fakeFile) info() Info {
	return Info{Size: int64(len(f.body)), ModTime: f.mod, Tag: fmt.Sprint(f.inode)}
}

func (p *fake) List(ctx context.Context, each func([]Entry) error) error {
	err := p.begin(ctx, "list", "")
	block := p.block
	p.mu.Unlock()
	if err != nil {
		return err
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	if p.gone {
		return sources.ErrGone
	}
	var page []Entry
	for name, f := range p.files {
		if p.hidden[name] {
			continue
		}
		e := Entry{Name: name}
		if p.exact {
			info := f.info()
			e.Info = &info
		}
		if page = append(page, e); len(page) == 100 {
			if err := each(page); err != nil {
				return err
			}
			clear(page) // it is ours again
			page = page[:0]
		}
	}
	return each(page)
}

func (p *fake) Stat(ctx context.Context, name string) (Info, error) {
	err := p.begin(ctx, "stat", name)
	defer p.mu.Unlock()
	p.stats++
	if err != nil {
		return Info{}, err
	}
	f := p.files[name]
	if f == nil {
		return Info{}, fs.ErrNotExist
	}
	return f.info(), nil
}

func (p *fake) check(name string, want Info) (*fakeFile, error) {
	f := p.files[name]
	if f == nil {
		return nil, fs.ErrNotExist
	}
	if !f.info().Same(want) {
		return nil, rebalancer.ErrChanged
	}
	return f, nil
}

func (p *fake) Open(ctx context.Context, name string, want Info) (Content, error) {
	err := p.begin(ctx, "open", name)
	defer p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if _, err := p.check(name, want); err != nil {
		return nil, err
	}
	return &fakeContent{p: p, name: name}, nil
}

func (p *fake) Remove(ctx context.Context, name string, want Info) error {
	err := p.begin(ctx, "remove", name)
	defer p.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := p.check(name, want); err != nil {
		return err
	}
	delete(p.files, name)
	return nil
}

func (p *fake) Move(ctx context.Context, name string, want Info, folder, as string) error {
	select {
	case <-time.After(p.hang):
	case <-ctx.Done():
		return ctx.Err()
	}
	err := p.begin(ctx, "move", name)
	defer p.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := p.check(name, want)
	if err != nil {
		return err
	}
	if p.plain && Plain(as) != as && !strings.Contains(as, "%") {
		return fmt.Errorf("%w: %q", ErrName, as)
	}
	if _, ok := p.moved[folder+"/"+as]; ok {
		return fs.ErrExist
	}
	p.moved[folder+"/"+as] = f.body
	delete(p.files, name)
	return nil
}

func (p *fake) Rename(ctx context.Context, name string, want Info, as string) error {
	err := p.begin(ctx, "rename", name)
	defer p.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := p.check(name, want)
	if err != nil {
		return err
	}
	if p.files[as] != nil {
		return fs.ErrExist
	}
	p.files[as] = f
	delete(p.files, name)
	return nil
}

func (p *fake) Put(ctx context.Context, folder, name string, data []byte) error {
	err := p.begin(ctx, "put", name)
	defer p.mu.Unlock()
	if err != nil {
		return err
	}
	if _, ok := p.moved[folder+"/"+name]; ok {
		return fs.ErrExist
	}
	p.moved[folder+"/"+name] = string(data)
	return nil
}

func (p *fake) Close() error { return nil }

// fakeContent reads what the file is at the time of each Read.
type fakeContent struct {
	p      *fake
	name   string
	at     int
	closed bool
}

func (c *fakeContent) Read(b []byte) (int, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.closed {
		return 0, fs.ErrClosed
	}
	f := c.p.files[c.name]
	if f == nil {
		return 0, fs.ErrNotExist
	}
	body := f.body
	if c.at >= len(body) {
		return 0, io.EOF
	}
	n := copy(b, body[c.at:])
	c.at += n
	return n, nil
}

func (c *fakeContent) Stat() (Info, error) { return c.p.Stat(context.Background(), c.name) }
func (c *fakeContent) Close() error {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.closed = true
	return nil
}

// reader makes a Reader of a fake.
func reader(t testing.TB, p *fake, o Options) *Reader {
	t.Helper()
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	r := New(p, o, &rebalancer.Claim{Resource: "in", Fence: 7})
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// fetch fetches n files within a limit of virtual time and returns their keys too.
func fetch(t testing.TB, r *Reader, n int) ([]*rebalancer.Message, []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var ms []*rebalancer.Message
	var keys []string
	for len(ms) < n {
		got, err := r.Fetch(ctx, n-len(ms))
		if err != nil {
			t.Fatalf("Fetch after %d of %d: %v", len(ms), n, err)
		}
		for _, m := range got {
			ms, keys = append(ms, m), append(keys, m.Key)
		}
	}
	return ms, keys
}

// nothing checks that no file is delivered for a while.
func nothing(t testing.TB, r *Reader, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if ms, err := r.Fetch(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%d files delivered, error %v; want none", len(ms), err)
	}
}

func settle(t testing.TB, r *Reader, o sources.Outcome, ms ...*rebalancer.Message) {
	t.Helper()
	if err := r.Settle(context.Background(), settlements(o, ms...)); err != nil {
		t.Fatal(err)
	}
}

func settlements(o sources.Outcome, ms ...*rebalancer.Message) []sources.Settlement {
	var ss []sources.Settlement
	for _, m := range ms {
		ss = append(ss, sources.Settlement{Message: m, Outcome: o, Err: errors.New("no good")})
	}
	return ss
}

func read(t testing.TB, m *rebalancer.Message) (string, error) {
	t.Helper()
	rc, err := m.Open(context.Background())
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, rc)
	return b.String(), err
}

package seen

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/internal/checkpointtest"
)

// samples are entries of all kinds, in order.
func samples() []*entry {
	return []*entry{
		{name: "\x00", Record: done(0)},
		{name: "a", Record: done(math.MaxUint64)},
		{name: "a.csv", Record: Record{ID: 1, Outcome: Failed}},
		{name: "a.csv.1", Record: Record{ID: 0x0102030405060708, Attempts: 300, Next: 1_790_000_000_123}},
		{name: "ab", Record: Record{ID: 2, Attempts: math.MaxUint32, Next: math.MaxInt64}, gone: 1_790_000_000},
		{name: "ab\xff", Record: Record{ID: 3}},
		{name: "b" + strings.Repeat("ü", 500), Record: done(4), gone: math.MaxUint32},
	}
}

func sampleHead() *head {
	return &head{
		fence: 1_790_000_000_000_000, nonce: 0xfedcba9876543210, seq: 300, listed: 1_790_000_000, names: 123_456, next: 70_000,
		chunks: []chunkRef{{number: 69_999, count: 3, sum: 7}, {3, 65_536, math.MaxUint32}, {4, 1, 0}},
	}
}

// TestGolden: what one version wrote every later one reads. A change of these bytes is a change of the format.
func TestGolden(t *testing.T) {
	t.Parallel()
	list := newList()
	for _, e := range samples() {
		list.add(e)
	}
	for name, got := range map[string][]byte{"list": list.bytes(), "head": sampleHead().bytes()} {
		text, err := os.ReadFile("testdata/" + name + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", name, got, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	list := newList()
	for _, e := range samples() {
		list.add(e)
	}
	if list.size() != len(list.bytes()) {
		t.Errorf("size %d of %d bytes", list.size(), len(list.bytes()))
	}
	got, err := parseList(list.bytes(), "chunk 1")
	if err != nil || len(got) != len(samples()) {
		t.Fatal(len(got), err)
	}
	for i, e := range samples() {
		e.saved = e.gone
		if got[i] != *e {
			t.Errorf("got %+v, want %+v", got[i], *e)
		}
	}
	h, err := parseHead(sampleHead().bytes())
	if err != nil || !bytes.Equal(h.bytes(), sampleHead().bytes()) {
		t.Errorf("got %+v, %v", h, err)
	}
}

// TestDamagedValues: each bit that flips and each byte that is missing is noticed.
func TestDamagedValues(t *testing.T) {
	t.Parallel()
	list := newList()
	for _, e := range samples() {
		list.add(e)
	}
	parseHead := func(b []byte) error { _, err := parseHead(b); return err }
	parseList := func(b []byte) error { _, err := parseList(b, "the journal"); return err }
	for _, x := range []struct {
		value []byte
		parse func([]byte) error
	}{{list.bytes(), parseList}, {sampleHead().bytes(), parseHead}} {
		for i := range x.value {
			if err := x.parse(x.value[:i]); !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut off at %d: %v", i, err)
			}
			b := bytes.Clone(x.value)
			b[i] ^= 1 << (i % 8)
			if err := x.parse(b); !errors.Is(err, ErrDamaged) {
				t.Fatalf("byte %d flipped: %v", i, err)
			}
		}
		b := bytes.Clone(x.value[:len(x.value)-trailer])
		b[0] = format + 1
		b = seal(b)
		if err := x.parse(b); err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("a later format: %v", err)
		}
	}
}

// TestHostileValues: with a checksum that fits, too.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	for what, body := range map[string]string{
		"shares more than there is": "\x05\x01a\x01\x00\x00\x00\x00\x00\x00\x00\x00",
		"no name":                   "\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00",
		"a name without an end":     "\x00\x7fabc",
		"a number without an end":   "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
		"a huge length":             "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"an outcome that is none":   "\x00\x01a\x03\x00\x00\x00\x00\x00\x00\x00\x00",
		"an unknown flag":           "\x00\x01a\x81\x00\x00\x00\x00\x00\x00\x00\x00",
		"half an identity":          "\x00\x01a\x01\x00\x00",
		"missing since never":       "\x00\x01a\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"a name twice":              "\x00\x01a\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00",
		"out of order":              "\x00\x01b\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01a\x01\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		if _, err := parseList(seal([]byte("\x01n"+body)), "chunk 7"); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "chunk 7") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDamagedStates: parts that are fine by themselves and do not fit together.
func TestDamagedStates(t *testing.T) {
	t.Parallel()
	store := checkpointtest.New()
	s := open1(t, store)
	settle(t, s, long(0, 500)...)
	settle(t, s, numbered(0, 10)...)
	other := checkpointtest.New()
	settle(t, open1(t, other), long(500, 500)...)
	fine, others := store.Values(), other.Values()
	for what, damage := range map[string]func(map[string][]byte){
		"no head":            func(v map[string][]byte) { delete(v, keyHead) },
		"no chunk":           func(v map[string][]byte) { delete(v, chunkKey(1)) },
		"another chunk":      func(v map[string][]byte) { v[chunkKey(1)] = v[chunkKey(2)] },
		"a foreign chunk":    func(v map[string][]byte) { v[chunkKey(1)] = others[chunkKey(1)] },
		"an empty chunk":     func(v map[string][]byte) { v[chunkKey(1)] = newList().bytes() },
		"a foreign head":     func(v map[string][]byte) { v[keyHead] = others[keyHead] },
		"a broken journal":   func(v map[string][]byte) { v[keyJournal] = v[keyJournal][1:] },
		"a head for journal": func(v map[string][]byte) { v[keyJournal] = v[keyHead] },
	} {
		damaged := map[string][]byte{}
		for k, v := range fine {
			damaged[k] = v
		}
		damage(damaged)
		store.Set(damaged)
		cp := store.Claim()
		if _, err := Open(t.Context(), cp, Options{Resource: "in", Fence: cp.Fence()}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), `"in"`) {
			t.Errorf("%s: %v", what, err)
		}
		if after := store.Values(); len(after) != len(damaged) {
			t.Errorf("%s: it was changed", what)
		}
	}
	fine["of the handler"] = []byte("x")
	store.Set(fine)
	if open1(t, store).Len() != 510 || string(store.Values()["of the handler"]) != "x" {
		t.Error("a key of others disturbs, or was touched")
	}
}

func FuzzList(f *testing.F) {
	list := newList()
	for _, e := range samples() {
		list.add(e)
		f.Add(list.b[2:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		entries, err := parseList(seal(append([]byte{format, kindList}, body...)), "fuzz")
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again := newList()
		for i := range entries {
			again.add(&entries[i])
		}
		twice, err := parseList(again.bytes(), "again")
		if err != nil || len(twice) != len(entries) {
			t.Fatal(len(twice), len(entries), err)
		}
		for i := range twice {
			if twice[i] != entries[i] {
				t.Fatalf("%+v became %+v", entries[i], twice[i])
			}
		}
	})
}

func FuzzHead(f *testing.F) {
	b := sampleHead().bytes()
	f.Add(b[2 : len(b)-trailer])
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := parseHead(seal(append([]byte{format, kindHead}, body...)))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if again, err := parseHead(h.bytes()); err != nil || len(again.chunks) != len(h.chunks) {
			t.Fatal(again, err)
		}
	})
}

// FuzzRaw takes the bytes as they are.
func FuzzRaw(f *testing.F) {
	f.Add(sampleHead().bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseHead(b)
		_, _ = parseList(b, "fuzz")
		_, _ = parse(map[string][]byte{keyHead: b, keyJournal: b, chunkKey(0): b})
	})
}

package sqlserver

import (
	"bytes"
	"testing"
)

// The server compares as if the shorter were filled up with zero bytes.
func serverCompare(a, b []byte) int {
	for len(a) < len(b) {
		a = append(a[:len(a):len(a)], 0)
	}
	for len(b) < len(a) {
		b = append(b[:len(b):len(b)], 0)
	}
	return bytes.Compare(a, b)
}

func TestPackedNamesCompareAsBytes(t *testing.T) {
	t.Parallel()
	var names [][]byte
	alphabet := []byte{0, 1, 2, 'a', 0xff}
	for range 4 {
		next := [][]byte{{}}
		for _, n := range names {
			for _, b := range alphabet {
				next = append(next, append(bytes.Clone(n), b))
			}
		}
		names = next
	}
	for _, a := range names {
		for _, b := range names {
			pa, pb := pack(a), pack(b)
			if got, want := serverCompare(pa, pb), bytes.Compare(a, b); got != want {
				t.Fatalf("%x and %x compare as %d, packed as %d", a, b, want, got)
			}
			if got, want := bytes.HasPrefix(pa, pb), bytes.HasPrefix(a, b); got != want {
				t.Fatalf("%x begins with %x: %v, packed %v", a, b, want, got)
			}
		}
	}
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("a\x00\x01\x02\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		packed := pack(raw)
		if bytes.IndexByte(packed, 0) >= 0 || packed == nil {
			t.Fatalf("%x", packed)
		}
		if back, err := unpack(packed); err != nil || !bytes.Equal(back, raw) {
			t.Fatalf("%x came back as %x: %v", raw, back, err)
		}
	})
}

func TestWhatWasNeverPackedIsRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"\x00", "a\x01", "\x01\x03", "\x01\x00"} {
		if raw, err := unpack([]byte(bad)); err == nil {
			t.Errorf("%x gave %x", bad, raw)
		}
	}
}

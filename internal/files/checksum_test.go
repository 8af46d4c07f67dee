package files

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// md5 of "abc"
const abc = "900150983cd24fb0d6963f7d28e17f72"

func TestParseChecksum(t *testing.T) {
	t.Parallel()
	sum256, sum384, sum512 := sha256.Sum256([]byte("abc")), sha512.Sum384([]byte("abc")), sha512.Sum512([]byte("abc"))
	for _, c := range []struct {
		text, name string
		ok         bool
	}{
		{abc, "a.csv", true},
		{strings.ToUpper(abc) + "\r\n", "a.csv", true},
		{"\ufeff" + abc + "  a.csv\n", "a.csv", true},
		{abc + " *a.csv\n", "a.csv", true},
		{abc + "  /out/2026/a.csv", "a.csv", true},
		{abc + `  C:\out\a.csv`, "a.csv", true},
		{abc + "  with  spaces.csv", "with  spaces.csv", true},
		{`\` + abc + `  line\nbreak\\`, "line\nbreak\\", true},
		{"MD5 (a.csv) = " + abc, "a.csv", true},
		{"MD5 (odd) = (x) = " + abc, "odd) = (x", true},
		{"# made by hand\n\n" + hex.EncodeToString(sum256[:]) + "  a.csv", "a.csv", true},
		{"SHA384 (a.csv) = " + hex.EncodeToString(sum384[:]), "a.csv", true},
		{hex.EncodeToString(sum512[:]), "a.csv", true},
		{"a9993e364706816aba3e25717850c26c9cd0d89d  a.csv", "a.csv", true}, // SHA-1
		{strings.Repeat("0", 32) + "  b.csv\n" + abc + "  a.csv\n", "a.csv", true},
		{abc + "  b.csv", "a.csv", false},
		{abc + "\n" + abc, "a.csv", false},
		{"", "a.csv", false},
		{"\n#\n", "a.csv", false},
		{"not a checksum", "a.csv", false},
		{abc[1:], "a.csv", false},
		{abc[2:], "a.csv", false},
		{"MD5 (a.csv) = ", "a.csv", false},
	} {
		sum, err := parseChecksum(c.text, c.name)
		if (err == nil) != c.ok {
			t.Errorf("%q for %q: %v", c.text, c.name, err)
			continue
		}
		if err == nil {
			sum.hash.Write([]byte("abc"))
			if err := sum.check(c.name); err != nil {
				t.Errorf("%q for %q: %v", c.text, c.name, err)
			}
		}
	}
}

func FuzzParseChecksum(f *testing.F) {
	f.Add(abc+"  a.csv", "a.csv")
	f.Add("MD5 (a.csv) = "+abc, "a.csv")
	f.Fuzz(func(t *testing.T, text, name string) {
		if sum, err := parseChecksum(text, name); (sum == nil) == (err == nil) {
			t.Error(sum, err)
		}
	})
}

func TestChecksumFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{ChecksumFile: "*.md5", DoneFile: "*.done", Success: "done", Failed: "failed"})
		p.put("a", "abc")
		p.put("a.done", "")
		nothing(t, r, time.Minute)
		p.put("a.md5", abc+"  a\n")
		ms, _ := fetch(t, r, 1)
		if body, err := read(t, ms[0]); body != "abc" || err != nil {
			t.Fatalf("read %q, %v", body, err)
		}
		// anew writes the checksum file anew, which takes effect with the next delivery.
		anew := func(text string) {
			p.put("a.md5", text)
			_, err := ms[0].Open(t.Context())
			if long := errors.Is(err, pickup.ErrChecksum) && strings.Contains(err.Error(), "at most"); !long && !errors.Is(err, rebalancer.ErrChanged) {
				t.Fatalf("open after the checksum file was written anew: %v", err)
			}
			settle(t, r, sources.Release, ms...)
			ms, _ = fetch(t, r, 1)
		}
		// A mismatch comes in place of EOF, after all of the body.
		anew(strings.Repeat("0", 32))
		for range 2 {
			rc, err := ms[0].Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			body := make([]byte, 3)
			if _, err := io.ReadFull(rc, body); err != nil || string(body) != "abc" {
				t.Fatalf("read %q, %v", body, err)
			}
			for range 2 {
				if n, err := rc.Read(body); n != 0 || !errors.Is(err, pickup.ErrChecksum) || errors.Is(err, rebalancer.ErrChanged) {
					t.Errorf("the end of a body that does not match: %d, %v", n, err)
				}
			}
			settle(t, r, sources.Retry, ms...)
			ms, _ = fetch(t, r, 1)
		}
		for what, text := range map[string]string{"nonsense": "nonsense", "long": strings.Repeat("x", mostChecksum+1)} {
			anew(text)
			if _, err := ms[0].Open(t.Context()); !errors.Is(err, pickup.ErrChecksum) {
				t.Errorf("%s: %v", what, err)
			}
		}
		anew(abc)
		p.remove("a.md5")
		if _, err := ms[0].Open(t.Context()); !errors.Is(err, rebalancer.ErrChanged) {
			t.Errorf("open without the checksum file: %v", err)
		}
		anew(abc)
		if _, err := read(t, ms[0]); err != nil {
			t.Errorf("with the checksum file mended: %v", err)
		}
		settle(t, r, sources.Done, ms...)
		if p.moved["done/a"] != "abc" || p.moved["done/a.md5"] != abc || p.names() != 0 {
			t.Errorf("moved %q, left %d", p.moved, p.names())
		}
		if _, ok := p.moved["done/a.done"]; ok {
			t.Error("the done-file was kept")
		}
	})
}

func TestChecksumFileIsDeletedWithItsFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newFake()
		r := reader(t, p, Options{ChecksumFile: "*.sha256"})
		for i := range 3 {
			name := fmt.Sprint(i)
			p.put(name, name)
			p.put(name+".sha256", fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
		}
		ms, _ := fetch(t, r, 3)
		for _, m := range ms {
			if _, err := read(t, m); err != nil {
				t.Error(err)
			}
		}
		settle(t, r, sources.Done, ms...)
		if p.names() != 0 {
			t.Errorf("%d files left", p.names())
		}
	})
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	const passed = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: 40 worlds, seed 12\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:8: chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.10s\n"}
{"Action":"pass","Package":"p"}
`
	const skip = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: REASON\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
`
	for _, c := range []struct {
		name, in string
		good     bool
		result   string
		shows    []string
		hides    []string
	}{
		{"passed", passed, true, "ok\t1\t0\t0\t", []string{"ok  \tp\t0.10s\n", "TestA: 40 worlds, seed 12"}, []string{"chatter", "PASS"}},
		{"failed", passed + `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: wrong\n"}` + "\n" +
			`{"Action":"fail","Package":"p","Test":"TestB"}` + "\n", false, "FAILED\t1\t1\t0\t", []string{"b_test.go:1: wrong"}, nil},
		{"skipped", passed + strings.ReplaceAll(skip, "REASON", "no server"), false, "SKIPPED\t1\t0\t1\t", []string{"no server"}, nil},
		{"declared impossible", passed + strings.ReplaceAll(skip, "REASON", "the store cannot Rows: so"), true, "ok\t1\t0\t1\t", nil, []string{"cannot"}},
		{"nothing ran", `{"Action":"skip","Package":"p"}`, false, "RAN NOTHING\t0\t0\t0\t", nil, nil},
		{"not built", passed + `{"Action":"build-output","Output":"x.go:1: syntax\n"}` + "\n" + `{"Action":"build-fail"}`, false, "FAILED\t1\t0\t0\t", []string{"x.go:1"}, nil},
		{"panicked", passed + `{"Action":"output","Package":"q","Test":"TestC","Output":"half\n"}` + "\n" +
			`{"Action":"output","Package":"q","Output":"panic: boom\n"}` + "\n" + `{"Action":"fail","Package":"q"}`, false, "FAILED\t1\t0\t0\t", []string{"boom", "half"}, nil},
		{"not JSON", "go: no such tool\n" + passed, true, "ok\t1\t0\t0\t", []string{"no such tool"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			r := newReport(&out)
			if err := r.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.TempDir(), "results")
			if err := r.save(name, "suite", 0); err != nil {
				t.Fatal(err)
			}
			line, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if r.good() != c.good || !strings.HasPrefix(string(line), c.result) || !strings.HasSuffix(string(line), "\tsuite\n") {
				t.Errorf("good is %v, the result %q; want %v, %q", r.good(), line, c.good, c.result)
			}
			for _, s := range c.shows {
				if !strings.Contains(out.String(), s) {
					t.Errorf("not shown: %q in\n%s", s, &out)
				}
			}
			for _, s := range c.hides {
				if strings.Contains(out.String(), s) {
					t.Errorf("shown: %q in\n%s", s, &out)
				}
			}
		})
	}
}

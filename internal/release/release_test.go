package release

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func exists(t *testing.T, by, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		t.Errorf("%s: %v", by, err)
	}
}

// instructions are those of a Dockerfile, its continued lines joined.
func instructions(text string) [][]string {
	var out [][]string
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			out = append(out, words)
		}
	}
	return out
}

// TestDockerfile: what it copies and builds exists, what it runs was copied, its last stage is empty, and it is no root's.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	var stage, user, entry string
	var copied []string
	ignored := strings.Fields(read(t, ".dockerignore"))
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	for _, words := range instructions(read(t, "Dockerfile")) {
		args := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool { return strings.HasPrefix(w, "--") })
		switch words[0] {
		case "FROM":
			stage = args[0]
			if strings.HasPrefix(stage, "golang:") && !strings.HasPrefix(stage, "golang:"+goVersion+"-") {
				t.Errorf("it builds with %s, go.mod wants %s", stage, goVersion)
			}
		case "COPY":
			if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--from=") }) {
				for _, from := range args[:len(args)-1] {
					exists(t, "COPY", from)
					if slices.Contains(ignored, "/"+from+"/") || slices.Contains(ignored, from) {
						t.Errorf("COPY %s: it is in .dockerignore", from)
					}
				}
			}
			copied = append(copied, args[len(args)-1])
		case "RUN":
			if at := slices.Index(words, "build"); at >= 0 && !slices.Contains(words, "CGO_ENABLED=0") {
				t.Errorf("not a static build: %q", words)
			}
			for _, w := range words {
				if strings.HasPrefix(w, "./") {
					exists(t, "RUN", w)
				}
			}
		case "USER":
			user = args[0]
		case "ENTRYPOINT":
			entry = strings.Trim(words[1], `[],"`)
		}
	}
	if stage != "scratch" || !slices.Contains(copied, entry) || !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("the last stage is from %q, runs %q of %q, as %q", stage, entry, copied, user)
	}
}

// build builds the program without cgo, as the image does.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "rebalancer")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/rebalancer")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// TestProgramIsStatic: built as in the image, it needs no library, so that an image without any can run it.
func TestProgramIsStatic(t *testing.T) {
	t.Parallel()
	binary := build(t)
	f, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %v", p.Type)
		}
	}
}

// workflow is as much of one as is checked.
type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		If          string            `yaml:"if"`
		Needs       []string          `yaml:"needs"`
		Timeout     int               `yaml:"timeout-minutes"`
		Permissions map[string]string `yaml:"permissions"`
		Steps       []struct {
			Uses string `yaml:"uses"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// TestWorkflow: a release waits for every other job, actions are pinned, what is run exists, and no job may more than it needs.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	const name = ".github/workflows/ci.yml"
	text := read(t, name)
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	release, ok := w.Jobs["release"]
	if !ok || !strings.Contains(release.If, "refs/tags/v") {
		t.Fatalf("no job makes releases from tags: %+v", release)
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w./-]+@(v\d+|[0-9a-f]{40})$`)
	scripts := regexp.MustCompile(`(?:^|\s)((?:\.ci|scripts)/[\w./-]+)`)
	targets := regexp.MustCompile(`\bmake (\w+)`)
	for job, j := range w.Jobs {
		if job != "release" && !slices.Contains(release.Needs, job) {
			t.Errorf("a release does not wait for %s", job)
		}
		if j.Timeout == 0 {
			t.Errorf("%s may run for ever", job)
		}
		if job != "release" && len(j.Permissions) > 0 {
			t.Errorf("%s has permissions of its own: %v", job, j.Permissions)
		}
		for _, s := range j.Steps {
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				t.Errorf("%s uses %s, which is not pinned", job, s.Uses)
			}
			for _, m := range scripts.FindAllStringSubmatch(s.Run, -1) {
				exists(t, job, m[1])
			}
			for _, m := range targets.FindAllStringSubmatch(s.Run, -1) {
				if !strings.Contains(read(t, "Makefile"), "\n"+m[1]+": ##") {
					t.Errorf("%s: make has no target %s", job, m[1])
				}
			}
		}
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		t.Errorf("permissions of all jobs: %v", w.Permissions)
	}
	for _, want := range []string{".ci/run", "govulncheck@v", "test.sh lint", "pull_request:", "branches: [main]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
}

// TestTested: results become a table between the marks, and nothing else of the page changes.
func TestTested(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	results, page := filepath.Join(dir, "results"), filepath.Join(dir, "page.md")
	const marks = "before\n<!-- tested: begin -->\nold\n<!-- tested: end -->\nafter\n"
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "scripts/tested.sh"), results, page)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	write(results, "on\tLinux\nserver\tRedis\t7.0.15\nsuite\tok\t5\t0\t0\t7\tstores: Redis 7.0.15\nsuite\tFAILED\t4\t1\t0\t2\tsources: x\n")
	write(page, marks)
	for range 2 { // again changes nothing
		if out, err := run(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want := "before\n<!-- tested: begin -->\n- Linux\n\n| server | versions |\n|---|---|\n| Redis | 7.0.15 |\n\n| suite | result | passed | failed | took |\n|---|---|---|---|---|\n" +
			"| stores: Redis 7.0.15 | ok | 5 | 0 | 7 s |\n| sources: x | FAILED | 4 | 1 | 2 s |\n<!-- tested: end -->\nafter\n"
		if string(b) != want {
			t.Errorf("got\n%s\nwant\n%s", b, want)
		}
	}
	write(page, "no marks\n")
	if out, err := run(); err == nil || !strings.Contains(out, "marks") {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Remove(results); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err == nil || !strings.Contains(out, "run scripts/test.sh first") {
		t.Errorf("%v: %s", err, out)
	}
	if page := read(t, "docs/tested.md"); strings.Count(page, "<!-- tested: ") != 2 {
		t.Error("docs/tested.md lacks its marks")
	}
}

//go:build linux

package testserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Where the servers cannot be installed, scripts/test.sh runs in a container, if a Docker engine answers. There is none here: a program of the same name
// plays its client.
func TestContainerInstead(t *testing.T) {
	t.Parallel()
	const goesOn = "goes on\n"
	engine := "#!/bin/sh\n[ \"$1\" = info ] || echo \"docker $*\"\n"
	for name, c := range map[string]struct {
		docker string // "": there is none
		env    string
		want   []string
	}{
		"an engine answers": {engine, "", []string{"docker run --rm", "--privileged", ":/src", "-w /src", "golang:1.", "-bookworm scripts/test.sh --soak stores\n"}},
		"no engine answers": {"#!/bin/sh\nexit 1\n", "", []string{"no Docker engine answers", goesOn}},
		"no docker":         {"", "", []string{"there is no Docker", goesOn}},
		"not wanted":        {engine, "REBAL_DOCKER=no", []string{goesOn}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir() // all that there is: no apt-get
			for _, tool := range []string{"id", "sed", "sh"} {
				path, err := exec.LookPath(tool)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
					t.Fatal(err)
				}
			}
			if c.docker != "" {
				if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(c.docker), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out, err := instead(bin, c.env)
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, part := range c.want {
				if !strings.Contains(out, part) {
					t.Errorf("it says %q, want %q in it", out, part)
				}
			}
			if ran := strings.Contains(out, goesOn); ran == strings.Contains(out, "docker run") {
				t.Errorf("it runs here: %v: %q", ran, out)
			}
		})
	}
}

// instead runs the function as scripts/test.sh does, and then says that it goes on here.
func instead(path, env string) (string, error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(bash, "-c", `set -uo pipefail; . scripts/servers/docker.sh && docker_instead --soak stores; echo goes on`)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = []string{"PATH=" + path, env}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

//go:build linux

package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Missing skips the test for want of something that scripts/servers.sh installs, or fails it where REBAL_REQUIRE names "servers".
func Missing(t testing.TB, what string) {
	t.Helper()
	message := fmt.Sprintf("needs %s: scripts/servers.sh installs it on Debian", what)
	if strings.Contains(os.Getenv("REBAL_REQUIRE"), "servers") {
		t.Fatal(message)
	}
	t.Skip(message)
}

// Need returns the path of the first of some binaries that is there: names that are looked for in PATH, or whole paths, which may have
// the wildcards of filepath.Glob. Below a root (see Root) paths are of that root, and so is the result. Else see Missing.
func Need(t testing.TB, root string, binaries ...string) string {
	t.Helper()
	for _, b := range binaries {
		if !strings.Contains(b, "/") {
			if root != "" {
				b = "/usr/bin/" + b
			} else if path, err := exec.LookPath(b); err == nil {
				return path
			} else {
				b = "/usr/sbin/" + b
			}
		}
		if found, _ := filepath.Glob(filepath.Join(root, b)); len(found) > 0 {
			return strings.TrimPrefix(found[len(found)-1], strings.TrimSuffix(root, "/"))
		}
	}
	Missing(t, strings.Join(binaries, " or "))
	return ""
}

// servers is the folder in which scripts/servers.sh keeps what comes from no package of this machine.
func servers(t testing.TB) string {
	t.Helper()
	if cache := os.Getenv("REBAL_SERVERS"); cache != "" {
		return cache
	}
	home := os.Getenv("XDG_CACHE_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			Missing(t, "a home directory, or REBAL_SERVERS: "+err.Error())
		}
		home = filepath.Join(user, ".cache")
	}
	return filepath.Join(home, "rebalancer-servers")
}

// Root is the root of the next release of Debian that scripts/servers.sh makes. Else see Missing.
func Root(t testing.TB) string {
	t.Helper()
	root := filepath.Join(servers(t), "trixie")
	if _, err := os.Stat(filepath.Join(root, ".complete")); err != nil {
		Missing(t, "the root of Debian trixie "+root)
	}
	return root
}

// Dir makes a directory of its own, which is removed after the test. It may be entered by every user, because some servers do not run as root.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "testserver-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("testserver: %v", err)
		}
	})
	return dir
}

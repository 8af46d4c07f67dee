package supervise

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is what /proc tells of one.
type process struct {
	pid, parent, session int
	dead                 bool // a zombie: it does nothing any more
}

// processes lists what /proc shows. Those that vanish meanwhile are left out.
func processes() ([]process, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var ps []process
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			ps = append(ps, p)
		}
	}
	return ps, nil
}

func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name, in parentheses, may hold anything; the fields follow its last ")": state, parent, group, session.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 4 {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(f[1])
	session, err2 := strconv.Atoi(f[3])
	return process{pid, parent, session, f[0] == "Z" || f[0] == "X"}, err1 == nil && err2 == nil
}

// descendants picks from ps those that stem from the process root.
func descendants(ps []process, root int) []process {
	children := map[int][]process{}
	for _, p := range ps {
		children[p.parent] = append(children[p.parent], p)
	}
	var all []process
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			all = append(all, c)
			queue = append(queue, c.pid)
		}
		delete(children, queue[0])
	}
	return all
}

// killLeft kills what is left of a session, and what carries the mark in its environment, and returns how many they were.
func killLeft(session int, mark string) int {
	ps, err := processes()
	if err != nil {
		return 0
	}
	n := 0
	for _, p := range ps {
		if p.dead || p.pid == os.Getpid() || p.pid == session || (p.session != session && !marked(p.pid, mark)) {
			continue
		}
		if unix.Kill(p.pid, unix.SIGKILL) != unix.ESRCH {
			n++ // also what we may not kill: it works on
		}
	}
	return n
}

func marked(pid int, mark string) bool {
	if mark == "" {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return bytes.Contains(append([]byte{0}, append(env, 0)...), []byte("\x00"+mark+"\x00"))
}

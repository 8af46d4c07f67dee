package main

import (
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func TestPickupParameters(t *testing.T) {
	t.Parallel()
	query, err := url.ParseQuery("stable_for=2s&min_age=1m&interval=3s&idle_interval=4s&ignore=*.a,*.b&done_file=*.done&checksum_file=*.md5" +
		"&trigger_file=GO&set=*.x,*.y&empty=wait&order=time&strict_order=true&claim_by_rename=true&other=1")
	if err != nil {
		t.Fatal(err)
	}
	p, rest, err := pickupPolicy(query, sourceOptions{success: settle{"keep", ""}, failure: settle{"tag", "k=v=w"}})
	want := pickup.Policy{
		OnSuccess: pickup.Keep(), OnFailure: pickup.Tag("k", "v=w"), StableFor: 2 * time.Second, MinAge: time.Minute,
		Interval: 3 * time.Second, IdleInterval: 4 * time.Second, Ignore: []string{"*.a", "*.b"}, DoneFile: "*.done",
		ChecksumFile: "*.md5", TriggerFile: "GO", Set: []string{"*.x", "*.y"}, Empty: pickup.EmptyWait, Order: pickup.ByTime,
		StrictOrder: true, ClaimByRename: true,
	}
	if err != nil || !reflect.DeepEqual(p, want) || len(rest) != 1 || rest.Get("other") != "1" {
		t.Errorf("got %+v, %v, %v", p, rest, err)
	}
	p, rest, err = pickupPolicy(url.Values{"stable_for": {"0s"}}, sourceOptions{})
	if err != nil || len(rest) > 0 || p.StableFor >= 0 || p.OnSuccess != pickup.Delete() || p.OnFailure != (pickup.Action{}) {
		t.Errorf("got %+v, %v, %v", p, rest, err)
	}
	known := strings.FieldsFunc(pickupParameters, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	for name := range pickupSetters(&p) {
		if !slices.Contains(known, name) {
			t.Errorf("the help lacks %s", name)
		}
	}
}

// TestPolicyOnTheCommandLine: what has no done-file stays, and what is worked goes to a folder of its day.
func TestPolicyOnTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a", "a.done", "b")
	w.want(codeDone, "", "", "consume", "g", "--source", "file://"+w.dir+"?done_file=*.done&stable_for=0s", "--resource", "in", "--ttl", "5s",
		"--count", "1", "--on-success", "move:done/{2006}", "--", "true")
	if left := w.left("in"); !slices.Equal(left, []string{"b"}) {
		t.Errorf("left %q", left)
	}
	found, err := filepath.Glob(filepath.Join(w.dir, "in", "done", "2*", "a"))
	if err != nil || len(found) != 1 {
		t.Errorf("moved %q, %v", found, err)
	}
}

// TestKeepOnTheCommandLine: the store remembers what was worked, from one process to the next.
func TestKeepOnTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a")
	log := filepath.Join(t.TempDir(), "log")
	run := func(flags ...string) {
		args := append(w.consume("--on-success", "keep"), flags...)
		w.want(codeDone, "", "", append(args, "--", "sh", "-c", `echo $RB_KEY >>"$0"`, log)...)
	}
	run("--count", "1")
	w.put("b")
	run("--count", "1")
	run("--exit-idle", "3s")
	worked, err := os.ReadFile(log)
	if err != nil || string(worked) != "a\nb\n" {
		t.Errorf("worked %q, %v", worked, err)
	}
	if left := w.left("in"); !slices.Equal(left, []string{"a", "b"}) {
		t.Errorf("left %q", left)
	}
}

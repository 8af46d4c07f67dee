package files

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

func TestFolder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 23, 30, 0, 0, time.FixedZone("", -2*3600))
	for _, c := range []struct {
		f         Folder
		want      string
		not       []string
		wantError bool
	}{
		{f: "done", want: "done", not: []string{"", "done/x", "donex"}},
		{f: "done/{2006-01-02}", want: "done/2026-03-05", not: []string{"done", "done/x", "done/2026-03-05/x", "done/2026-13-05"}},
		{f: "a.{2006/01}.b/c", want: "a.2026/03.b/c", not: []string{"a.2026/03.b", "aX2026/03.b/c"}},
		{f: "{2006}-{15}h", want: "2026-01h", not: []string{"2026-xxh"}},
		{f: "{2006", wantError: true}, {f: "2006}", wantError: true}, {f: "{{2006}}", wantError: true}, {f: "{}", wantError: true},
		{f: "{done}", wantError: true}, {f: "a/{..}", wantError: true},
	} {
		if err := c.f.check(); (err != nil) != c.wantError {
			t.Errorf("check of %q: %v", c.f, err)
		}
		if c.wantError {
			continue
		}
		if got := c.f.At(at); got != c.want || !c.f.Is(got) || !c.f.Has(got+"/below") {
			t.Errorf("%q is %q, want %q; Is %v, Has %v", c.f, got, c.want, c.f.Is(got), c.f.Has(got+"/below"))
		}
		for _, n := range c.not {
			if c.f.Is(n) {
				t.Errorf("%q is %q", c.f, n)
			}
		}
	}
}

// TestFromPolicy: all violations are told at once, and what a place cannot do is refused.
func TestFromPolicy(t *testing.T) {
	t.Parallel()
	inside := func(folder string) (string, error) {
		if strings.Contains(folder, "..") {
			return "", errors.New("leads out")
		}
		return folder, nil
	}
	all := Can{Keep: true, Tag: true, Rename: true, Folder: inside}
	for what, c := range map[string]struct {
		p    pickup.Policy
		can  Can
		want []string
	}{
		"everything wrong": {
			pickup.Policy{
				Order: 9, OnFailure: pickup.Delete(), MinAge: -1, Interval: -1, Ignore: []string{"["}, DoneFile: "done", ChecksumFile: "a/*",
				TriggerFile: "a/b", Set: []string{"*.a", "x", "*.a"}, Empty: 9, ClaimByRename: true,
			}, Can{Folder: inside},
			[]string{"OnSuccess", "Order", "OnFailure", "MinAge", "Interval", "Ignore", "DoneFile", "ChecksumFile", "TriggerFile", "Set", "twice", "Empty", "ClaimByRename"},
		},
		"keep":         {pickup.Policy{OnSuccess: pickup.Keep(), OnFailure: pickup.Keep()}, Can{Folder: inside}, []string{"OnSuccess is Keep()", "OnFailure is Keep()"}},
		"tag":          {pickup.Policy{OnSuccess: pickup.Tag("k", "v"), OnFailure: pickup.Tag("k", "v")}, Can{Folder: inside}, []string{"OnSuccess is Tag(", "OnFailure is Tag("}},
		"tag nothing":  {pickup.Policy{OnSuccess: pickup.Tag("", "v")}, all, []string{"must not be empty"}},
		"out":          {pickup.Policy{OnSuccess: pickup.MoveTo("../x"), OnFailure: pickup.MoveTo("{")}, all, []string{"leads out", "braces"}},
		"one set":      {pickup.Policy{OnSuccess: pickup.Delete(), Set: []string{"*.a"}}, all, []string{"at least two"}},
		"no failed":    {pickup.Policy{OnSuccess: pickup.Delete(), Empty: pickup.EmptyReject}, all, []string{"OnFailure"}},
		"one for both": {pickup.Policy{OnSuccess: pickup.Delete(), DoneFile: "*.x", ChecksumFile: "*.x"}, all, []string{"both"}},
		"claim, keep":  {pickup.Policy{OnSuccess: pickup.Keep(), ClaimByRename: true}, all, []string{"ClaimByRename"}},
		"ours":         {pickup.Policy{OnSuccess: pickup.Delete(), TriggerFile: ".rebalancer-x"}, all, []string{"TriggerFile"}},
	} {
		_, err := FromPolicy(c.p, c.can)
		if err == nil {
			t.Errorf("%s was accepted", what)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: the error says nothing of %q:\n%v", what, w, err)
			}
		}
	}
	o, err := FromPolicy(pickup.Policy{OnSuccess: pickup.Tag("k", "v"), OnFailure: pickup.MoveTo("failed/{2006}")}, all)
	if err != nil || !o.Keep || o.SuccessTag != (Label{"k", "v"}) || o.FailedKeep || o.Failed != "failed/{2006}" || o.Claim {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = FromPolicy(pickup.Policy{OnSuccess: pickup.Keep(), OnFailure: pickup.Tag("k", "v")}, all)
	if err != nil || !o.Keep || !o.FailedKeep || o.FailedTag.Key != "k" || !slices.Equal(o.Ignore, DefaultIgnore()) {
		t.Errorf("%+v, %v", o, err)
	}
}

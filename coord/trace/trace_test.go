package trace

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/coord"
)

// TestCodes: lines have coord's words for how requests end.
func TestCodes(t *testing.T) {
	t.Parallel()
	for code, word := range map[coord.Code]string{coord.OK: codeOK, coord.Conflict: codeConflict, coord.Unknown: codeUnknown, coord.SessionLost: codeLost} {
		if code.String() != word {
			t.Errorf("coord says %q, package trace %q", code, word)
		}
	}
}

// TestDecode: lines survive being written and read, and what is none is named by its line.
func TestDecode(t *testing.T) {
	t.Parallel()
	l := Line{At: 7, Node: "n", Proc: "p", Event: Act{Name: "Opened", Req: 1, Code: codeOK, Session: "s"}, Trusted: 9, State: &coord.Projection{Phase: "settling", Session: "s"}}
	b, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(bytes.NewReader(append(b, b...)))
	if err != nil || len(back) != 2 || back[1].State.Session != "s" || back[1].Trusted != 9 || back[0].Event.Req != 1 {
		t.Errorf("%+v, %v", back, err)
	}
	if _, err := Decode(strings.NewReader("{}\n\nnonsense\n")); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("nonsense: %v", err)
	}
}

// TestLinesThatDoNotBelongTogether: an answer without a request, a second one, and a line of nobody are errors.
func TestLinesThatDoNotBelongTogether(t *testing.T) {
	t.Parallel()
	start := Line{Node: "n", Proc: "p", Event: Act{Name: "Start"}, Actions: []Act{{Name: "OpenSession", Req: 1}}}
	answer := Line{Node: "n", Proc: "p", Event: Act{Name: "Opened", Req: 1, Code: "failed"}}
	for want, lines := range map[string][]Line{
		"did not send": {answer},
		"twice":        {start, answer, answer},
		"is by":        {{By: "somebody"}},
		"its own is":   {{Node: "n", Proc: "p", Event: Act{Name: "Tick"}, Actions: []Act{{Name: "Commit", Req: 1, Session: "other", Txns: []Txn{{}}}}, State: own("s")}},
		"not sent":     {{By: ByStore, Proc: "p", Event: Act{Name: "Commit", Req: 4}}},
	} {
		if _, err := Explain(lines); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func own(session string) *coord.Projection { return &coord.Projection{Session: session} }

// TestUnknownOutcomeMayComeLater: a transaction of which the answer does not say how it ended may be carried out after that answer.
func TestUnknownOutcomeMayComeLater(t *testing.T) {
	t.Parallel()
	campaign := Act{Name: "Commit", Req: 1, Session: "s", Txns: []Txn{{Puts: []Entry{{Key: coord.LeaderKey, Bound: true}}}}}
	h, err := Explain([]Line{
		{Node: "n", Proc: "p", Event: Act{Name: "Tick"}, Actions: []Act{campaign}, State: own("s")},
		{Node: "n", Proc: "p", Event: Act{Name: "Committed", Req: 1, Code: codeOK, Results: []Result{{Code: codeUnknown}}}, Actions: []Act{{Name: "Read", Req: 2}}},
		{Node: "n", Proc: "p", Event: Act{Name: "ReadDone", Req: 2, Code: codeOK, Seen: []Entry{{Key: coord.LeaderKey, Version: 7, Session: "s"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Steps {
		if s.Do == DoCampaign && s.Version == 7 && s.Sent == 1 && s.Line == 3 && s.Answered == 0 {
			return
		}
	}
	t.Errorf("%+v", h.Steps)
}

// TestWhichAttemptWasApplied: of two attempts of unknown outcome it is the one that can still be applied, or else the last.
func TestWhichAttemptWasApplied(t *testing.T) {
	t.Parallel()
	claim := func(req uint64, member int64) Act {
		return Act{Name: "Commit", Req: req, Session: "s", Txns: []Txn{{Checks: []Key{{coord.MemberKey("n"), member}, {coord.ClaimKey("r"), 0}}, Puts: []Entry{{Key: coord.ClaimKey("r"), Bound: true}}}}}
	}
	unknown := func(req uint64) Act {
		return Act{Name: "Committed", Req: req, Code: codeOK, Results: []Result{{Code: codeUnknown}}}
	}
	member := Act{Name: "Commit", Req: 1, Session: "s", Txns: []Txn{{Puts: []Entry{{Key: coord.MemberKey("n"), Bound: true}}}}}
	joined := Act{Name: "Committed", Req: 1, Code: codeOK, Results: []Result{{Code: codeOK, Versions: []Key{{coord.MemberKey("n"), 5}}}}}
	for name, c := range map[string]struct {
		first, second int64 // versions of the member entry that they check
		want          int   // the line that sent the one which was applied
	}{
		"the first alone holds":  {5, 4, 2},
		"the second alone holds": {4, 5, 3},
		"both hold":              {5, 5, 3},
		"neither holds any more": {4, 4, 3},
	} {
		h, err := Explain([]Line{
			{Node: "n", Proc: "p", Event: Act{Name: "Tick"}, Actions: []Act{member}, State: own("s")},
			{Node: "n", Proc: "p", Event: joined, Actions: []Act{claim(2, c.first)}},
			{Node: "n", Proc: "p", Event: unknown(2), Actions: []Act{claim(3, c.second)}},
			{Node: "n", Proc: "p", Event: unknown(3), Actions: []Act{{Name: "Read", Req: 4}}},
			{Node: "n", Proc: "p", Event: Act{Name: "ReadDone", Req: 4, Code: codeOK, Seen: []Entry{{Key: coord.ClaimKey("r"), Version: 7, Session: "s"}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var sent []int
		for _, s := range h.Steps {
			if s.Do == DoClaim {
				sent = append(sent, s.Sent)
			}
		}
		if len(sent) != 1 || sent[0] != c.want {
			t.Errorf("%s: what lines %v sent was applied, want %d", name, sent, c.want)
		}
	}
}

// TestWhatIsAbsentAgain: of two that put what is not there, both with success, the one with the smaller version came first, and it had gone when the other
// came, though that was sent before.
func TestWhatIsAbsentAgain(t *testing.T) {
	t.Parallel()
	campaign := func(session string) Act {
		return Act{Name: "Commit", Req: 1, Session: session, Txns: []Txn{{Checks: []Key{{coord.LeaderKey, 0}}, Puts: []Entry{{Key: coord.LeaderKey, Bound: true}}}}}
	}
	elected := func(version int64) Act {
		return Act{Name: "Committed", Req: 1, Code: codeOK, Results: []Result{{Code: codeOK, Versions: []Key{{coord.LeaderKey, version}}}}}
	}
	resign := Act{Name: "Commit", Req: 2, Session: "s1", Txns: []Txn{{Checks: []Key{{coord.LeaderKey, 5}}, Deletes: []string{coord.LeaderKey}}}}
	h, err := Explain([]Line{
		{Node: "n1", Proc: "p1", Event: Act{Name: "Tick"}, Actions: []Act{campaign("s1")}, State: own("s1")},
		{Node: "n2", Proc: "p2", Event: Act{Name: "Tick"}, Actions: []Act{campaign("s2")}, State: own("s2")},
		{Node: "n1", Proc: "p1", Event: elected(5), Actions: []Act{resign}},
		{Node: "n1", Proc: "p1", Event: Act{Name: "Committed", Req: 2, Code: codeOK, Results: []Result{{Code: codeOK}}}},
		{Node: "n2", Proc: "p2", Event: elected(9)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, s := range h.Steps {
		if s.Do == DoCampaign || s.Do == DoStepDown {
			order = append(order, string(s.Do)+" "+s.Proc)
		}
	}
	if want := []string{"Campaign p1", "StepDown p1", "Campaign p2"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

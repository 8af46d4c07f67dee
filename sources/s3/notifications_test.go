package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/internal/readertest"
	"github.com/rebalancer-go/rebalancer/sources"
	"github.com/rebalancer-go/rebalancer/sources/memory"
	"github.com/rebalancer-go/rebalancer/sources/pickup"
	"github.com/rebalancer-go/rebalancer/sources/sourcetest"
	"github.com/rebalancer-go/rebalancer/sources/sqs"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// record is one of a notification.
func record(name, bucket, key, etag string) string {
	return fmt.Sprintf(`{"eventSource":"aws:s3","eventName":%q,"s3":{"bucket":{"name":%q},"object":{"key":%q,"size":1,"eTag":%q,"sequencer":"01"}}}`,
		name, bucket, url.QueryEscape(key), strings.Trim(etag, `"`))
}

func notice(records ...string) string { return `{"Records":[` + strings.Join(records, ",") + `]}` }

func created(key string, o *stored) string {
	return notice(record("ObjectCreated:Put", "bkt", key, o.etag()))
}

func notifications(tb testing.TB, c NotificationsConfig) *Notifications {
	tb.Helper()
	n, err := NewNotifications(c)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestNotificationsSuite(t *testing.T) {
	t.Parallel()
	for what, action := range map[string]pickup.Action{"keep": {}, "delete": pickup.Delete(), "move": pickup.MoveTo("done")} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sourcetest.Run(t, sourcetest.Harness{New: func(tb testing.TB) *sourcetest.Fixture {
				st, queues := newStub(tb), memory.New()
				tb.Cleanup(func() { _ = queues.Close() })
				queues.Remove("missing")
				f := &sourcetest.Fixture{
					Source:    notifications(tb, NotificationsConfig{Queues: queues, Client: st.client(), Bucket: "bkt", OnSuccess: action}),
					Resources: []string{"a", "b", "c/d", "e f"}, Missing: "missing", MaxBody: 1 << 20,
					Left:   func(r string) int { c := queues.Counts(r); return c.Waiting + c.InFlight },
					Remove: func(r string) error { queues.Remove(r); return nil },
				}
				f.Send = func(resource, key string, body []byte) error {
					key = "in + " + resource + "/" + key
					return queues.Send(resource, created(key, st.put(key, string(body))))
				}
				f.Rejected = func(resource string) []string {
					var bodies []string
					for _, rejected := range queues.Rejected(resource) {
						events, err := parseEvents(rejected.Message.Body)
						if err != nil {
							tb.Error(err)
						}
						st.set(func() { bodies = append(bodies, st.objects[events[0].key].body) })
					}
					return bodies
				}
				return f
			}})
		})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	key := "in/a+b c%2Bé=&.csv"
	rec := notice(record("ObjectCreated:CompleteMultipartUpload", "b", key, "e"))
	sns, _ := json.Marshal(map[string]string{"Type": "Notification", "Message": rec})
	bridge := fmt.Sprintf(`{"source":"aws.s3","detail-type":"Object Created","detail":{"bucket":{"name":"b"},"object":{"key":%q,"etag":"e","size":1}}}`, key)
	for what, text := range map[string]string{
		"records": rec, "SNS": string(sns), "EventBridge": bridge,
		"restored": notice(record("s3:ObjectRestore:Completed", "b", key, "e")),
	} {
		got, err := parseEvents([]byte(text))
		if err != nil || len(got) != 1 || got[0].bucket != "b" || got[0].key != key {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	for what, text := range map[string]string{
		"test":                    `{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}`,
		"deletion":                notice(record("ObjectRemoved:Delete", "b", key, "")),
		"tagging":                 notice(record("ObjectTagging:Put", "b", key, "")),
		"deletion of EventBridge": strings.Replace(bridge, "Created", "Deleted", 1),
	} {
		if got, err := parseEvents([]byte(text)); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	for _, text := range []string{"", "hello", "{}", `{"Records":[]}`, `{"Records":[{"eventSource":"other"}]}`, `{"Type":"Notification","Message":"hello"}`,
		strings.Replace(rec, url.QueryEscape(key), "%zz", 1)} {
		if got, err := parseEvents([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestOneMessagePerObject: a notification of several objects is settled once, when all of them are, with the worst of their outcomes.
func TestOneMessagePerObject(t *testing.T) {
	t.Parallel()
	st, queues := newStub(t), memory.New()
	t.Cleanup(func() { _ = queues.Close() })
	var records []string
	for _, key := range []string{"in/a", "in/b", "in/c"} {
		records = append(records, record("ObjectCreated:Put", "bkt", key, st.put(key, key).etag()))
	}
	n := notifications(t, NotificationsConfig{Queues: queues, Client: st.client(), Bucket: "bkt", Base: "in", OnSuccess: pickup.Delete()})
	for _, last := range []sources.Outcome{sources.Reject, sources.Done} {
		if err := queues.Send("q", notice(records...)); err != nil {
			t.Fatal(err)
		}
		r, err := n.Open(t.Context(), claim("q"))
		if err != nil {
			t.Fatal(err)
		}
		ms := readertest.Fetch(t, r, 3)
		if got := keysOf(ms); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Fatalf("got %q", got)
		}
		readertest.Settle(t, r, last, ms[0])
		readertest.Settle(t, r, sources.Done, ms[0], ms[1]) // again, which is ignored, and the second
		if c := queues.Counts("q"); c.InFlight != 1 {
			t.Errorf("%+v before the last object is settled", c)
		}
		readertest.Settle(t, r, sources.Done, ms[2], ms[2])
		if c := queues.Counts("q"); c.InFlight+c.Waiting != 0 {
			t.Errorf("%+v after the last object is settled", c)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for _, key := range []string{"in/a", "in/b", "in/c"} {
			st.put(key, key)
		}
	}
	if got := queues.Rejected("q"); len(got) != 1 || !strings.Contains(got[0].Err.Error(), "no good") {
		t.Errorf("rejected: %+v", got)
	}
}

// TestWhatNotificationsTellInVain: tests, deletions, what is elsewhere, what vanished or was replaced, what was moved: settled, and not handed out.
func TestWhatNotificationsTellInVain(t *testing.T) {
	t.Parallel()
	st, queues := newStub(t), memory.New()
	t.Cleanup(func() { _ = queues.Close() })
	for _, key := range []string{"in/done/a", "in/marker/", "other/a"} {
		st.put(key, "")
	}
	st.put("in/good", "x")
	for _, text := range []string{
		`{"Event":"s3:TestEvent"}`, notice(record("ObjectRemoved:Delete", "bkt", "in/good", "")), notice(record("ObjectCreated:Put", "bkt", "in/vanished", "e")),
		notice(record("ObjectCreated:Put", "bkt", "in/done/a", "")),
		notice(record("ObjectCreated:Put", "bkt", "in/marker/", "")), notice(record("ObjectCreated:Put", "bkt", "other/a", "")),
		"hello", notice(record("ObjectCreated:Put", "another", "in/good", "")),
		created("in/good", st.objects["in/good"]),
	} {
		if err := queues.Send("q", text); err != nil {
			t.Fatal(err)
		}
	}
	var l logs
	n := notifications(t, NotificationsConfig{Queues: queues, Client: st.client(), Bucket: "bkt", Base: "in", OnSuccess: pickup.MoveTo("done"), Logger: l.logger()})
	r, err := n.Open(t.Context(), claim("q"))
	if err != nil {
		t.Fatal(err)
	}
	failing := true
	st.refuse = func(op, key string) (int, string, string) {
		if failing && key == "in/good" {
			return 503, "SlowDown", ""
		}
		return 0, "", ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := r.Fetch(ctx, 100); err == nil {
		t.Error("a Fetch of what could not be looked at succeeded")
	}
	st.set(func() { failing = false })
	if got := keysOf(readertest.Fetch(t, r, 1)); got[0] != "good" {
		t.Errorf("got %q", got)
	}
	readertest.Nothing(t, r)
	if got := queues.Rejected("q"); len(got) != 2 {
		t.Errorf("%d rejected, want 2", len(got))
	}
	if c := queues.Counts("q"); c.InFlight != 1 || c.Waiting != 0 {
		t.Errorf("%+v, want one in hand", c)
	}
	if !strings.Contains(l.String(), "no notification of S3") || !strings.Contains(l.String(), `another`) {
		t.Errorf("the log: %s", l.String())
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestObjectsThatAreNotAsTold: what replaced an object is delivered, also where nothing tells of it; what is archived, or has a hostile name, is not; one that
// cannot be looked at, or is in hand, holds up no other, and comes again.
func TestObjectsThatAreNotAsTold(t *testing.T) {
	t.Parallel()
	st, queues := newStub(t), memory.New()
	t.Cleanup(func() { _ = queues.Close() })
	old := st.put("in/replaced", "old").etag()
	for _, key := range []string{"in/replaced", "in/archived", "in/../../etc/x", "in/denied", "in/twice"} {
		st.put(key, "new")
	}
	st.set(func() { st.objects["in/archived"].class = "GLACIER" })
	for _, text := range []string{
		notice(record("ObjectCreated:Put", "bkt", "in/denied", "")), notice(record("ObjectCreated:Put", "bkt", "in/archived", "")),
		notice(record("ObjectCreated:Put", "bkt", "in/../../etc/x", "")), notice(record("ObjectCreated:Put", "bkt", "in/replaced", old)),
		notice(record("ObjectCreated:Put", "bkt", "in/twice", ""), record("ObjectCreated:Copy", "bkt", "in/twice", "")),
		notice(record("ObjectCreated:Put", "bkt", "in/twice", "")),
	} {
		if err := queues.Send("q", text); err != nil {
			t.Fatal(err)
		}
	}
	st.refuse = func(op, key string) (int, string, string) {
		return 403 * b2i(key == "in/denied"), strings.Repeat("AccessDenied", b2i(key == "in/denied")), ""
	}
	var l logs
	n := notifications(t, NotificationsConfig{Queues: queues, Client: st.client(), Bucket: "bkt", Base: "in", OnSuccess: pickup.Delete(), Logger: l.logger()})
	r, err := n.Open(t.Context(), claim("q"))
	if err != nil {
		t.Fatal(err)
	}
	ms := readertest.Fetch(t, r, 2)
	if got := keysOf(ms); !slices.Equal(got, []string{"replaced", "twice"}) {
		t.Fatalf("got %q", got)
	}
	if body, err := readertest.Read(context.Background(), ms[0]); body != "new" || err != nil {
		t.Errorf("what replaced it: %q, %v", body, err)
	}
	readertest.Nothing(t, r)
	if c := queues.Counts("q"); c.InFlight+c.Waiting != 4 { // two in hand, and two that come again
		t.Errorf("%+v", c)
	}
	for _, want := range []string{"archived", "leads elsewhere", "denied"} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("nobody was told of %q: %s", want, l.String())
		}
	}
	readertest.Settle(t, r, sources.Done, ms...)
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// inHand is one object whose notification is in hand.
func inHand(t *testing.T) (*stub, *memory.Source, sources.Reader, []*rebalancer.Message) {
	t.Helper()
	st, queues := newStub(t), memory.New()
	t.Cleanup(func() { _ = queues.Close() })
	n := notifications(t, NotificationsConfig{Queues: queues, Client: st.client(), Bucket: "bkt", OnSuccess: pickup.Delete()})
	if err := queues.Send("q", created("a", st.put("a", "x"))); err != nil {
		t.Fatal(err)
	}
	r, err := n.Open(t.Context(), claim("q"))
	if err != nil {
		t.Fatal(err)
	}
	return st, queues, r, readertest.Fetch(t, r, 1)
}

// TestNothingIsSettledAfterClose: a deletion that is under way is waited for, but not longer than the caller wants to.
func TestNothingIsSettledAfterClose(t *testing.T) {
	t.Parallel()
	st, _, r, ms := inHand(t)
	began, end, settled := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	st.set(func() {
		st.refuse = func(op, _ string) (int, string, string) {
			if op == "DELETE" {
				close(began)
				<-end
			}
			return 0, "", ""
		}
	})
	go func() { settled <- readertest.TrySettle(r, sources.Done, ms...) }()
	<-began
	hurry, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := r.Close(hurry); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close while an object is deleted: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- r.Close(t.Context()) }()
	close(end)
	<-settled
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestUnreadableWithoutDeadLetters: such a notification stays, and is reported.
func TestUnreadableWithoutDeadLetters(t *testing.T) {
	t.Parallel()
	st, queues := newStub(t), memory.New(memory.WithoutDeadLetters())
	t.Cleanup(func() { _ = queues.Close() })
	var l logs
	n := notifications(t, NotificationsConfig{Queues: queues, Client: st.client(), Bucket: "bkt", Logger: l.logger()})
	if err := queues.Send("q", "hello"); err != nil {
		t.Fatal(err)
	}
	r, err := n.Open(t.Context(), claim("q"))
	if err != nil {
		t.Fatal(err)
	}
	readertest.Nothing(t, r)
	if c := queues.Counts("q"); c.InFlight != 1 || !strings.Contains(l.String(), "rejected=false") {
		t.Errorf("%+v, log %s", c, l.String())
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSettlementThatFails: of the object or of its notification; either is passed again.
func TestSettlementThatFails(t *testing.T) {
	t.Parallel()
	st, queues, r, ms := inHand(t)
	st.set(func() {
		st.refuse = func(op, _ string) (int, string, string) { return 403, "AccessDenied", "" }
	})
	var some *sources.SettleError
	if err := readertest.TrySettle(r, sources.Done, ms...); !errors.As(err, &some) || !strings.Contains(some.Failed[0].Error(), "s3:DeleteObject") {
		t.Errorf("a deletion that is denied: %v", err)
	}
	st.set(func() { st.refuse = nil })
	queues.Cut("q")
	if err := readertest.TrySettle(r, sources.Done, ms...); err == nil {
		t.Error("a settlement in a queue that is cut off succeeded")
	}
	queues.Restore("q")
	readertest.Settle(t, r, sources.Done, ms...) // the object is gone by now
	if c := queues.Counts("q"); c.InFlight+c.Waiting != 0 {
		t.Errorf("%+v left", c)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNotificationsOverSQS: receives that cost attempts, and what else a source says of itself, is passed on.
func TestNotificationsOverSQS(t *testing.T) {
	t.Parallel()
	st, server := newStub(t), sqstest.New()
	server.Create("q", nil)
	server.Intercept(func(_ string, in any) error {
		if in, ok := in.(*awssqs.ReceiveMessageInput); ok {
			in.WaitTimeSeconds = min(in.WaitTimeSeconds, 1)
		}
		return nil
	})
	queues, err := sqs.New(sqs.Config{Client: server, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	n := notifications(t, NotificationsConfig{Queues: queues, Client: st.client(), Bucket: "bkt", OnSuccess: pickup.Delete()})
	if n.Prefetch() || n.DeadLetters() || n.HeldFor() != 0 {
		t.Error("what the source of SQS says of itself is not passed on")
	}
	for i := range 3 {
		key := fmt.Sprintf("a+b %d", i)
		if _, err := server.Send("q", "", created(key, st.put(key, key))); err != nil {
			t.Fatal(err)
		}
	}
	r, err := n.Open(t.Context(), &rebalancer.Claim{Resource: "q", Fence: 1, TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ms := readertest.Fetch(t, r, 3)
	for _, m := range ms {
		if body, err := readertest.Read(context.Background(), m); body != m.Key || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
	readertest.Settle(t, r, sources.Done, ms...)
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := queues.Close(); err != nil {
		t.Error(err)
	}
	if waiting, inFlight := server.Counts("q"); waiting+inFlight != 0 || len(st.keys()) != 0 {
		t.Errorf("%d notifications, %q left", waiting+inFlight, st.keys())
	}
	if lag, err := n.Lag(t.Context(), "q"); lag != 0 || err != nil {
		t.Errorf("Lag: %d, %v", lag, err)
	}
	if found, err := n.Discover(t.Context(), "*"); len(found) != 1 || err != nil {
		t.Errorf("Discover: %q, %v", found, err)
	}
}

func TestNotificationsConfig(t *testing.T) {
	t.Parallel()
	_, err := NewNotifications(NotificationsConfig{Bucket: "arn:aws:s3:eu-west-1:1:accesspoint/x", OnSuccess: pickup.Keep(), Deletion: 7})
	for _, want := range []string{"Queues", "Client", "plain name", "OnSuccess", "Deletion"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

package group

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEventsAreInOrderAndNeverBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []Event
		free := make(chan struct{})
		o := newObserver(&Config{Logger: quiet(), OnEvent: func(e Event) {
			<-free
			if e.Reason == "3" {
				panic("oh no")
			}
			got = append(got, e)
		}})
		for i := range 2 * maxEvents {
			o.emit(Event{Kind: KindStarted, Reason: fmt.Sprint(i)})
			if i == 0 {
				synctest.Wait() // the first is with OnEvent
			}
		}
		close(free)
		synctest.Wait()
		o.emit(Event{Kind: KindLeft})
		o.close(time.Second)
		n := len(got)
		if n != maxEvents+2 || got[n-1].Kind != KindLeft || got[n-2].Kind != KindDropped || got[n-2].Reason != fmt.Sprintf("%d events", maxEvents-1) {
			t.Fatalf("%d events, the last %+v", n, got[n-2:])
		}
		for i, want := range []string{"0", "1", "2", "4", "5"} { // OnEvent panicked at 3
			if got[i].Reason != want {
				t.Fatalf("event %d is %s, want %s", i, got[i].Reason, want)
			}
		}
		o.emit(Event{Kind: KindJoined}) // after close: ignored
	})
}

func TestCloseDoesNotWaitForAnObserverThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		o := newObserver(&Config{Logger: quiet(), OnEvent: func(Event) { <-free }})
		o.emit(Event{Kind: KindJoined})
		began := time.Now()
		o.close(time.Second)
		if d := time.Since(began); d != time.Second {
			t.Fatalf("closed after %v", d)
		}
		close(free)
	})
}

func TestLogLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := newObserver(&Config{Name: "g", Node: "n", Logger: slog.New(slog.NewTextHandler(&b, nil))})
	o.emit(Event{Kind: KindFailed, Resource: "q", Fence: 7, Message: "m1", Attempt: 2, Err: &panicError{"oh", []byte("stack-of-it")}})
	for range 10 {
		o.emit(Event{Kind: KindStore, Reason: "a renewal failed", Err: errors.New("no route")})
	}
	o.emit(Event{Kind: KindClaimed, Resource: "q"})
	o.emit(Event{Kind: KindWaiting, Reason: "another process has this name"})
	o.close(time.Minute)
	text := b.String()
	for _, want := range []string{"level=WARN msg=failed group=g node=n resource=q fence=7 message=m1 attempt=2", "panic: oh", "stack-of-it", "no route",
		"level=INFO msg=waiting group=g node=n reason=\"another process has this name\""} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "no route"); n != 1 {
		t.Errorf("a trouble that repeats itself was logged %d times", n)
	}
	if strings.Contains(text, "claimed") {
		t.Error("every claim is logged above the level of debugging")
	}
}

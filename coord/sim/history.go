package sim

import (
	"fmt"
	"io"
	"strings"

	"github.com/rebalancer-go/rebalancer/coord"
)

// history writes down what happens, one line each. A world without one does not pay for it.
type history struct {
	out io.Writer
}

// Record lets the world write its history to out.
func (w *World) Record(out io.Writer) { w.history = &history{out: out} }

func (w *World) note(p *proc, format string, args ...any) {
	if w.history == nil {
		return
	}
	who := ""
	if p != nil {
		who = p.String()
	}
	fmt.Fprintf(w.history.out, "%10.4fs %-7s %s\n", float64(w.now)/float64(sec), who, fmt.Sprintf(format, args...))
}

func (w *World) event(p *proc, ev coord.Event) {
	if w.history == nil {
		return
	}
	if _, ok := ev.(coord.Tick); !ok {
		w.note(p, "<- %s", describe(ev))
	}
}

func (w *World) action(p *proc, a coord.Action) {
	if w.history != nil {
		w.note(p, "-> %s", describe(a))
	}
}

// describe shows an event or action in one line. fmt sorts maps, so that it is the same each time.
func describe(x any) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", x), "coord.")
	switch x := x.(type) {
	case coord.Commit:
		var b strings.Builder
		for _, t := range x.Txns {
			fmt.Fprintf(&b, " {check %v", t.Checks)
			for _, p := range t.Puts {
				fmt.Fprintf(&b, " put %s=%s", p.Key, p.Value)
			}
			fmt.Fprintf(&b, " delete %v wake %v}", t.Deletes, t.Wake)
		}
		return fmt.Sprintf("%s %d %s %s%s", name, x.Req, x.Session, x.Incarnation, b.String())
	case coord.ReadDone:
		var b strings.Builder
		for _, e := range x.Entries {
			fmt.Fprintf(&b, " %s@%d(%s)=%s", e.Key, e.Version, e.Session, e.Value)
		}
		return fmt.Sprintf("%s %d %v %s%s", name, x.Req, x.Code, x.Stamp.Incarnation, b.String())
	}
	return name + " " + strings.TrimPrefix(fmt.Sprintf("%+v", x), "{")
}

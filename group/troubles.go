package group

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
	"github.com/rebalancer-go/rebalancer/internal/redact"
)

const (
	troublesEvery = time.Second // they are collected at most this often
	maxTroubles   = 100         // resources of a node whose trouble operators are told of
	maxTrouble    = 300         // bytes of each
	maxRedacted   = 4 << 10     // bytes of an error that are searched for secrets; what follows is cut
	maxTold       = 64 << 10    // bytes of them all as they are written, of reasons and of last errors each
	toldBeside    = 64          // bytes that stand around each
)

// tellTroubles hands the machine what keeps resources from getting on, and what went wrong last, for operators to see in the store.
func (n *node) tellTroubles() {
	if wait := troublesEvery - time.Since(n.told); wait > 0 {
		if !n.telling {
			n.telling = true
			n.tell = time.AfterFunc(wait, func() { signal(n.troubles) })
		}
		return
	}
	n.told, n.telling = time.Now(), false
	reasons, last := n.troublesNow()
	n.step(coord.Troubles{Reasons: reasons, Last: last})
}

// troublesNow is what is told of: of too many last errors the newest. The same troubles make the same choice, so that they are not written again.
func (n *node) troublesNow() (map[string]string, map[string]coord.LastError) {
	reasons, last := map[string]string{}, map[string]coord.LastError{}
	n.wmu.Lock()
	for k, w := range n.workers {
		if err := w.err.Load(); err != nil {
			reasons[k.resource] = troubleText(*err)
		}
		if e := w.lastErr.Load(); e != nil && e.At >= last[k.resource].At {
			last[k.resource] = *e
		}
	}
	n.wmu.Unlock()
	bound(reasons, strings.Compare, func(text string) string { return text })
	bound(last, func(a, b string) int {
		return cmp.Or(cmp.Compare(last[b].At, last[a].At), strings.Compare(a, b))
	}, func(e coord.LastError) string { return e.Error })
	return reasons, last
}

// bound leaves the first of these resources, so that what is written stays far below the longest value of a store, whatever names and texts are like.
func bound[V any](all map[string]V, order func(a, b string) int, text func(V) string) {
	room, left := maxTold, maxTroubles
	for _, name := range slices.SortedFunc(maps.Keys(all), order) {
		written, _ := json.Marshal([]string{name, text(all[name])}) // strings always can be
		if room -= len(written) + toldBeside; room < 0 || left == 0 {
			room = 0
			delete(all, name)
			continue
		}
		left--
	}
}

// troubleText is an error as operators may read it in the store: without secrets, and cut.
func troubleText(err error) string {
	return shorten(redact.Text(shorten(err.Error(), maxRedacted)), maxTrouble)
}

// shorten cuts a text after most bytes, at the end of a character.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

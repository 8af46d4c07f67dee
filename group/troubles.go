package group

import (
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

const (
	troublesEvery = time.Second // they are collected at most this often
	maxTroubles   = 100         // resources of a node whose trouble operators are told of
	maxTrouble    = 300         // bytes of each
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
	reasons, last := map[string]string{}, map[string]coord.LastError{}
	n.wmu.Lock()
	for k, w := range n.workers { // when they are too many, any of them will do
		if err := w.err.Load(); err != nil && len(reasons) < maxTroubles {
			reasons[k.resource] = shorten((*err).Error(), maxTrouble)
		}
		if e := w.lastErr.Load(); e != nil && len(last) < maxTroubles {
			last[k.resource] = *e
		}
	}
	n.wmu.Unlock()
	n.step(coord.Troubles{Reasons: reasons, Last: last})
}

// shorten cuts a text after most bytes, at the end of a character.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

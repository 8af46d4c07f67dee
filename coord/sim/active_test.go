package sim

import (
	"testing"
)

// worker is the only process that works a resource, or nil.
func (w *World) workerOf(r string) *proc {
	var p *proc
	for _, k := range w.working[r] {
		if k.counts() {
			p = k.p
		}
	}
	return p
}

// TestSingleActiveKilled: of five nodes one is active. It is killed 20 times: the next takes over within ttl + 250 ms, and a renewal where
// the store gives no hints, and who comes back stays on standby. That never two work is what all worlds are held to.
func TestSingleActiveKilled(t *testing.T) {
	t.Parallel()
	for seed := range int64(12) {
		s := calmGroup(seed, 5, 3, seed%4 == 3)
		s.MaxActive, s.Latency = 1, ms
		const kills, every = 20, 5
		s.Heal = 10*sec + (kills+1)*every*s.TTL
		within := s.TTL + 250*ms
		if !s.Hints {
			within += s.TTL / 6
		}
		w := NewWorld(s, nil)
		w.at(9*sec, func() { clear(w.moves) })
		for n := range int64(kills) {
			at := 10*sec + n*every*s.TTL + s.chance().of("kill", n).below(s.TTL)
			w.at(at, func() { w.killActive(n) })
			w.at(at+within, func() {
				for _, r := range s.Resources {
					if w.workerOf(r) == nil {
						w.fail(settles, "nobody works %s %.3fs after the kill", r, float64(within)/float64(sec))
					}
				}
			})
		}
		if v := w.Run(); v != nil {
			t.Errorf("seed %d: %v", seed, v)
		}
		if n := w.moves["r00"]; n != kills {
			t.Errorf("seed %d: %d moves for %d kills", seed, n, kills)
		}
	}
}

// killActive kills the process that works, and has another one take its place two ttl later.
func (w *World) killActive(n int64) {
	p := w.workerOf("r00")
	if p == nil {
		w.fail(settles, "nobody is active before kill %d", n)
		return
	}
	w.begin(Fault{ID: n, At: w.now, Kind: FaultCrash, Node: p.place, Dur: 2 * w.setup.TTL, Arg: 2})
	w.note(nil, "kill %d", n)
}

package sim

import "github.com/rebalancer-go/rebalancer/coord"

// maxDrift is how much the clocks of nodes may run too fast or too slow, in millionths. The margin of a fifth of the ttl must
// cover it, the store clock's own steps below the threshold, and nothing else: trust counts from before the sending.
const maxDrift = 50_000

// nodeClock is a node's own clock: it begins anywhere and runs at its own rate, but never goes back and never stands still.
type nodeClock struct {
	offset vtime
	ppm    int64 // millionths that it runs too fast
}

// at is what the clock shows at a moment of the world.
func (c nodeClock) at(t vtime) coord.Time { return coord.Time(c.offset + t + c.gain(t)) }

// gain is t × ppm / 10⁶ without overflow.
func (c nodeClock) gain(t vtime) vtime {
	const million = 1_000_000
	return t/million*c.ppm + t%million*c.ppm/million
}

// world is the first moment of the world at which the clock shows at least x, as seen from now.
func (c nodeClock) world(now vtime, x coord.Time) vtime {
	if x <= c.at(now) {
		return now
	}
	far := vtime(x) - vtime(c.at(now)) // local time to go
	const never = 1 << 61
	if far > never {
		return never
	}
	t := now + far/(1_000_000+c.ppm)*1_000_000
	for c.at(t) < x {
		d := (vtime(x) - vtime(c.at(t))) * 1_000_000 / (1_000_000 + maxDrift + 1)
		t += max(d, 1)
	}
	return t
}

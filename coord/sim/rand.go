package sim

// chance draws numbers that depend on the seed and on the name of what they are for, and on nothing else: there is no stream
// whose later numbers would change when one draw more or less is made.
type chance uint64

// mix is a finaliser that spreads every bit of x over the whole word.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return x
}

// of returns the chance of a named thing within c.
func (c chance) of(name string, ids ...int64) chance {
	h := uint64(c) ^ 0x9e3779b97f4a7c15
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h = mix(h)
	for _, id := range ids {
		h = mix(h + 0x9e3779b97f4a7c15*uint64(id+1))
	}
	return chance(h)
}

// below returns a number in [0, n); 0 when n is not positive.
func (c chance) below(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(mix(uint64(c)) >> 1 % uint64(n))
}

// between returns a number in [lo, hi).
func (c chance) between(lo, hi int64) int64 { return lo + c.below(hi-lo) }

// percent is true p times out of a hundred.
func (c chance) percent(p int64) bool { return c.below(100) < p }

// pick returns one of the choices.
func pick[T any](c chance, choices ...T) T { return choices[c.below(int64(len(choices)))] }

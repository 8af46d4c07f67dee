package sim

// sum is a hash of 128 bits: a search over millions of states must not take two for one.
type sum struct{ a, b uint64 }

func (s *sum) add(x uint64) {
	s.a = mix(s.a ^ x)
	s.b = mix(s.b+x*0x9e3779b97f4a7c15) + s.a
}

func (s *sum) text(x string) {
	s.add(uint64(len(x)))
	for len(x) >= 8 {
		s.add(uint64(x[0]) | uint64(x[1])<<8 | uint64(x[2])<<16 | uint64(x[3])<<24 | uint64(x[4])<<32 | uint64(x[5])<<40 | uint64(x[6])<<48 | uint64(x[7])<<56)
		x = x[8:]
	}
	var last uint64
	for i := range len(x) {
		last = last<<8 | uint64(x[i])
	}
	s.add(last)
}

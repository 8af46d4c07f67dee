package sim

// Shrink takes faults out of a schedule as long as the world still breaks the same promise, and returns what is left. What is left to
// chance does not depend on the faults that were taken out.
func Shrink(s Setup, faults []Fault, property string) []Fault {
	fails := func(f []Fault) bool {
		v := NewWorld(s, f).Run()
		return v != nil && v.Property == property
	}
	budget := maxShrink
	for size := (len(faults) + 1) / 2; size >= 1; {
		taken := false
		for from := 0; from < len(faults) && budget > 0; {
			to := min(from+size, len(faults))
			rest := append(append([]Fault(nil), faults[:from]...), faults[to:]...)
			budget--
			if fails(rest) {
				faults, taken = rest, true
			} else {
				from = to
			}
		}
		switch {
		case budget <= 0:
			return faults
		case size > 1:
			size /= 2
		case !taken:
			return faults
		}
	}
	return faults
}

// maxShrink bounds the worlds that are run to shrink one.
const maxShrink = 400

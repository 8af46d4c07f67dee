package backends

import "time"

// DigestOf sums up entries as Renew and Read report it. The sum does not depend on the order of the entries.
func DigestOf(entries []Entry) Digest {
	d := Digest{Left: -1}
	for i := range entries {
		d.Add(entries[i].Key, entries[i].Version, entries[i].Left)
	}
	return d
}

// Add takes one more entry into the digest. Start from Digest{Left: -1}.
func (d *Digest) Add(key string, version int64, left time.Duration) {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for i := 0; i < len(key); i++ {
		h = (h ^ uint64(key[i])) * prime
	}
	for s := 0; s < 64; s += 8 {
		h = (h ^ uint64(byte(version>>s))) * prime
	}
	// A finaliser, so that adding the hashes up does not cancel what they have in common.
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	d.Sum += h
	d.Count++
	if left >= 0 && (d.Left < 0 || left < d.Left) {
		d.Left = left
	}
}

package sqlserver

import "fmt"

// The server takes 0x61 and 0x6100 for equal: what differs in zero bytes at the end only is one key to it. So no zero byte is ever sent. Each
// becomes 01 01, and 01 becomes 01 02, which keeps order and prefixes as they are.
const escape = 1

// pack gives the bytes as they are stored. It is never nil: that would be NULL.
func pack(raw []byte) []byte {
	packed := make([]byte, 0, len(raw))
	for _, b := range raw {
		if b > escape {
			packed = append(packed, b)
		} else {
			packed = append(packed, escape, escape+b)
		}
	}
	return packed
}

// unpack is the reverse. It fails for what pack never made.
func unpack(packed []byte) ([]byte, error) {
	raw := make([]byte, 0, len(packed))
	for i := 0; i < len(packed); i++ {
		b := packed[i]
		switch {
		case b > escape:
		case i+1 < len(packed) && b == escape && (packed[i+1] == escape || packed[i+1] == escape+1):
			i++
			b = packed[i] - escape
		default:
			return nil, fmt.Errorf("a stored value cannot be read: byte %d is %#x; something else wrote to the store's tables", i, b)
		}
		raw = append(raw, b)
	}
	return raw, nil
}

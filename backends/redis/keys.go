package redis

import (
	"fmt"
	"strings"
)

// DefaultPrefix begins all keys and channels.
const DefaultPrefix = "rebalancer:"

// keyNames are what follows the hash tag, in the order in which scripts get the keys.
var keyNames = [...]string{
	"meta", "names", "versions", "values", "parts",
	"sessions", "nodes", "by-node", "sent", "bound-names", "bound-versions", "bound-values", "bound",
}

const namesKey = 1

// space is the place of a group.
type space struct {
	keys    []string
	channel string // before the address
}

func spaceOf(prefix, group string) space {
	base := prefix + "{" + escape(group) + "}:"
	sp := space{channel: base + "hint:"}
	for _, name := range keyNames {
		sp.keys = append(sp.keys, base+name)
	}
	return sp
}

// escape makes a hash tag of any bytes. It stays readable for people who look into the server.
func escape(group string) string {
	var b strings.Builder
	for i := range len(group) {
		c := group[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("%{}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// groupOf is the group whose names the key holds.
func groupOf(prefix, key string) (group string, ok bool) {
	tag, ok := strings.CutPrefix(key, prefix+"{")
	if !ok {
		return "", false
	}
	if tag, ok = strings.CutSuffix(tag, "}:"+keyNames[namesKey]); !ok {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(tag); i++ {
		c := tag[i]
		if c == '%' {
			if i+2 >= len(tag) {
				return "", false
			}
			if _, err := fmt.Sscanf(tag[i+1:i+3], "%02X", &c); err != nil {
				return "", false
			}
			i += 2
		}
		b.WriteByte(c)
	}
	return b.String(), b.Len() > 0 && escape(b.String()) == tag
}

// part is the first part of what is below a prefix, whose changes the server counts; "" when it does not count them apart.
func part(prefix string) string {
	i := strings.IndexByte(prefix, '/')
	if i < 0 || i >= 16 {
		return ""
	}
	return prefix[:i+1]
}

// bounds are the ends of a range of keys by bytes, as ZRANGEBYLEX has them.
func bounds(prefix string) (lo, hi string) {
	lo, hi = "["+prefix, "+"
	if prefix == "" {
		return "-", hi
	}
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
		hi = "(" + string(end)
	}
	return lo, hi
}

package zookeeper

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// buckets is into how many znodes the entries of one folder are spread, so that no listing comes near the packet limit.
const buckets = 16

// groupDir is the place of a group; see doc.go for what is below it.
type groupDir string

func (d groupDir) alive(session string) string   { return string(d) + "/s/" + session }
func (d groupDir) allowed(session string) string { return string(d) + "/u/" + session }
func (d groupDir) hint(address string) string    { return string(d) + "/h/a" + escape(address) }

// where is the place of a key: a folder for what is before its first slash, and in it one of the buckets, which depends on what is before
// the second slash alone, so that all that is below a prefix with two slashes is in one bucket.
func (d groupDir) where(key string) (bucket, entry string) {
	folder, route := split(key)
	bucket = string(d) + "/e/" + folder + "/" + bucketOf(route)
	return bucket, bucket + "/" + escape(key)
}

func split(key string) (folder, route string) {
	first, rest, ok := strings.Cut(key, "/")
	if !ok {
		return "f", key
	}
	second, _, _ := strings.Cut(rest, "/")
	return "d" + escape(first), first + "/" + second
}

func bucketOf(route string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(route))
	return strconv.FormatUint(uint64(h.Sum32()%buckets), 36)
}

// below gives the buckets that may have keys with the prefix, given the folders that there are.
func (d groupDir) below(prefix string, folders []string) []string {
	first, rest, slash := strings.Cut(prefix, "/")
	var paths []string
	all := func(folder string) {
		for b := range uint64(buckets) {
			paths = append(paths, string(d)+"/e/"+folder+"/"+strconv.FormatUint(b, 36))
		}
	}
	if slash {
		folder := "d" + escape(first)
		if strings.Contains(rest, "/") {
			_, route := split(prefix)
			return []string{string(d) + "/e/" + folder + "/" + bucketOf(route)}
		}
		all(folder)
		return paths
	}
	for _, folder := range folders {
		name, ok := unescape(strings.TrimPrefix(folder, "d"))
		if folder == "f" || ok && strings.HasPrefix(name, prefix) {
			all(folder)
		}
	}
	return paths
}

// plain are the bytes that stand in a znode's name as they are.
func plain(b byte) bool {
	switch {
	case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
		return true
	}
	return strings.IndexByte("-_=#@:,+~!", b) >= 0
}

// escape makes any bytes the name of a znode: it is different for different bytes.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		b := s[i]
		if plain(b) || b == '.' && i > 0 {
			out.WriteByte(b)
		} else {
			out.WriteByte('%')
			out.WriteByte(hex[b>>4])
			out.WriteByte(hex[b&15])
		}
	}
	return out.String()
}

// unescape undoes escape; false for a name that escape does not make.
func unescape(s string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		b, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		out.WriteByte(byte(b))
		i += 2
	}
	return out.String(), escape(out.String()) == s
}

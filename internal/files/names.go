package files

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxName is the longest file name that most file systems take, in bytes.
const MaxName = 255

func (o *Options) ignored(name string) bool {
	for _, p := range o.Ignore {
		if matches(p, name) {
			return true
		}
	}
	return false
}

// matches is path.Match, quicker for the usual patterns with one star at an end: a listing of a big directory asks for
// each name and pattern.
func matches(pattern, name string) bool {
	if star := strings.IndexAny(pattern, `*?[\`); star >= 0 && pattern[star] == '*' {
		if star == 0 && !strings.ContainsAny(pattern[1:], `*?[\`) {
			return strings.HasSuffix(name, pattern[1:])
		}
		if star == len(pattern)-1 {
			return strings.HasPrefix(name, pattern[:star])
		}
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

// spare is the n-th name to try for a file that is moved: its own, then ones that say when it was moved. The type of
// the file stays at the end, and the last part of the name within what file systems take.
func spare(name string, n int, now time.Time) string {
	if n == 0 {
		return name
	}
	mark := "." + now.UTC().Format("20060102T150405.000000000Z")
	if n > 1 {
		mark += "-" + strconv.Itoa(n)
	}
	dir, name := path.Split(name)
	ext := path.Ext(name)
	if ext == name || len(ext) > 32 {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	if over := len(stem) + len(mark) + len(ext) - MaxName; over > 0 {
		stem = Cut(stem, len(stem)-over)
	}
	return dir + stem + mark + ext
}

// mostPlain is the longest name of Plain, which nearly every file system takes.
const mostPlain = 200

// Plain is a name that nearly every file system takes: bytes that some refuse are written as % and two digits.
func Plain(name string) string {
	var b strings.Builder
	for i, c := range name {
		size := utf8.RuneLen(c)
		if c == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(name[i:])
		}
		end := i+size == len(name)
		if c == utf8.RuneError || c < ' ' || c == 0x7f || strings.ContainsRune(`<>:"/\|?*%`, c) || end && (c == ' ' || c == '.') {
			for _, x := range []byte(name[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", x)
			}
			continue
		}
		b.WriteRune(c)
	}
	return Cut(b.String(), mostPlain)
}

// Cut shortens s to at most n bytes, at a rune where s is text.
func Cut(s string, n int) string {
	if n >= len(s) {
		return s
	}
	s = s[:max(n, 0)]
	if i := len(s) - 1; i >= 0 && s[i] >= utf8.RuneSelf {
		for i > 0 && len(s)-i < utf8.UTFMax && !utf8.RuneStart(s[i]) {
			i--
		}
		if !utf8.FullRuneInString(s[i:]) {
			s = s[:i]
		}
	}
	return s
}

// identify makes the ID of a message from what cannot change without its being another file.
func identify(name string, i Info) string {
	return fmt.Sprintf("%s@%d-%d-%s", name, i.Size, i.ModTime.UnixNano(), i.Tag)
}

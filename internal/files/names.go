package files

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxName is the longest file name that most file systems take, in bytes.
const MaxName = 255

// listing gathers the entries that can be messages from the pages of a listing, and keeps no more of the others than it
// needs: not ignored, no done-file, and with their done-file present where one is asked for.
type listing struct {
	opt     *Options
	entries []Entry
	done    map[string]bool // the names whose done-file is there
}

// add takes a page.
func (l *listing) add(page []Entry) error {
	for _, e := range page {
		switch {
		case l.opt.DoneFile != "" && l.opt.isDoneFile(e.Name):
			if l.done == nil {
				l.done = map[string]bool{}
			}
			l.done[l.opt.doneFileOf(e.Name)] = true
		case !l.opt.ignored(e.Name):
			l.entries = append(l.entries, e)
		}
	}
	return nil
}

// candidates returns what can be delivered.
func (l *listing) candidates() []Entry {
	if l.opt.DoneFile == "" {
		return l.entries
	}
	return slices.DeleteFunc(l.entries, func(e Entry) bool { return !l.done[e.Name] })
}

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

func (o *Options) doneFile(name string) string { return strings.Replace(o.DoneFile, "*", name, 1) }

func (o *Options) isDoneFile(name string) bool {
	before, after, _ := strings.Cut(o.DoneFile, "*")
	return len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// doneFileOf is the name of the file whose done-file this is.
func (o *Options) doneFileOf(name string) string {
	before, after, _ := strings.Cut(o.DoneFile, "*")
	return name[len(before) : len(name)-len(after)]
}

// Count returns how many messages a listing has (see Place.List).
func (o *Options) Count(list func(each func(page []Entry) error) error) (int64, error) {
	l := listing{opt: o}
	if err := list(l.add); err != nil {
		return 0, err
	}
	return int64(len(l.candidates())), nil
}

// spare is the n-th name to try for a file that is moved: its own, then ones that say when it was moved. The type of
// the file stays at the end, and the name within what file systems take.
func spare(name string, n int, now time.Time) string {
	if n == 0 {
		return name
	}
	mark := "." + now.UTC().Format("20060102T150405.000000000Z")
	if n > 1 {
		mark += "-" + strconv.Itoa(n)
	}
	ext := path.Ext(name)
	if ext == name || len(ext) > 32 {
		ext = ""
	}
	stem := strings.TrimSuffix(name, ext)
	if over := len(stem) + len(mark) + len(ext) - MaxName; over > 0 {
		stem = Cut(stem, len(stem)-over)
	}
	return stem + mark + ext
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

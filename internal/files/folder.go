package files

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// Folder is where files are moved, with layouts of time.Format between braces.
type Folder string

// At is the folder at a time.
func (f Folder) At(now time.Time) string {
	return f.replace(now.UTC().Format)
}

// replace replaces what is between braces, and the braces.
func (f Folder) replace(by func(layout string) string) string {
	var b strings.Builder
	rest := string(f)
	for {
		before, after, ok := strings.Cut(rest, "{")
		layout, tail, closed := strings.Cut(after, "}")
		if !ok || !closed {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(before)
		b.WriteString(by(layout))
		rest = tail
	}
}

// Is reports whether a path is the folder at some time.
func (f Folder) Is(name string) bool {
	if !strings.Contains(string(f), "{") {
		return name == string(f)
	}
	var layouts, values []string
	literal := f.replace(func(layout string) string {
		layouts = append(layouts, layout)
		return "\x00"
	})
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(literal), "\x00", "(.+)") + "$"
	if re, err := regexp.Compile(pattern); err == nil {
		values = re.FindStringSubmatch(name)
	}
	if values == nil {
		return false
	}
	for i, layout := range layouts {
		if _, err := time.Parse(layout, values[i+1]); err != nil {
			return false
		}
	}
	return true
}

// Has reports whether a path is the folder at some time, or below it.
func (f Folder) Has(name string) bool {
	for i, c := range name {
		if c == '/' && f.Is(name[:i]) {
			return true
		}
	}
	return f.Is(name)
}

// check finds braces that do not fit, and layouts that are none.
func (f Folder) check() error {
	opened := false
	start := 0
	for i, c := range string(f) {
		switch {
		case c == '{' && !opened:
			opened, start = true, i+1
		case c == '{', c == '}' && !opened:
			return errors.New("its braces do not pair; between { and } is a layout of time.Format")
		case c == '}':
			opened = false
			if layout := string(f[start:i]); !Folder("{" + layout + "}").varies() {
				return errors.New("{" + layout + "} is no layout of time.Format, like {2006-01-02}")
			}
		}
	}
	if opened {
		return errors.New("its braces do not pair; between { and } is a layout of time.Format")
	}
	return nil
}

// varies tells whether the folder is another one at other times.
func (f Folder) varies() bool {
	a, b := time.Date(2001, 2, 3, 4, 5, 6, 111_111_111, time.UTC), time.Date(2032, 10, 24, 17, 38, 49, 222_222_222, time.UTC)
	return f.At(a) != f.At(b)
}

package ftp

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/internal/files"
)

// parseFacts reads a line of MLSD or MLST: facts, a space, the name.
func parseFacts(line string, ignoreUnique bool) (entry, bool) {
	facts, name, ok := strings.Cut(line, " ")
	if !ok || name == "" || !strings.HasSuffix(facts, ";") {
		return entry{}, false
	}
	e := entry{name: name}
	info := files.Info{Size: -1}
	for fact := range strings.SplitSeq(strings.TrimSuffix(facts, ";"), ";") {
		key, value, ok := strings.Cut(fact, "=")
		if !ok {
			return entry{}, false
		}
		switch strings.ToLower(key) {
		case "type":
			e.kind = factKind(strings.ToLower(value))
			if value = strings.ToLower(value); value == "cdir" || value == "pdir" {
				e.name = "."
			}
		case "size":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				info.Size = n
			}
		case "modify":
			info.ModTime, _ = time.Parse("20060102150405", value)
		case "unique":
			if !ignoreUnique {
				info.Tag = value
			}
		}
	}
	if e.kind == regular && info.Size >= 0 && !info.ModTime.IsZero() {
		e.info = &info
	}
	return e, true
}

func factKind(fact string) kind {
	switch fact {
	case "file":
		return regular
	case "dir", "cdir", "pdir":
		return directory
	}
	return other
}

// Parts of the times in listings. They are recognised, so that the name is known to begin behind them, and not used: they have no zone,
// and most no seconds.
var (
	clockTime = regexp.MustCompile(`^\d{1,2}:\d\d(:\d\d(\.\d+)?)?$`)
	yearOnly  = regexp.MustCompile(`^\d{4}$`)
	dayOnly   = regexp.MustCompile(`^\d{1,2}[.,]?$`)
	wholeDate = regexp.MustCompile(`^\d{1,4}([-/.])\d{1,2}([-/.])\d{1,4}$`)
	zone      = regexp.MustCompile(`^[+-]\d{4}$`)
)

// timeFields is how many fields a time in the form of ls -l takes; 0: they are none. A form that is not known for sure is none: the first
// word of a name would be lost, and with it the file, or another one would be taken for it.
func timeFields(f []string) int {
	switch {
	case len(f) >= 3 && wholeDate.MatchString(f[0]) && strings.Contains(f[1], ".") && clockTime.MatchString(f[1]) && zone.MatchString(f[2]):
		return 3 // 2026-01-12 13:45:00.000000000 +0100
	case len(f) >= 2 && wholeDate.MatchString(f[0]) && clockTime.MatchString(f[1]):
		return 2 // 2026-01-12 13:45
	case len(f) >= 3 && dayOnly.MatchString(f[0]) != dayOnly.MatchString(f[1]) && (clockTime.MatchString(f[2]) || yearOnly.MatchString(f[2])):
		return 3 // Jan 12 13:45, 12. Jan 2026
	}
	return 0
}

// mostColumns bounds those before the size: mode, links, owner, group, and names of owners and groups may have spaces.
const mostColumns = 8

// parseLS reads a line in the form of ls -l: mode, other columns, size, a time, one space, the name. The columns between mode and size
// differ from server to server; the size is the number before the time.
func parseLS(line string) (entry, bool) {
	fields, rests := columns(line, mostColumns+4)
	if len(fields) == 0 || len(fields[0]) < 10 {
		return entry{}, false
	}
	kinds := map[byte]kind{'-': regular, 'd': directory, 'l': other, 'b': other, 'c': other, 'p': other, 's': other, 'D': other}
	kind, known := kinds[fields[0][0]]
	if !known {
		return entry{}, false
	}
	for i := 1; i < min(len(fields), mostColumns); i++ {
		if _, err := strconv.ParseInt(fields[i], 10, 64); err != nil {
			continue
		}
		if n := timeFields(fields[i+1:]); n > 0 {
			name := rests[i+n]
			return entry{name: name, kind: kind}, name != ""
		}
	}
	return entry{}, false
}

// columns are the first fields of a line, and what follows each after one space.
func columns(line string, most int) (fields, rests []string) {
	for rest := line; len(fields) < most; {
		field, after, ok := strings.Cut(strings.TrimLeft(rest, " "), " ")
		if !ok {
			break
		}
		fields, rests, rest = append(fields, field), append(rests, after), after
	}
	return fields, rests
}

// parseDOS reads a line in the form of DIR: a date, a time, <DIR> or another kind or a size, the name.
func parseDOS(line string) (entry, bool) {
	fields, rests := columns(line, 3)
	if len(fields) < 3 || !wholeDate.MatchString(fields[0]) || !clockTime.MatchString(strings.TrimRight(fields[1], "APMapm")) {
		return entry{}, false
	}
	name := rests[2]
	switch what := fields[2]; {
	case what == "<DIR>":
		return entry{name: strings.TrimLeft(name, " "), kind: directory}, true
	case strings.HasPrefix(what, "<"): // <JUNCTION>, <SYMLINK>, …
		return entry{name: strings.TrimLeft(name, " "), kind: other}, true
	default:
		_, err := strconv.ParseInt(what, 10, 64)
		return entry{name: name}, err == nil && name != ""
	}
}

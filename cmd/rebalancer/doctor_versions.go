package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// testedServer is a server with the versions that the tests of this version ran on, in order. The README's tables say the same.
type testedServer struct {
	name     string
	versions []string
	parts    int // of a version within which releases only mend: 1 for PostgreSQL's 17, 2 for Redis' 7.0
}

func testedServers() []testedServer {
	return []testedServer{
		{"PostgreSQL", []string{"15.20", "17.12"}, 1},
		{"Redis", []string{"7.0.15"}, 2},
		{"Valkey", []string{"8.1.1"}, 2},
		{"ZooKeeper", []string{"3.8.0", "3.9.3"}, 2},
		{"RabbitMQ", []string{"3.10.8", "4.0.5"}, 2},
		{"OpenSSH", []string{"9.2"}, 1},
		{"vsFTPd", []string{"3.0.3"}, 2},
		{"versitygw", []string{"1.8.0"}, 1},
	}
}

// version holds what a server says of itself, such as "PostgreSQL 17.2", against what was tested. Older than all is a warning, for the tests cannot show
// that it has all that is needed; another one is a note.
func (d *doctor) version(said string) {
	for one := range strings.SplitSeq(said, ", ") {
		for _, s := range testedServers() {
			m := regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(s.name) + `[ _/]v?(\d+(?:\.\d+)*)`).FindStringSubmatch(one)
			if m == nil {
				continue
			}
			tested := s.name + " " + strings.Join(s.versions, " and ")
			state, do := judge(m[1], s)
			if state == stateOK {
				d.find(state, "version", do, "%s %s; tests ran on %s", s.name, m[1], tested)
			} else {
				d.find(state, "version", do, "%s %s is none that the tests ran on: %s", s.name, m[1], tested)
			}
		}
	}
}

// judge compares a version with those that were tested.
func judge(version string, s testedServer) (state, do string) {
	is := series(version, s.parts)
	for _, t := range s.versions {
		if slices.Equal(series(t, s.parts), is) {
			return stateOK, ""
		}
	}
	if slices.Compare(is, series(s.versions[0], s.parts)) < 0 {
		return stateWarning, fmt.Sprintf("use %s %s or newer", s.name, s.versions[0])
	}
	return stateNote, ""
}

// series are the first numbers of a version.
func series(version string, parts int) []int {
	var out []int
	for i, p := range strings.Split(version, ".") {
		n, err := strconv.Atoi(p)
		if i == parts || err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

package coord

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sort"
)

// partSize bounds how many bytes of names stand in one entry: no entry grows with the group.
const partSize = 32 << 10

// split cuts names into runs of about partSize bytes.
func split(names []string) [][]string {
	var parts [][]string
	size, from := 0, 0
	for i, n := range names {
		if size > 0 && size+len(n) > partSize {
			parts = append(parts, names[from:i])
			from, size = i, 0
		}
		size += len(n) + 3
	}
	if from < len(names) {
		parts = append(parts, names[from:])
	}
	return parts
}

// listPuts writes a list of names below a prefix, in parts.
func listPuts(prefix string, names []string, bound bool) []Put {
	var puts []Put
	for i, p := range split(names) {
		puts = append(puts, Put{Key: part(prefix, i), Value: encode(nameList{p}), Bound: bound})
	}
	return puts
}

// listHash identifies a list of names.
func listHash(names []string) string {
	h := sha256.New()
	for _, n := range names {
		fmt.Fprintf(h, "%d:%s", len(n), n)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// joinList reads a list of names from its parts.
func joinList(entries []Entry) ([]string, error) {
	var names []string
	for _, e := range entries {
		l, err := decode[nameList]("a list of names", e.Value)
		if err != nil {
			return nil, err
		}
		names = append(names, l.Names...)
	}
	return names, nil
}

// splitNext cuts what a node gives up, with the next owners, into runs of about partSize bytes.
func splitNext(leaving map[string]string) []map[string]string {
	var parts []map[string]string
	size := partSize
	for _, name := range sortedKeys(leaving) {
		n := len(name) + len(leaving[name]) + 6
		if size+n > partSize {
			parts, size = append(parts, map[string]string{}), 0
		}
		parts[len(parts)-1][name] = leaving[name]
		size += n
	}
	return parts
}

// parts cuts an assignment into entries that do not grow with the group: a first one, and more where its lists are long.
func (a Assignment) parts() []Assignment {
	shares, paused, leaving := split(a.Share), split(a.Paused), splitNext(a.Leaving)
	all := make([]Assignment, max(1, len(shares), len(paused), len(leaving)))
	for i := range all {
		p := Assignment{Epoch: a.Epoch, Generation: a.Generation}
		if i == 0 {
			p = a
			p.Share, p.Paused, p.Leaving, p.Parts = nil, nil, nil, len(all)-1
		}
		if i < len(shares) {
			p.Share = shares[i]
		}
		if i < len(paused) {
			p.Paused = paused[i]
		}
		if i < len(leaving) {
			p.Leaving = leaving[i]
		}
		all[i] = p
	}
	return all
}

// assignmentPuts writes a node's assignment in its parts. Those of an older one that are not overwritten are to be deleted by the caller.
func assignmentPuts(node string, a Assignment) []Put {
	head := AssignmentKey(node)
	var puts []Put
	for i, p := range a.parts() {
		key := head
		if i > 0 {
			key = part(head, i)
		}
		puts = append(puts, Put{Key: key, Value: encode(p)})
	}
	return puts
}

// errTorn says that the parts of an assignment were read while they were being written.
var errTorn = errors.New("assignment read while it was being written")

// DecodeAssignment puts a node's assignment together from its entries, sorted by key.
func DecodeAssignment(entries []Entry) (Assignment, error) {
	if len(entries) == 0 {
		return Assignment{}, nil
	}
	a, err := decode[Assignment]("an assignment", entries[0].Value)
	if err != nil {
		return a, err
	}
	if len(entries)-1 < a.Parts {
		return a, errTorn
	}
	for _, e := range entries[1 : 1+a.Parts] {
		more, err := decode[Assignment]("a part of an assignment", e.Value)
		if err != nil {
			return a, err
		}
		if more.Generation != a.Generation || more.Epoch != a.Epoch {
			return a, errTorn
		}
		a.Share, a.Paused = append(a.Share, more.Share...), append(a.Paused, more.Paused...)
		if a.Leaving == nil && len(more.Leaving) > 0 {
			a.Leaving = map[string]string{}
		}
		maps.Copy(a.Leaving, more.Leaving)
	}
	return a, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

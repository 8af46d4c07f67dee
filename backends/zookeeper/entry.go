package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
)

// entry is what is at a key. The znode of a key stays when the key is deleted, empty, so that its data version, which a multi compares,
// does not begin again; the sweep removes it when no request under way can be that old. An entry that is bound names its session, and is
// there while that session is.
type entry struct {
	znode
	key     string
	session string // "" when it is not bound
	value   []byte
}

// encode gives the data of a znode. It is never empty: no data means that the key is deleted.
func encode(session string, value []byte) []byte {
	data := make([]byte, 0, 2+len(session)+len(value))
	data = append(data, format, byte(len(session)))
	data = append(data, session...)
	return append(data, value...)
}

func decode(key string, z znode) (entry, error) {
	e := entry{znode: z, key: key}
	if !z.there || len(z.data) == 0 {
		return e, nil
	}
	if z.data[0] != format || len(z.data) < 2 || len(z.data) < 2+int(z.data[1]) {
		return e, fmt.Errorf("%w: the entry %q has format %d, this program knows format %d", backends.ErrFatal, key, z.data[0], format)
	}
	n := 2 + int(z.data[1])
	e.session, e.value = string(z.data[2:n]), z.data[n:]
	return e, nil
}

// deleted tells whether nothing is at the key, whatever its session.
func (e *entry) deleted() bool { return !e.there || len(e.data) == 0 }

// live tells whether a session is alive.
type live func(session string) bool

// present tells whether an entry is there.
func (e *entry) present(alive live) bool {
	return !e.deleted() && (e.session == "" || alive(e.session))
}

// fetch reads keys.
func (v via) fetch(ctx context.Context, d groupDir, keys []string) ([]entry, error) {
	paths := make([]string, len(keys))
	for i, key := range keys {
		_, paths[i] = d.where(key)
	}
	nodes, err := v.getAll(ctx, paths)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(keys))
	for i := range nodes {
		if entries[i], err = decode(keys[i], nodes[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// keysBelow lists the keys in some buckets that begin with one of the prefixes, deleted ones too.
func (v via) keysBelow(ctx context.Context, dirs, prefixes []string) ([]string, error) {
	paths, err := v.listAll(ctx, dirs)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, p := range paths {
		key, ok := unescape(path.Base(p))
		if ok && slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// folders lists the folders of a group when one of the prefixes needs that.
func (v via) folders(ctx context.Context, d groupDir, prefixes []string) ([]string, error) {
	if !slices.ContainsFunc(prefixes, func(p string) bool { return !strings.Contains(p, "/") }) {
		return nil, nil
	}
	return v.children(ctx, string(d)+"/e")
}

// bucketsOf are the buckets that may have keys with one of the prefixes.
func (v via) bucketsOf(ctx context.Context, d groupDir, prefixes []string) ([]string, error) {
	folders, err := v.folders(ctx, d, prefixes)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, p := range prefixes {
		dirs = append(dirs, d.below(p, folders)...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// few is up to how many sessions are asked for one by one.
const few = 4

// alive tells which of the sessions behind some entries are alive. It is asked after the entries were read: a session that is not there
// then, and had been, has ended for good.
func (v via) alive(ctx context.Context, d groupDir, entries []entry) (live, error) {
	there := map[string]bool{}
	for i := range entries {
		if s := entries[i].session; s != "" {
			there[s] = false
		}
	}
	if len(there) > few {
		names, err := v.children(ctx, string(d)+"/s")
		for _, name := range names {
			there[name] = true
		}
		return func(s string) bool { return there[s] }, err
	}
	var names, paths []string
	for name := range there {
		names = append(names, name)
		paths = append(paths, d.alive(name))
	}
	nodes, err := v.statAll(ctx, paths)
	for i := range nodes {
		there[names[i]] = nodes[i].there
	}
	return func(s string) bool { return there[s] }, err
}

// hasUnbound tells whether a group has an entry that is not bound.
func (v via) hasUnbound(ctx context.Context, d groupDir) (bool, error) {
	folders, err := v.children(ctx, string(d)+"/e")
	if err != nil {
		return false, err
	}
	slices.SortFunc(folders, func(a, b string) int { return strings.Compare(b, a) }) // "f" first: the settings are there
	found := errors.New("found")
	for _, folder := range folders {
		keys, err := v.keysBelow(ctx, d.below(folderPrefix(folder), []string{"f"}), []string{""})
		if err != nil {
			return false, err
		}
		err = each(len(keys), func(i int) error {
			es, err := v.fetch(ctx, d, keys[i:i+1])
			if err == nil && !es[0].deleted() && es[0].session == "" {
				err = found
			}
			return err
		})
		if errors.Is(err, found) {
			return true, nil
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}

// folderPrefix is a prefix that all keys in a folder have, and that leads to this folder.
func folderPrefix(folder string) string {
	name, _ := unescape(strings.TrimPrefix(folder, "d"))
	if strings.HasPrefix(folder, "d") {
		return name + "/"
	}
	return ""
}

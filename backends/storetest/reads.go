package storetest

import (
	"bytes"
	"slices"

	"github.com/rebalancer-go/rebalancer/backends"
)

var readCases = []testCase{
	{"ReadGivesKeysAndPrefixesSorted", nil, readSorted},
	{"ReadGivesNamesOnly", nil, readNamesOnly},
	{"ReadWorksAfterTheSessionEnded", nil, readAfterEnd},
	{"ReadTellsTheSessionBehindAnEntry", nil, readTellsSession},
	{"GroupsHaveKeySpacesOfTheirOwn", nil, groupsAreApart},
	{"GroupsListsThoseWithUnboundEntries", nil, groupsLists},
	{"ReadOfManyEntriesIsWhole", nil, readMany},
}

func readSorted(e *env) {
	h := e.lasting()
	for _, key := range []string{"b/2", "a", "b/1", "c", "b", "d"} {
		e.put(h, key, "value of "+key)
	}
	r := e.read(h, backends.ReadRequest{Keys: []string{"d", "b/1", "absent", "d"}, Prefixes: []string{"b/", "b"}})
	var got []string
	for _, entry := range r.Entries {
		got = append(got, entry.Key)
		if string(entry.Value) != "value of "+entry.Key || entry.Version <= 0 {
			e.Fatalf("entry %+v", entry)
		}
	}
	if want := []string{"b", "b/1", "b/2", "d"}; !slices.Equal(got, want) {
		e.Fatalf("read %q, want %q", got, want)
	}
	if len(r.Digests) != 2 || r.Digests["b/"].Count != 2 || r.Digests["b"].Count != 3 {
		e.Fatalf("digests %+v", r.Digests)
	}
	if got, want := e.names(h, ""), []string{"a", "b", "b/1", "b/2", "c", "d"}; !slices.Equal(got, want) {
		e.Fatalf("the whole group is %q, want %q", got, want)
	}
}

func readNamesOnly(e *env) {
	h := e.lasting()
	version := e.put(h, "k", "v")
	r := e.read(h, backends.ReadRequest{Prefixes: []string{""}, NamesOnly: true})
	if len(r.Entries) != 1 || len(r.Entries[0].Value) != 0 || r.Entries[0].Version != version {
		e.Fatalf("entries %+v", r.Entries)
	}
}

func readAfterEnd(e *env) {
	h := e.lasting()
	e.put(h, "free", "v")
	e.bind(h, "bound")
	if err := h.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	if got := e.names(h, ""); !slices.Equal(got, []string{"free"}) {
		e.Fatalf("read %q after the session ended", got)
	}
}

func readTellsSession(e *env) {
	h := e.lasting()
	e.bind(h, "bound")
	e.put(h, "free", "v")
	bound, free := e.get(h, "bound"), e.get(h, "free")
	if bound.Session != h.ID() || bound.Left == 0 || bound.Left > h.TTL() {
		e.Fatalf("bound entry %+v", bound)
	}
	if free.Session != "" || free.Left >= 0 {
		e.Fatalf("unbound entry %+v", free)
	}
}

func groupsAreApart(e *env) {
	a, b := e.sessionIn(e.store, "a"), e.sessionIn(e.store, "A")
	e.put(a, "k", "of a")
	if got := e.names(b, ""); len(got) != 0 {
		e.Fatalf("group A has %q of group a", got)
	}
	e.must(b, bindTxn("k", backends.Check{Key: "k"}))
	if got := e.get(a, "k"); string(got.Value) != "of a" {
		e.Fatalf("group a has %+v", got)
	}
	if err := b.Close(e.ctx); err != nil {
		e.Fatal(err)
	}
	if e.get(a, "k") == nil {
		e.Fatal("the end of a session took an entry of another group")
	}
}

func groupsLists(e *env) {
	names := []string{"é", "b", "B", "a/b", "a b ", "\xff"}
	for _, name := range names {
		h := e.sessionIn(e.store, name)
		e.put(h, "k", "v")
	}
	e.bind(e.sessionIn(e.store, "only bound"), "k")
	e.sessionIn(e.store, "only a session")
	was := e.sessionIn(e.store, "deleted")
	e.put(was, "k", "v")
	e.must(was, backends.Txn{Deletes: []string{"k"}})
	got, err := e.store.Groups(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		e.Fatalf("groups are %q, want %q", got, names)
	}
}

func readMany(e *env) {
	h := e.lasting()
	const n = 3000
	value := bytes.Repeat([]byte("v"), 200)
	var want []string
	for from := 0; from < n; from += 250 {
		e.renew(h, backends.RenewRequest{})
		var txns []backends.Txn
		for i := from; i < from+250; i++ {
			key := "many/" + string(rune('a'+i/250)) + "/" + string(rune(0x4e00+i))
			want = append(want, key)
			txns = append(txns, backends.Txn{Puts: []backends.Put{{Key: key, Value: value}}})
		}
		for _, r := range e.commit(h, txns...) {
			if r.Err != nil {
				e.Fatal(r.Err)
			}
		}
	}
	slices.Sort(want)
	r := e.read(h, backends.ReadRequest{Prefixes: []string{"many/"}})
	if len(r.Entries) != n || r.Digests["many/"] != backends.DigestOf(r.Entries) {
		e.Fatalf("read %d entries, digest %+v; want %d", len(r.Entries), r.Digests["many/"], n)
	}
	if got := e.names(h, "many/"); !slices.Equal(got, want) {
		e.Fatal("other keys, or another order, than was put")
	}
	named := e.read(h, backends.ReadRequest{Keys: want})
	if len(named.Entries) != n {
		e.Fatalf("read %d of %d named keys", len(named.Entries), n)
	}
}

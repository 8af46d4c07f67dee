package storetest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
)

var keyCases = []testCase{
	{"KeysAreBytes", nil, keysAreBytes},
	{"PrefixesAreBytes", nil, prefixesAreBytes},
	{"ValuesAreBytes", nil, valuesAreBytes},
	{"LongestKeyAndValueAreFine", nil, longest},
	{"InvalidRequestsApplyNothing", nil, invalidRequests},
}

// oddKeys are pairwise different as bytes, and alike to anything that folds, trims or normalises.
var oddKeys = []string{
	"key", "KEY", "Key", "key ", " key", "key\t", "key\n", "key\x00", "key\x00\x00", "\x00", " ", "  ", "%", "_", "%%", "k%", "k_y", `\`, `\%`, `k\`,
	"'", `"`, "`", "k'; --", "é", "e\u0301", "É", "ß", "ss", "ı", "i", "İ", "K", "k", "\u212a", "ﬁ", "fi", "\xff", "\xff\xff", "\xfe", "\xc3\x28",
	"0", "00", "1e0", "1", "01", "+1", "/", "//", "a/", "/a", ".", "..", "日本", "\U0001f600", "\ufeffkey", "\u200bkey", "true", "null", "NULL",
}

func keysAreBytes(e *env) {
	h := e.lasting()
	for _, key := range oddKeys {
		v := e.must(h, backends.Txn{Checks: []backends.Check{{Key: key}}, Puts: []backends.Put{{Key: key, Value: []byte(key)}}})
		if len(v) != 1 {
			e.Fatalf("versions %v of %q", v, key)
		}
	}
	e.renew(h, backends.RenewRequest{})
	want := slices.Sorted(slices.Values(oddKeys))
	if got := e.names(h, ""); !slices.Equal(got, want) {
		e.Fatalf("keys in the order of their bytes:\n got %q\nwant %q", got, want)
	}
	r := e.read(h, backends.ReadRequest{Keys: oddKeys})
	states := e.renew(h, backends.RenewRequest{Keys: oddKeys}).Keys
	if len(r.Entries) != len(oddKeys) || len(states) != len(oddKeys) {
		e.Fatalf("%d entries and %d states of %d keys", len(r.Entries), len(states), len(oddKeys))
	}
	for _, entry := range r.Entries {
		if string(entry.Value) != entry.Key || states[entry.Key].Version != entry.Version {
			e.Fatalf("%q holds %q", entry.Key, entry.Value)
		}
	}
	for i, key := range want {
		e.must(h, backends.Txn{Deletes: []string{key}})
		if got := e.names(h, ""); !slices.Equal(got, want[i+1:]) {
			e.Fatalf("after the delete of %q: %q", key, got)
		}
		e.renew(h, backends.RenewRequest{})
	}
}

func prefixesAreBytes(e *env) {
	h := e.lasting()
	keys := append(slices.Clone(oddKeys), "\xff\xff\xff", "a\xff", "a\xff\xff", "b", "%a", "_a", `\a`, "ab")
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, key := range keys {
		e.put(h, key, "v")
	}
	e.renew(h, backends.RenewRequest{})
	for _, prefix := range append(slices.Clone(keys), "a\xff\xff\xff", "nothing", strings.Repeat("x", backends.MaxKey+1)) {
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		if got := e.names(h, prefix); !slices.Equal(got, want) {
			e.Fatalf("below %q: %q, want %q", prefix, got, want)
		}
		if got := e.renew(h, backends.RenewRequest{Digests: []string{prefix}}).Digests[prefix]; got.Count != len(want) {
			e.Fatalf("digest of %q counts %d, want %d", prefix, got.Count, len(want))
		}
	}
}

func valuesAreBytes(e *env) {
	h := e.lasting()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, value := range [][]byte{nil, {}, {0}, []byte(" "), []byte("text é"), all, {0xff, 0xfe}} {
		given := bytes.Clone(value)
		e.must(h, backends.Txn{Puts: []backends.Put{{Key: "k", Value: given}}})
		for i := range given {
			given[i] = 'x' // the store has its own copy
		}
		got := e.get(h, "k")
		if !bytes.Equal(got.Value, value) {
			e.Fatalf("put %q, got %q", value, got.Value)
		}
		for i := range got.Value {
			got.Value[i] = 'y'
		}
		if again := e.get(h, "k"); !bytes.Equal(again.Value, value) {
			e.Fatalf("put %q, got %q the second time", value, again.Value)
		}
	}
}

func longest(e *env) {
	long := strings.Repeat("k", backends.MaxKey)
	other := long[:backends.MaxKey-1] + "l"
	value := bytes.Repeat([]byte{0xff}, backends.MaxValue)
	h := e.sessionIn(e.store, long)
	e.put(h, long, "v")
	e.must(h, backends.Txn{Puts: []backends.Put{{Key: other, Value: value}}})
	if got := e.get(h, other); !bytes.Equal(got.Value, value) {
		e.Fatalf("the value came back with %d bytes", len(got.Value))
	}
	if got := e.names(h, long[:backends.MaxKey-1]); !slices.Equal(got, []string{long, other}) {
		e.Fatalf("%d keys", len(got))
	}
}

func invalidRequests(e *env) {
	h := e.lasting()
	long := strings.Repeat("k", backends.MaxKey+1)
	big := make([]byte, backends.MaxValue+1)
	put := func(key string, value []byte) backends.Txn {
		return backends.Txn{Puts: []backends.Put{{Key: key, Value: value}}}
	}
	for name, bad := range map[string]backends.Txn{
		"an empty key":        put("", nil),
		"a key too long":      put(long, nil),
		"a value too long":    put("k", big),
		"a delete too long":   {Deletes: []string{long}},
		"a check too long":    {Checks: []backends.Check{{Key: long}}},
		"a negative version":  {Checks: []backends.Check{{Key: "k", Version: -1}}},
		"two puts of one key": {Puts: []backends.Put{{Key: "k"}, {Key: "k"}}},
		"a put and a delete":  {Puts: []backends.Put{{Key: "k"}}, Deletes: []string{"k"}},
		"two deletes":         {Deletes: []string{"k", "k"}},
		"a negative grace":    {Grace: -1},
	} {
		_, err := h.Commit(e.ctx, backends.CommitRequest{Incarnation: h.Opened().Incarnation, Txns: []backends.Txn{put("good", nil), bad}})
		e.wantErr(name, err, backends.ErrInvalid)
	}
	if got := e.names(h, ""); len(got) != 0 {
		e.Fatalf("invalid requests left %q", got)
	}
	for _, key := range []string{"", long} {
		_, err := h.Read(e.ctx, backends.ReadRequest{Keys: []string{key}})
		e.wantErr("a read of a bad key", err, backends.ErrInvalid)
		_, err = h.Renew(e.ctx, backends.RenewRequest{Incarnation: h.Opened().Incarnation, Keys: []string{key}})
		e.wantErr("a renewal with a bad key", err, backends.ErrInvalid)
	}
	e.must(h, backends.Txn{Checks: []backends.Check{{Key: "k"}, {Key: "k"}}, Puts: []backends.Put{{Key: "k"}}}) // checks may be doubled
}

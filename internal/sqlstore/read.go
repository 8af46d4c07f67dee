package sqlstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/internal/storereq"
)

func (s *session) Read(ctx context.Context, r backends.ReadRequest) (backends.ReadReply, error) {
	if err := storereq.Keys(r.Keys); err != nil {
		return backends.ReadReply{}, err
	}
	var t *Tx
	var reply backends.ReadReply
	var found map[string]backends.Entry
	err := s.base.Read(ctx, func(tx *Tx) error {
		t, found = tx, map[string]backends.Entry{}
		reply.Digests = make(map[string]backends.Digest, len(r.Prefixes))
		for _, prefix := range r.Prefixes {
			reply.Digests[prefix] = backends.Digest{Left: -1}
			t.readPrefix(s.group, prefix, r.NamesOnly, func(e backends.Entry) {
				d := reply.Digests[prefix]
				d.Add(e.Key, e.Version, e.Left)
				reply.Digests[prefix] = d
				found[e.Key] = e
			})
		}
		t.readKeys(s.group, r.Keys, r.NamesOnly, func(e backends.Entry) { found[e.Key] = e })
		return nil
	})
	if err != nil {
		return backends.ReadReply{}, err
	}
	reply.Stamp = t.stamp()
	for _, key := range slices.Sorted(maps.Keys(found)) {
		reply.Entries = append(reply.Entries, found[key])
	}
	return reply, nil
}

// live selects the live ones of some entries.
func live(from string, names bool) string {
	value := "e.value"
	if names {
		value = "NULL"
	}
	return `SELECT e.name, e.version, e.session, s.expires, ` + value +
		` FROM ` + from + ` e LEFT JOIN {t}sessions s ON s.id = e.session WHERE e.gone = 0 AND (e.session = ? OR s.expires > {now})`
}

// readPrefix queues a read of the live entries below a prefix, in order.
func (t *Tx) readPrefix(group, prefix string, names bool, f func(backends.Entry)) {
	s := Statement{SQL: live("{t}entries", names) + ` AND e.grp = ? AND e.name >= ?`, Args: []any{nobody(), []byte(group), []byte(prefix)}, Row: t.entry(f)}
	if end := after(prefix); end != nil {
		s.SQL += ` AND e.name < ?`
		s.Args = append(s.Args, end)
	}
	s.SQL += ` ORDER BY e.name`
	t.Add(s)
}

// after is the least name that is greater than all with the prefix; nil when there is none.
func after(prefix string) []byte {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return nil
	}
	end[len(end)-1]++
	return end
}

// readKeys queues a read of the live entries of these keys, in any order.
func (t *Tx) readKeys(group string, keys []string, names bool, f func(backends.Entry)) {
	for chunk := range slices.Chunk(keys, t.Dialect.mostKeys()) {
		list := make([][]byte, len(chunk))
		for i, key := range chunk {
			list[i] = []byte(key)
		}
		t.Add(Statement{SQL: live("{named}", names), Args: []any{[]byte(group), list, nobody()}, Row: t.entry(f)})
	}
}

func (t *Tx) entry(f func(backends.Entry)) func(Scan) error {
	return func(scan Scan) error {
		var name, session, value []byte
		var expires int64
		e := backends.Entry{Left: -1}
		if err := scan(&name, &e.Version, &session, &expires, &value); err != nil {
			return err
		}
		e.Key, e.Session, e.Value = string(name), string(session), value
		if e.Session != "" {
			e.Left = time.Duration(expires-t.Now) * time.Microsecond
		}
		f(e)
		return nil
	}
}

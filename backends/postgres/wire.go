package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// Types of arguments, as PostgreSQL numbers them.
const (
	oidBytea      = 17
	oidInt8       = 20
	oidText       = 25
	oidByteaArray = 1001
	oidInt8Array  = 1016
)

// send carries out statements in one round trip, in the extended protocol. answered is the number of statements whose whole answer arrived: if
// it is less than all, err is not nil. An error of a Row or Done comes back after all was read, as a sqlstore.Refused. What k knows is
// prepared is used, and what may be is prepared on the way; nil: nothing, so that it works through a pooler.
func send(ctx context.Context, c *pgconn.PgConn, k *known, d *sqlstore.Dialect, ss []sqlstore.Statement) (answered int, err error) {
	var batch pgconn.Batch
	var names []string // of what is prepared, and "" for a statement
	for _, s := range ss {
		text, args := d.Render(s)
		values, oids, formats, err := encode(args)
		if err != nil {
			return 0, err
		}
		name := k.name(&s, text)
		switch {
		case name == "":
			batch.ExecParams(text, values, oids, formats, []int16{1})
		case !k.prepared[name]:
			if !slices.Contains(names, name) {
				batch.ExecParams(prepare(name, text, oids), nil, nil, nil, nil)
				names = append(names, name)
			}
			fallthrough
		default:
			batch.ExecPrepared(name, values, formats, []int16{1})
		}
		names = append(names, "")
	}
	if c.IsClosed() { // not left to pgconn.SafeToRetry, which also says so of connections that break while the answers are read
		return 0, errUnsent
	}
	return receive(c.ExecBatch(ctx, &batch), k, names, ss)
}

// errUnsent says that nothing was sent.
var errUnsent = errors.New("the connection is closed, and nothing was sent")

// receive reads the answers.
func receive(results *pgconn.MultiResultReader, k *known, names []string, ss []sqlstore.Statement) (answered int, err error) {
	var bad error
	for _, name := range names {
		if !results.NextResult() {
			break
		}
		r, s := results.ResultReader(), sqlstore.Statement{}
		if name == "" {
			s = ss[answered]
		}
		for r.NextRow() {
			if s.Row != nil && bad == nil {
				values := r.Values()
				bad = s.Row(func(dest ...any) error { return decode(values, dest) })
			}
		}
		tag, err := r.Close()
		if err != nil {
			break // results has it too
		}
		if name != "" {
			k.prepared[name] = true
			continue
		}
		if s.Done != nil && bad == nil {
			bad = s.Done(tag.RowsAffected())
		}
		answered++
	}
	if err := results.Close(); err != nil {
		return answered, err
	}
	if answered < len(ss) {
		return answered, fmt.Errorf("the server answered %d of %d statements", answered, len(ss))
	}
	if bad != nil {
		return answered, sqlstore.Refuse(bad)
	}
	return answered, nil
}

func encode(args []any) (values [][]byte, oids []uint32, formats []int16, err error) {
	for _, a := range args {
		switch a := a.(type) {
		case int64:
			values, oids = append(values, binary.BigEndian.AppendUint64(nil, uint64(a))), append(oids, oidInt8)
		case string:
			values, oids = append(values, []byte(a)), append(oids, oidText)
		case []byte:
			if a == nil {
				a = []byte{} // nil would be NULL
			}
			values, oids = append(values, a), append(oids, oidBytea)
		case [][]byte:
			values, oids = append(values, encodeArray(oidBytea, a)), append(oids, oidByteaArray)
		case []int64:
			list := make([][]byte, len(a))
			for i, n := range a {
				list[i] = binary.BigEndian.AppendUint64(nil, uint64(n))
			}
			values, oids = append(values, encodeArray(oidInt8, list)), append(oids, oidInt8Array)
		default:
			return nil, nil, nil, fmt.Errorf("an argument of type %T", a)
		}
		formats = append(formats, 1)
	}
	return values, oids, formats, nil
}

func encodeArray(of uint32, list [][]byte) []byte {
	dimensions := uint32(1)
	if len(list) == 0 {
		dimensions = 0
	}
	be := binary.BigEndian
	b := be.AppendUint32(nil, dimensions)
	b = be.AppendUint32(b, 0) // no NULL among them
	b = be.AppendUint32(b, of)
	if dimensions == 0 {
		return b
	}
	b = be.AppendUint32(b, uint32(len(list)))
	b = be.AppendUint32(b, 1) // the first has number 1
	for _, e := range list {
		b = append(be.AppendUint32(b, uint32(len(e))), e...)
	}
	return b
}

func decode(values [][]byte, dest []any) error {
	if len(values) != len(dest) {
		return fmt.Errorf("%d columns, %d wanted", len(values), len(dest))
	}
	for i, d := range dest {
		v := values[i]
		switch d := d.(type) {
		case *[]byte:
			*d = append([]byte(nil), v...)
		case *string:
			*d = string(v)
		case *int64:
			n, err := integer(v)
			if err != nil {
				return err
			}
			*d = n
		default:
			return fmt.Errorf("a column cannot be read as %T", d)
		}
	}
	return nil
}

func integer(v []byte) (int64, error) {
	switch len(v) {
	case 0: // NULL
		return 0, nil
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v))), nil
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v))), nil
	case 8:
		return int64(binary.BigEndian.Uint64(v)), nil
	}
	return 0, fmt.Errorf("a number of %d bytes", len(v))
}

package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/sqlstore"
)

// mostArgs is how many arguments a call may have; the server's limit is 2100.
const mostArgs = 2000

// settings are said in each batch, since a procedure's end takes them back: an error undoes the whole transaction, and no wait for a lock is
// without end.
const settings = `SET NOCOUNT ON; SET XACT_ABORT ON; SET LOCK_TIMEOUT ` + patience + `;`

// patience is how long one statement waits for a lock, in ms.
const patience = `5000`

// batch is what is sent in one call. It is answered by one set of rows for each statement that has a Row or a Done.
type batch struct {
	d       *sqlstore.Dialect
	text    strings.Builder
	args    []any
	answers []answer
}

// answer takes one set of rows.
type answer func(scan sqlstore.Scan) error

func (b *batch) say(text string) { b.text.WriteString(text + "\n") }

// arg adds an argument and gives its name.
func (b *batch) arg(v any) string {
	b.args = append(b.args, v)
	return "@p" + strconv.Itoa(len(b.args))
}

// add renders a statement.
func (b *batch) add(s sqlstore.Statement) {
	d, before := *b.d, len(b.args)
	d.Mark = func(n int) string { return "@p" + strconv.Itoa(before+n) }
	text, args := d.Render(padded(s))
	for _, a := range args {
		if raw, ok := a.([]byte); ok {
			a = pack(raw)
		}
		b.args = append(b.args, a)
	}
	b.say(text + ";")
	switch {
	case s.Row != nil:
		b.answers = append(b.answers, func(scan sqlstore.Scan) error { return s.Row(unpacking(scan)) })
	case s.Done != nil:
		b.say("SELECT CONVERT(bigint, @@ROWCOUNT);")
		b.answers = append(b.answers, func(scan sqlstore.Scan) error {
			var n int64
			if err := scan(&n); err != nil {
				return err
			}
			return s.Done(n)
		})
	}
}

// padded repeats the last of a list, so that the server sees few different texts and keeps their plans.
func padded(s sqlstore.Statement) sqlstore.Statement {
	args := make([]any, len(s.Args))
	for i, a := range s.Args {
		if list, ok := a.([][]byte); ok && len(list) > 0 {
			whole := append(make([][]byte, 0, 2*len(list)), list...)
			for want := 1 << bits.Len(uint(len(list)-1)); len(whole) < want; {
				whole = append(whole, list[len(list)-1])
			}
			a = whole
		}
		args[i] = a
	}
	s.Args = args
	return s
}

// width is how many arguments a statement has at most.
func width(s sqlstore.Statement) (n int) {
	for _, a := range s.Args {
		if list, ok := a.([][]byte); ok {
			n += 2 * len(list)
			continue
		}
		n++
	}
	return n
}

func unpacking(scan sqlstore.Scan) sqlstore.Scan {
	return func(dest ...any) error {
		if err := scan(dest...); err != nil {
			return err
		}
		for _, d := range dest {
			b, ok := d.(*[]byte)
			if !ok || *b == nil {
				continue
			}
			raw, err := unpack(*b)
			if err != nil {
				return err
			}
			*b = raw
		}
		return nil
	}
}

// errCut: the answer is not whole. What it answers may have been carried out.
var errCut = errors.New("the server's answer is not complete")

// send carries the batch out. The answer is read to its end in any case, so that an error at its end is not lost.
func (b *batch) send(ctx context.Context, c *sql.Conn) error {
	rows, err := c.QueryContext(ctx, b.text.String(), b.args...)
	if err != nil {
		return err
	}
	scan := sqlstore.Scanner(rows)
	var bad error
	sets, more := 0, true
	for ; more; more = rows.NextResultSet() {
		if columns, err := rows.Columns(); err == nil && len(columns) > 0 { // a batch that failed has none
			sets++
		}
		for rows.Next() {
			if bad == nil && sets <= len(b.answers) {
				bad = b.answers[sets-1](scan)
			}
		}
	}
	err = rows.Err()
	if closing := rows.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return err
	case errors.Is(bad, sqlstore.ErrRecord):
		return sqlstore.ErrRecord
	case bad != nil:
		return sqlstore.Refuse(bad)
	case sets != len(b.answers):
		return fmt.Errorf("%w: %d of %d sets of rows", errCut, sets, len(b.answers))
	}
	return nil
}

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
)

// Querier is a connection or a transaction of database/sql.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Run carries out statements one after the other, for databases that are reached through database/sql.
func Run(ctx context.Context, q Querier, d *Dialect, ss []Statement) error {
	for _, s := range ss {
		text, args := d.Render(s)
		var err error
		if s.Row != nil {
			err = query(ctx, q, s.Row, text, args)
		} else {
			err = exec(ctx, q, s.Done, text, args)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func exec(ctx context.Context, q Querier, done func(int64) error, text string, args []any) error {
	r, err := q.ExecContext(ctx, text, args...)
	if err != nil || done == nil {
		return err
	}
	n, err := r.RowsAffected()
	if err != nil {
		return err
	}
	return done(n)
}

func query(ctx context.Context, q Querier, row func(Scan) error, text string, args []any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	scan := Scanner(rows)
	for rows.Next() {
		if err := row(scan); err != nil {
			_ = rows.Close()
			return err
		}
	}
	if err := rows.Err(); err != nil {
		_ = rows.Close()
		return err
	}
	return rows.Close()
}

// Scanner reads the columns of the row that rows is at.
func Scanner(rows *sql.Rows) Scan {
	return func(dest ...any) error { return scanSQL(rows, dest) }
}

// scanSQL lets NULL be zero.
func scanSQL(rows *sql.Rows, dest []any) error {
	var numbers []sql.NullInt64
	var texts []sql.NullString
	numbers, texts = make([]sql.NullInt64, len(dest)), make([]sql.NullString, len(dest))
	into := make([]any, len(dest))
	for i, d := range dest {
		switch d.(type) {
		case *int64:
			into[i] = &numbers[i]
		case *string:
			into[i] = &texts[i]
		case *[]byte:
			into[i] = d
		default:
			return fmt.Errorf("a column cannot be read as %T", d)
		}
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			*d = numbers[i].Int64
		case *string:
			*d = texts[i].String
		}
	}
	return nil
}

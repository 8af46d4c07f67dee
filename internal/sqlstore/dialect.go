package sqlstore

import (
	"cmp"
	"strconv"
	"strings"
)

// Dialect is how a database says what differs. The statements are written with ? for an argument, IN (??) for a list, and
// {words}, which are the fields of this type. The zero value is for a database whose transactions that write run one after the other.
type Dialect struct {
	Tables      string // {t} stands before the name of each table
	Now         string // {now}: the clock as it was when the transaction began, in µs
	Wall        string // {wall}: wall time in µs, drawn when the statement runs, for versions
	Incarnation string // {incarnation}: the live one
	Update      string // {update}: the end of a SELECT that locks its rows; without it such statements are left out
	Share       string // {share}: the end of a SELECT that keeps others from changing its rows; empty: they are updated instead
	Skip        string // {skip}: added to {update}, passes over rows that are locked
	Arrays      bool   // arguments are $1, $2, …, and a list is one argument, an array; else a list is as many arguments as it has
	MostKeys    int    // in one list; 0: 100
	// Mark stands for the n-th argument of a statement, from 1 on, where Arrays is false; nil: ?.
	Mark func(n int) string
	// Named is {named}: the entries of a group with some names, ? and then IN (??) or ?, as a table; empty: named.
	Named string
	// Lock orders the writers of these keys, which are sorted; nil where they are in order anyway. It may leave rows
	// of version 0 for the keys that are Absent: Placeholders says that it does.
	Lock         func(group string, keys []Key) []Statement
	Placeholders bool
	// KeysHold: Lock is enough to keep a commit in order with those who end the sessions behind its keys, because nobody may bind a key or take
	// one over without it; such sessions are not held then, only the own one.
	KeysHold bool
	// UpdateRows changes many rows in one statement, whose Done says AllChanged; nil: they are changed one by one.
	UpdateRows func(group string, rows []Row) Statement
	// Order orders those who open or supersede sessions of a node; nil where they are in order anyway.
	Order func(group, node string) []Statement
}

// Key is a key that a commit depends on.
type Key struct {
	Name   string
	Write  bool // it is put or deleted; else only checked
	Absent bool // its absence matters
}

// Row is what an entry becomes, if it still has the version that it had.
type Row struct {
	Name, Value, Session []byte
	Was, Version         int64
	Gone                 int64 // 1: deleted
}

// named is the entries of a group with some names.
const named = `(SELECT * FROM {t}entries WHERE grp = ? AND name IN (??))`

// Literal is a string as SQL.
func Literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (d *Dialect) mostKeys() int {
	if d.MostKeys == 0 {
		return 100
	}
	return d.MostKeys
}

func (d *Dialect) mark(n int) string {
	if d.Mark == nil {
		return "?"
	}
	return d.Mark(n)
}

// Render gives the statement as the database takes it.
func (d *Dialect) Render(s Statement) (string, []any) {
	var b strings.Builder
	args, next := make([]any, 0, len(s.Args)), 0
	argument := func(list bool) {
		a := s.Args[next]
		next++
		switch keys, _ := a.([][]byte); {
		case d.Arrays:
			args = append(args, a)
			b.WriteString("$" + strconv.Itoa(len(args)))
		case list:
			for i, key := range keys {
				if i > 0 {
					b.WriteByte(',')
				}
				args = append(args, key)
				b.WriteString(d.mark(len(args)))
			}
		default:
			args = append(args, a)
			b.WriteString(d.mark(len(args)))
		}
	}
	for rest := s.SQL; rest != ""; {
		i := strings.IndexAny(rest, "?{I")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		switch {
		case strings.HasPrefix(rest, "IN (??)"):
			rest = rest[len("IN (??)"):]
			open, end := "IN (", ")"
			if d.Arrays {
				open = "= ANY("
			}
			b.WriteString(open)
			argument(true)
			b.WriteString(end)
		case rest[0] == '?':
			rest = rest[1:]
			argument(false)
		case strings.HasPrefix(rest, "{named}"):
			rest = cmp.Or(d.Named, named) + rest[len("{named}"):]
		case rest[0] == '{':
			word, after, _ := strings.Cut(rest[1:], "}")
			b.WriteString(d.word(word))
			rest = after
		default:
			b.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	return b.String(), args
}

func (d *Dialect) word(w string) string {
	switch w {
	case "t":
		return d.Tables
	case "now":
		return d.Now
	case "wall":
		return d.Wall
	case "incarnation":
		return d.Incarnation
	case "update":
		return d.Update
	case "share":
		return d.Share
	case "skip":
		return d.Skip
	}
	return "{" + w + "}" // the database will say that it is wrong
}

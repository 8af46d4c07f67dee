package sqlstore

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
)

func TestRender(t *testing.T) {
	t.Parallel()
	s := Statement{
		SQL:  `SELECT {now}, 'I' FROM {t}entries WHERE grp = ? AND name IN (??) AND id IN (SELECT 1) AND x < {wall} - ? {update} {skip}{other}`,
		Args: []any{[]byte("g"), [][]byte{[]byte("a"), []byte("b")}, int64(7)},
	}
	plain := Dialect{Now: "12", Wall: "13"}
	text, args := plain.Render(s)
	if want := `SELECT 12, 'I' FROM entries WHERE grp = ? AND name IN (?,?) AND id IN (SELECT 1) AND x < 13 - ?  {other}`; text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
	if want := []any{[]byte("g"), []byte("a"), []byte("b"), int64(7)}; !reflect.DeepEqual(args, want) {
		t.Errorf("arguments %v, want %v", args, want)
	}
	arrays := Dialect{Tables: `"s".`, Now: "now", Wall: "wall", Update: "FOR UPDATE", Skip: "SKIP LOCKED", Arrays: true}
	text, args = arrays.Render(s)
	if want := `SELECT now, 'I' FROM "s".entries WHERE grp = $1 AND name = ANY($2) AND id IN (SELECT 1) AND x < wall - $3 FOR UPDATE SKIP LOCKED{other}`; text != want {
		t.Errorf("\n got %s\nwant %s", text, want)
	}
	if !reflect.DeepEqual(args, s.Args) {
		t.Errorf("arguments %v, want %v", args, s.Args)
	}
}

func TestLiteral(t *testing.T) {
	t.Parallel()
	if got := Literal(`a'b''`); got != `'a''b'''''` {
		t.Error(got)
	}
}

// What was not changed is a race, whose commit is undone and tried again.
func TestAllChanged(t *testing.T) {
	t.Parallel()
	done := AllChanged(2)
	if err := done(2); err != nil {
		t.Error(err)
	}
	for _, n := range []int64{0, 1, 3} {
		if err := fmt.Errorf("wrapped: %w", done(n)); !errors.Is(err, errRaced) {
			t.Errorf("%d rows of 2: %v", n, err)
		}
	}
}

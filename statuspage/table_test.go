package statuspage

import (
	"fmt"
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var tab table
	rows := func(names ...string) (all []named) {
		for _, n := range names {
			all = append(all, named{n[:1], n})
		}
		return all
	}
	step := func(version int64, want bool, names ...string) {
		t.Helper()
		if changed, err := tab.update(version, rows(names...)); err != nil || changed != want {
			t.Fatalf("version %d: changed %v, %v", version, changed, err)
		}
	}
	since := func(version int64) string {
		rows, gone := tab.since(version)
		return fmt.Sprintf("%s %v", rows, gone)
	}
	step(1, true, "a1", "b1")
	step(2, false, "b1", "a1")
	step(3, true, "a1", "b2", "c1")
	step(4, true, "b2", "c1")
	for version, want := range map[int64]string{0: `["b2" "c1"] []`, 1: `["b2" "c1"] [a]`, 3: `[] [a]`, 4: `[] []`} {
		if got := since(version); got != want {
			t.Errorf("since %d: %s, want %s", version, got, want)
		}
	}
	step(5, true, "a1", "b2", "c1") // it comes back
	if got := since(1); got != `["a1" "b2" "c1"] []` {
		t.Errorf("%s", got)
	}
}

func TestTableForgetsNamesThatAreTooMany(t *testing.T) {
	t.Parallel()
	var tab table
	var rows []named
	for i := range maxGone + 1 {
		rows = append(rows, named{fmt.Sprint(i), i})
	}
	if _, err := tab.update(1, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.update(2, nil); err != nil || tab.floor != 2 || len(tab.gone) != 0 {
		t.Errorf("floor %d, %d gone: %v", tab.floor, len(tab.gone), err)
	}
	if _, err := tab.update(3, []named{{"x", make(chan int)}}); err == nil || !slices.Equal(tab.names(), nil) {
		t.Errorf("%v %v", err, tab.names())
	}
}

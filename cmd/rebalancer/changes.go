package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rebalancer-go/rebalancer/admin"
)

// changesOf says what is other in a group than it was, a line for each thing. How long sessions live on is no change.
func changesOf(a, b admin.Description) []string {
	var out []string
	changed := func(what, from, to string) {
		if from != to {
			out = append(out, fmt.Sprintf("%s: %s → %s", what, orDash(from), orDash(to)))
		}
	}
	changed("coordinator", a.Coordinator, b.Coordinator)
	changed("generation", fmt.Sprint(a.Generation), fmt.Sprint(b.Generation))
	changed("barrier", a.Barrier, b.Barrier)
	changed("group paused", a.Paused, b.Paused)
	changed("resources that wait for their turn to move", fmt.Sprint(a.Pending), fmt.Sprint(b.Pending))
	changed("settings", settingsText(a), settingsText(b))
	changed("drained", strings.Join(a.Drained, ", "), strings.Join(b.Drained, ", "))
	changed("reserved", reservedText(a), reservedText(b))
	both(a.Nodes, b.Nodes, func(n admin.Node) string { return n.Name }, func(name string, was, is *admin.Node) {
		changed("node "+quoteIfOdd(name), nodeText(was), nodeText(is))
	})
	both(a.Resources, b.Resources, func(r admin.Resource) string { return r.Name }, func(name string, was, is *admin.Resource) {
		changed("resource "+quoteIfOdd(name), resourceText(was), resourceText(is))
	})
	return out
}

// both visits what stands in either list, in the order of the names; nil: it does not stand there.
func both[T any](a, b []T, name func(T) string, each func(name string, was, is *T)) {
	find := func(list []T, n string) *T {
		i, ok := slices.BinarySearchFunc(list, n, func(x T, n string) int { return cmp.Compare(name(x), n) })
		if !ok {
			return nil
		}
		return &list[i]
	}
	sorted := func(list []T) []T {
		return slices.SortedFunc(slices.Values(list), func(x, y T) int { return cmp.Compare(name(x), name(y)) })
	}
	a, b = sorted(a), sorted(b)
	var names []string
	for _, x := range slices.Concat(a, b) {
		names = append(names, name(x))
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		each(n, find(a, n), find(b, n))
	}
}

func settingsText(d admin.Description) string {
	return fmt.Sprintf("%s, ttl %v, %s barrier, max active %d, fail-back %v, max moving %d, per node %d",
		d.Origin, d.TTL, d.Settings.Barrier, d.MaxActive, d.FailBack, d.MaxMoving, d.MaxMovingPerNode)
}

func reservedText(d admin.Description) string {
	var all []string
	for _, r := range d.Reserved {
		all = append(all, fmt.Sprintf("%s for %s", countOf(len(r.Resources), "resource"), r.Node))
	}
	return strings.Join(all, ", ")
}

func nodeText(n *admin.Node) string {
	if n == nil {
		return ""
	}
	text := fmt.Sprintf("holds %d, assigned %d, priority %d, weight %d", n.Holds, n.Assigned, n.Priority, n.Weight)
	if n.Max > 0 {
		text += fmt.Sprintf(", max %d", n.Max)
	}
	if more := notes(*n); more != "" {
		text += ", " + more
	}
	return text
}

func resourceText(r *admin.Resource) string {
	if r == nil {
		return ""
	}
	text := r.State
	if r.Owner != "" {
		text += fmt.Sprintf(" by %s, fence %d", r.Owner, r.Fence)
	}
	if r.Next != "" {
		text += ", next " + r.Next
	}
	failed := ""
	if r.LastError != "" {
		failed = "last error " + lastError(*r)
	}
	for _, more := range []string{resourceNotes(*r), oneLine(r.Reason), failed} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

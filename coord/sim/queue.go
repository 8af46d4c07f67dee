package sim

import "container/heap"

// queued is something that will happen. What is due at the same time happens in the order in which it was put in.
type queued struct {
	at  vtime
	seq int64
	do  func()
}

// queue holds what will happen, the nearest first.
type queue struct {
	items []queued
	seq   int64
}

func (q *queue) Len() int { return len(q.items) }
func (q *queue) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue) Push(x any)    { q.items = append(q.items, x.(queued)) }
func (q *queue) Pop() any {
	x := q.items[len(q.items)-1]
	q.items[len(q.items)-1] = queued{}
	q.items = q.items[:len(q.items)-1]
	return x
}

func (q *queue) add(at vtime, do func()) {
	q.seq++
	heap.Push(q, queued{at: at, seq: q.seq, do: do})
}

func (q *queue) next() queued { return heap.Pop(q).(queued) }

package coord

import "container/heap"

// nameQueue is a set of names from which the smallest are taken first. Adding and taking cost the logarithm of its size: a
// group of many resources empties it in many batches, each of which must not sort all that is left.
type nameQueue struct {
	set  map[string]bool
	heap nameHeap // also has names that were removed from the set
}

func (q *nameQueue) len() int { return len(q.set) }

func (q *nameQueue) add(name string) {
	if q.set[name] {
		return
	}
	if q.set == nil {
		q.set = map[string]bool{}
	}
	q.set[name] = true
	heap.Push(&q.heap, name)
}

func (q *nameQueue) remove(name string) { delete(q.set, name) }

// take removes the smallest name; "" and false when there is none.
func (q *nameQueue) take() (name string, ok bool) {
	for len(q.heap) > 0 {
		name = heap.Pop(&q.heap).(string)
		if q.set[name] {
			delete(q.set, name)
			return name, true
		}
	}
	return "", false
}

type nameHeap []string

func (h nameHeap) Len() int           { return len(h) }
func (h nameHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h nameHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nameHeap) Push(x any)        { *h = append(*h, x.(string)) }
func (h *nameHeap) Pop() any {
	old := *h
	name := old[len(old)-1]
	old[len(old)-1] = ""
	*h = old[:len(old)-1]
	return name
}

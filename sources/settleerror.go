package sources

import (
	"fmt"
	"sort"
)

func settleErrorIndexes(e *SettleError) []int {
	idx := make([]int, 0, len(e.Failed))
	for i := range e.Failed {
		idx = append(idx, i)
	}
	sort.Ints(idx)
	return idx
}

func settleErrorText(e *SettleError) string {
	idx := settleErrorIndexes(e)
	if len(idx) == 0 {
		return "no settlement failed"
	}
	return fmt.Sprintf("%d settlements failed, the first (index %d): %v", len(idx), idx[0], e.Failed[idx[0]])
}

func settleErrorList(e *SettleError) []error {
	idx := settleErrorIndexes(e)
	errs := make([]error, len(idx))
	for n, i := range idx {
		errs[n] = e.Failed[i]
	}
	return errs
}

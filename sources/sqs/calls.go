package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// parallelCalls is how many calls of one kind a Settle makes side by side.
const parallelCalls = 8

// change is a visibility to set.
type change struct {
	entry      *entry
	receipt    string
	visibility time.Duration
}

// refusal is the answer of SQS that the receipt of an entry is not good any more, or never was: to ask again is useless.
type refusal struct{ code, message string }

func (e *refusal) Error() string { return e.code + ": " + e.message }

// entryError is what SQS says about one entry of a batch. Also what is throttled, or lacks a right, is called the sender's fault.
func entryError(e types.BatchResultErrorEntry) error {
	if e.SenderFault && slices.Contains(finalCodes, strings.TrimPrefix(aws.ToString(e.Code), codePrefixOld)) {
		return &refusal{aws.ToString(e.Code), aws.ToString(e.Message)}
	}
	return fmt.Errorf("%s: %s", aws.ToString(e.Code), aws.ToString(e.Message))
}

// inBatches makes calls for what lies between two cuts, some side by side, and returns one error, or nil, for each of what was cut.
func inBatches(cuts []int, call func(from, to int, failed func(i int, err error)) error) []error {
	errs := make([]error, cuts[len(cuts)-1])
	one := func(from, to int) {
		if err := call(from, to, func(i int, err error) { errs[i] = err }); err != nil {
			for i := from; i < to; i++ {
				errs[i] = err
			}
		}
	}
	if len(cuts) == 2 {
		one(cuts[0], cuts[1])
		return errs
	}
	slots := make(chan struct{}, parallelCalls)
	var wg sync.WaitGroup
	for i := range len(cuts) - 1 {
		slots <- struct{}{}
		wg.Go(func() { one(cuts[i], cuts[i+1]); <-slots })
	}
	wg.Wait()
	return errs
}

// cut cuts n into as many as one call takes.
func cut(n int) []int {
	cuts := []int{0}
	for at := 0; at < n; {
		at = min(at+batchSize, n)
		cuts = append(cuts, at)
	}
	return cuts
}

// each reports the failed entries of an answer, which names them by their index.
func each(failures []types.BatchResultErrorEntry, failed func(int, error)) {
	for _, f := range failures {
		if i, err := strconv.Atoi(aws.ToString(f.Id)); err == nil {
			failed(i, entryError(f))
		}
	}
}

// changeVisibility sets visibilities.
func (r *reader) changeVisibility(ctx context.Context, changes []change) []error {
	return r.changeInBatches(ctx, changes, cut(len(changes)))
}

func (r *reader) changeInBatches(ctx context.Context, changes []change, cuts []int) []error {
	return inBatches(cuts, func(from, to int, failed func(int, error)) error {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &r.q.url}
		for i := from; i < to; i++ {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &changes[i].receipt,
				VisibilityTimeout: int32(changes[i].visibility / time.Second),
			})
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		out, err := r.s.cfg.Client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return err
		}
		each(out.Failed, failed)
		return nil
	})
}

// delete deletes messages, and notes in each whether it certainly has: under a receipt that is too old the deletion from a standard queue may
// succeed and do nothing.
func (r *reader) delete(ctx context.Context, entries []*entry) []error {
	receipts := make([]string, len(entries)) // a message may get another one meanwhile
	r.mu.Lock()
	for i, e := range entries {
		receipts[i], e.used, e.deleted = e.receipt, e.receipt, false
	}
	r.mu.Unlock()
	errs := r.deleteReceipts(ctx, receipts)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, e := range entries {
		e.deleted = errs[i] == nil && e.receipt == receipts[i] && !e.stale && !past(e.until)
	}
	return errs
}

func (r *reader) deleteReceipts(ctx context.Context, receipts []string) []error {
	return inBatches(cut(len(receipts)), func(from, to int, failed func(int, error)) error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &r.q.url}
		for i := from; i < to; i++ {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &receipts[i]})
		}
		out, err := r.s.cfg.Client.DeleteMessageBatch(ctx, in)
		if err != nil {
			return err
		}
		each(out.Failed, failed)
		return nil
	})
}

// giveBack makes messages visible at once: those of a message group in one call if it can, the last first, so that nobody gets one of them
// before those in front of it. An entry that SQS refuses has come back already.
func (r *reader) giveBack(ctx context.Context, entries []*entry) error {
	cuts := cut(len(entries))
	if r.q.fifo {
		slices.SortFunc(entries, lastFirst)
		cuts = cutLanes(entries)
	}
	changes := make([]change, len(entries))
	for i, e := range entries {
		changes[i] = change{entry: e, receipt: e.receipt}
	}
	for _, err := range r.changeInBatches(ctx, changes, cuts) {
		var no *refusal
		if err != nil && !errors.As(err, &no) && !gone(err) {
			return err
		}
	}
	return nil
}

// lastFirst orders by message group, and in each from the last to the first.
func lastFirst(a, b *entry) int {
	switch {
	case a.lane.group != b.lane.group:
		return strings.Compare(a.lane.group, b.lane.group)
	case before(b.seq, a.seq):
		return -1
	case before(a.seq, b.seq):
		return 1
	}
	return 0
}

// cutLanes cuts sorted entries without cutting up a lane that fits into one call.
func cutLanes(entries []*entry) []int {
	cuts := []int{0}
	for from, at := 0, 0; at < len(entries); {
		end := at + 1
		for end < len(entries) && entries[end].lane.group == entries[at].lane.group {
			end++
		}
		switch {
		case end-from <= batchSize:
			at = end
		case at > from:
			from = at
			cuts = append(cuts, from)
		default:
			at = from + batchSize
		}
		if at == len(entries) {
			cuts = append(cuts, at)
		}
	}
	return cuts
}

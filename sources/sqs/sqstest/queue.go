package sqstest

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	dedupWindow  = 5 * time.Minute
	mostHeld     = 12 * time.Hour
	defaultLimit = 120_000
)

// queue is one queue; the server's mutex guards it.
type queue struct {
	name       string
	fifo       bool
	attributes map[string]string
	tags       map[string]string
	visibility time.Duration
	limit      int // messages in flight

	messages []*message // in the order of being sent
	byID     map[string]*message
	flying   map[*message]bool // those in flight, and some that were until lately
	seen     map[string]seenID
	attempts map[string]attempt
	sequence int
	changed  chan struct{} // closed when a receive may find more; then replaced
}

// seenID is what a deduplication id was first sent as.
type seenID struct {
	at time.Time
	m  *message
}

// attempt is what a receive with an attempt id gave.
type attempt struct {
	at       time.Time
	receipts []string
}

type message struct {
	id, body, md5          string
	attributes             map[string]types.MessageAttributeValue
	group, dedup, sequence string
	sent, first            time.Time
	source                 string // ARN of the queue it was redriven from

	receipt   string // of the last receive; "" before the first
	count     int
	visibleAt time.Time
	received  time.Time
}

func (m *message) inFlight(now time.Time) bool { return m.visibleAt.After(now) }

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// land forgets what is not in flight any more.
func (q *queue) land(now time.Time) {
	for m := range q.flying {
		if !m.inFlight(now) {
			delete(q.flying, m)
		}
	}
}

func (q *queue) counts(now time.Time) (visible, inFlight int) {
	q.land(now)
	return len(q.messages) - len(q.flying), len(q.flying)
}

// number is the sequence number of what was put into a FIFO queue last.
func (q *queue) number() string { return fmt.Sprintf("%020d", q.sequence) }

// find is the message with a receipt that is its latest, or nil.
func (q *queue) find(receipt string) *message {
	id, _, _ := strings.Cut(receipt, "#")
	m := q.byID[id]
	if m == nil || m.receipt != receipt {
		return nil
	}
	return m
}

func (q *queue) remove(m *message) {
	if i := slices.Index(q.messages, m); i >= 0 {
		q.messages = slices.Delete(q.messages, i, i+1)
	}
	delete(q.byID, m.id)
	delete(q.flying, m)
}

// redrive is the policy of a queue: where to after how many receives; none: 0.
func (q *queue) redrive() (name string, most int) {
	var p struct {
		Target string      `json:"deadLetterTargetArn"`
		Most   json.Number `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(q.attributes["RedrivePolicy"]), &p) != nil {
		return "", 0
	}
	most, _ = strconv.Atoi(p.Most.String())
	return p.Target[strings.LastIndex(p.Target, ":")+1:], most
}

// candidates are the messages that a receive may be given now, in order.
func (q *queue) candidates(now time.Time) iter.Seq[*message] {
	q.land(now)
	locked := map[string]bool{}
	for m := range q.flying {
		locked[m.group] = q.fifo
	}
	return func(yield func(*message) bool) {
		taken := map[string]bool{}
		for i, first := range q.messages {
			if first.inFlight(now) || locked[first.group] || taken[first.group] {
				continue
			}
			of := q.messages[i : i+1]
			if q.fifo { // as many of this group as there are, before another
				taken[first.group] = true
				of = q.messages[i:]
			}
			for _, m := range of {
				if m.group == first.group && !m.inFlight(now) && !yield(m) {
					return
				}
			}
		}
	}
}

// nextVisible is when the next message in flight becomes visible by itself.
func (q *queue) nextVisible(now time.Time) (at time.Time, some bool) {
	for m := range q.flying {
		if m.inFlight(now) && (!some || m.visibleAt.Before(at)) {
			at, some = m.visibleAt, true
		}
	}
	return at, some
}

// give marks a message as received.
func (m *message) give(now time.Time, visibility time.Duration) {
	m.count++
	if m.count == 1 {
		m.first = now
	}
	m.receipt = fmt.Sprintf("%s#%d", m.id, m.count)
	m.received, m.visibleAt = now, now.Add(visibility)
}

// out is what a receive shows of a message.
func (m *message) out(fifo bool) types.Message {
	body, id, receipt, md5 := m.body, m.id, m.receipt, m.md5
	t := types.Message{
		Body: &body, MessageId: &id, ReceiptHandle: &receipt, MD5OfBody: &md5, MessageAttributes: m.attributes,
		Attributes: map[string]string{
			"ApproximateReceiveCount":          strconv.Itoa(m.count),
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
			"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
			"SenderId":                         "sqstest",
		},
	}
	if m.group != "" {
		t.Attributes["MessageGroupId"] = m.group
	}
	if fifo {
		t.Attributes["MessageDeduplicationId"], t.Attributes["SequenceNumber"] = m.dedup, m.sequence
	}
	if m.source != "" {
		t.Attributes["DeadLetterQueueSourceArn"] = m.source
	}
	return t
}

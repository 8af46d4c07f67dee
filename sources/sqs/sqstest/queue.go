package sqstest

import (
	"encoding/json"
	"fmt"
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
	id, body, md5, attributesMD5 string
	attributes                   map[string]types.MessageAttributeValue
	group, dedup, sequence       string
	sent, first                  time.Time
	source                       string // ARN of the queue it was redriven from

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

func (q *queue) counts(now time.Time) (visible, inFlight int) {
	for _, m := range q.messages {
		if m.inFlight(now) {
			inFlight++
		} else {
			visible++
		}
	}
	return visible, inFlight
}

// find is the message with a receipt that is its latest, or nil.
func (q *queue) find(receipt string) *message {
	id, _, _ := strings.Cut(receipt, "#")
	i := slices.IndexFunc(q.messages, func(m *message) bool { return m.id == id })
	if i < 0 || q.messages[i].receipt != receipt {
		return nil
	}
	return q.messages[i]
}

func (q *queue) remove(m *message) {
	if i := slices.Index(q.messages, m); i >= 0 {
		q.messages = slices.Delete(q.messages, i, i+1)
	}
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
func (q *queue) candidates(now time.Time) []*message {
	locked := map[string]bool{}
	if q.fifo {
		for _, m := range q.messages {
			if m.inFlight(now) {
				locked[m.group] = true
			}
		}
	}
	var can []*message
	for _, m := range q.messages {
		if !m.inFlight(now) && !(q.fifo && locked[m.group]) {
			can = append(can, m)
		}
	}
	return can
}

// nextVisible is when the next message in flight becomes visible by itself.
func (q *queue) nextVisible(now time.Time) (at time.Time, some bool) {
	for _, m := range q.messages {
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

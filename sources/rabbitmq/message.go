package rabbitmq

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/rebalancer-go/rebalancer"
)

const (
	// headerCount is what a quorum queue says of returns.
	headerCount = "x-delivery-count"
	// headerOffset is an argument of consumers of streams.
	headerOffset = "x-stream-offset"
)

// newEntry makes an entry of a delivery, and its first message. counted says that the queue counts returns.
func newEntry(d *amqp.Delivery, c *rebalancer.Claim, counted bool) *entry {
	e := &entry{d: *d}
	e.d.Acknowledger = nil // settled by the handler's return and by nothing else
	if len(d.Headers) > 0 {
		e.marker = markerOf(d)
	}
	if counted && d.Redelivered { // else its publisher copied the header from somewhere
		e.returns = whole(d.Headers[headerCount])
	}
	e.m = &e.first
	fill(e.m, e, c)
	return e
}

func fill(m *rebalancer.Message, e *entry, c *rebalancer.Claim) {
	d := &e.d
	*m = rebalancer.Message{
		Resource: c.Resource, ID: d.MessageId, Key: d.RoutingKey, Body: d.Body, Size: int64(len(d.Body)),
		Headers: texts(d.Headers), Attempt: 1 + e.returns, Published: d.Timestamp, Fence: c.Fence, Native: d,
	}
}

// whole is a number in a table; 0 for anything else.
func whole(v any) int {
	switch v := v.(type) {
	case int64:
		return int(v)
	case int32:
		return int(v)
	case int16:
		return int(v)
	case int8:
		return int(v)
	case uint8:
		return int(v)
	}
	return 0
}

// texts are the headers as text; nil when there are none.
func texts(t amqp.Table) map[string]string {
	if len(t) == 0 {
		return nil
	}
	m := make(map[string]string, len(t))
	for k, v := range t {
		m[k] = text(v)
	}
	return m
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case amqp.Decimal:
		return decimal(v)
	}
	return fmt.Sprint(v)
}

// decimal writes value × 10^−scale.
func decimal(d amqp.Decimal) string {
	s := strconv.FormatInt(int64(d.Value), 10)
	if d.Scale == 0 {
		return s
	}
	return s + "e-" + strconv.Itoa(int(d.Scale))
}

// cut shortens text to at most n bytes, whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

package sqs

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer"
)

// newMessage makes what a handler gets; see the table in the package's comment.
func (r *reader) newMessage(e *entry) *rebalancer.Message {
	body := aws.ToString(e.raw.Body)
	m := &rebalancer.Message{
		Resource: r.claim.Resource, Fence: r.claim.Fence,
		ID: e.id, Size: int64(len(body)), Headers: headers(&e.raw), Attempt: e.attempt(), Native: &e.raw,
	}
	if r.q.fifo {
		m.Key = e.lane.group
	}
	if e.payload != nil {
		m.Size, m.Stream = e.payload.size, e.payload.open
	} else {
		m.Body = []byte(body)
	}
	if ms, err := strconv.ParseInt(attribute(&e.raw, types.MessageSystemAttributeNameSentTimestamp), 10, 64); err == nil {
		m.Published = time.UnixMilli(ms)
	}
	return m
}

// headers are the attributes that are text or numbers, and the trace header of AWS; nil when there are none.
func headers(m *types.Message) map[string]string {
	var h map[string]string
	set := func(k, v string) {
		if h == nil {
			h = map[string]string{}
		}
		h[k] = v
	}
	if trace := attribute(m, types.MessageSystemAttributeNameAWSTraceHeader); trace != "" {
		set(string(types.MessageSystemAttributeNameAWSTraceHeader), trace)
	}
	for k, v := range m.MessageAttributes {
		if v.StringValue != nil {
			set(k, *v.StringValue)
		}
	}
	return h
}

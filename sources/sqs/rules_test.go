package sqs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// rule is one that AWS documents. Each is played on the small SQS of package sqstest, in virtual time, and on a server where that has it too.
type rule struct {
	name   string
	server bool // a server at hand has it too
	play   func(p *play)
}

// play is a server with queues of its own.
type play struct {
	Client
	t      *testing.T
	create func(name string, attributes map[string]string) (url string)
}

func (p *play) send(url, group, body string) {
	p.t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
	if group != "" {
		in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String(group+body)
	}
	if _, err := p.SendMessage(p.t.Context(), in); err != nil {
		p.t.Fatal(err)
	}
}

// receive wants these bodies, waiting for the first for a time.
func (p *play) receive(in sqs.ReceiveMessageInput, want ...string) []types.Message {
	p.t.Helper()
	in.MaxNumberOfMessages = max(in.MaxNumberOfMessages, 1)
	in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}
	out, err := p.ReceiveMessage(p.t.Context(), &in)
	if err != nil {
		p.t.Fatal(err)
	}
	var got []string
	for _, m := range out.Messages {
		got = append(got, *m.Body)
	}
	if !slices.Equal(got, want) {
		p.t.Fatalf("received %q, want %q", got, want)
	}
	return out.Messages
}

func (p *play) change(url string, seconds int32, ms ...types.Message) []types.BatchResultErrorEntry {
	p.t.Helper()
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url}
	for i, m := range ms {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	}
	out, err := p.ChangeMessageVisibilityBatch(p.t.Context(), in)
	if err != nil {
		p.t.Fatal(err)
	}
	return out.Failed
}

func (p *play) delete(url string, ms ...types.Message) []types.BatchResultErrorEntry {
	p.t.Helper()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for i, m := range ms {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), ReceiptHandle: m.ReceiptHandle})
	}
	out, err := p.DeleteMessageBatch(p.t.Context(), in)
	if err != nil {
		p.t.Fatal(err)
	}
	return out.Failed
}

func rules() []rule {
	return []rule{
		{"a received message is invisible until its visibility ends, and counts its receives", true, func(p *play) {
			url := p.create("q", nil)
			p.send(url, "", "1")
			first := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 1}, "1")
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url})
			again := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5, VisibilityTimeout: 30}, "1")
			if *again[0].MessageId != *first[0].MessageId || *again[0].ReceiptHandle == *first[0].ReceiptHandle || again[0].Attributes["ApproximateReceiveCount"] != "2" {
				p.t.Errorf("first %v, then %v", first[0].Attributes, again[0].Attributes)
			}
		}},
		{"visibility 0 in a batch gives back at once", true, func(p *play) {
			url := p.create("q", nil)
			p.send(url, "", "1")
			p.change(url, 0, p.receive(sqs.ReceiveMessageInput{QueueUrl: &url}, "1")...)
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url}, "1")
		}},
		{"a long poll ends with the message that comes", true, func(p *play) {
			url := p.create("q", nil)
			start := time.Now()
			sent := make(chan struct{})
			time.AfterFunc(time.Second, func() { defer close(sent); p.send(url, "", "1") })
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20}, "1")
			if d := time.Since(start); d < time.Second || d > 10*time.Second {
				p.t.Errorf("waited %v", d)
			}
			<-sent
		}},
		{"a queue with a redrive policy moves what was received too often", true, func(p *play) {
			dead := p.create("dead", nil)
			arn, err := p.GetQueueAttributes(p.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &dead, AttributeNames: []types.QueueAttributeName{"QueueArn"}})
			if err != nil {
				p.t.Fatal(err)
			}
			url := p.create("q", map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, arn.Attributes["QueueArn"])})
			p.send(url, "", "1")
			for range 2 {
				p.change(url, 0, p.receive(sqs.ReceiveMessageInput{QueueUrl: &url}, "1")...)
			}
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url})
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &dead}, "1")
		}},
		{"a duplicate within five minutes is accepted and not delivered", true, func(p *play) {
			url := p.create("q.fifo", nil)
			p.send(url, "g", "1")
			p.send(url, "g", "1")
			p.delete(url, p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}, "1")...)
			p.send(url, "g", "1")
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url})
		}},
		{"a group is locked while one of it is in flight, and in order", true, func(p *play) {
			url := p.create("q.fifo", nil)
			p.send(url, "g", "1")
			p.send(url, "g", "2")
			p.send(url, "h", "3")
			first := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 1}, "1")
			p.delete(url, p.receive(sqs.ReceiveMessageInput{QueueUrl: &url}, "3")...)
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url})
			again := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5}, "1")
			if first[0].Attributes["SequenceNumber"] != again[0].Attributes["SequenceNumber"] {
				p.t.Error("the sequence number changed")
			}
			p.delete(url, again...)
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url}, "2")
		}},
		{"a receive takes several of a group, in order, and one that comes back goes first", false, func(p *play) {
			url := p.create("q.fifo", nil)
			for i := range 12 {
				p.send(url, "g", fmt.Sprintf("%02d", i))
			}
			ms := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}, "00", "01", "02", "03", "04", "05", "06", "07", "08", "09")
			p.change(url, 0, ms[3])
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url}) // the others hold the group
			p.change(url, 0, slices.Concat(ms[:3], ms[4:])...)
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 2}, "00", "01")
		}},
		{"a receive takes all it can of one group before it takes of another", false, func(p *play) {
			url := p.create("q.fifo", nil)
			for i := range 6 {
				p.send(url, "g", fmt.Sprintf("g%d", i))
				p.send(url, "h", fmt.Sprintf("h%d", i))
			}
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}, "g0", "g1", "g2", "g3", "g4", "g5", "h0", "h1", "h2", "h3")
		}},
		{"what is redriven into a FIFO queue is sent there at that moment, known by its id, and behind what is there", false, func(p *play) {
			dead := p.create("dead.fifo", nil)
			url := p.create("q.fifo", map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead.fifo", 1)})
			p.send(url, "g", "1")
			first := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 30}, "1")
			time.Sleep(time.Minute)
			p.send(dead, "g", "0")
			p.receive(sqs.ReceiveMessageInput{QueueUrl: &url})
			ms := p.receive(sqs.ReceiveMessageInput{QueueUrl: &dead, MaxNumberOfMessages: 2}, "0", "1")
			was, is := first[0].Attributes, ms[1].Attributes
			if *ms[1].MessageId != *first[0].MessageId || is["MessageGroupId"] != "g" || is["MessageDeduplicationId"] != *first[0].MessageId ||
				is["SequenceNumber"] <= ms[0].Attributes["SequenceNumber"] || is["SentTimestamp"] == was["SentTimestamp"] {
				p.t.Errorf("was %v, is %v", was, is)
			}
		}},
		{"an attempt id gives the same messages again", false, func(p *play) {
			url := p.create("q.fifo", nil)
			p.send(url, "g", "1")
			p.send(url, "g", "2")
			in := sqs.ReceiveMessageInput{QueueUrl: &url, ReceiveRequestAttemptId: aws.String("a"), VisibilityTimeout: 10}
			first := p.receive(in, "1")
			again := p.receive(in, "1")
			if *first[0].ReceiptHandle != *again[0].ReceiptHandle || again[0].Attributes["ApproximateReceiveCount"] != "1" {
				p.t.Errorf("receipts %q and %q", *first[0].ReceiptHandle, *again[0].ReceiptHandle)
			}
			in.ReceiveRequestAttemptId = aws.String("b")
			p.receive(in)
		}},
		{"a receipt that is too old is refused by a FIFO queue, and does nothing in another", false, func(p *play) {
			for _, name := range []string{"q", "q.fifo"} {
				url := p.create(name, nil)
				p.send(url, strings.TrimPrefix(name, "q"), "1")
				old := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 1}, "1")
				time.Sleep(2 * time.Second)
				if failed := p.change(url, 30, old...); len(failed) != 1 || !failed[0].SenderFault {
					p.t.Errorf("%s: an extension after the end: %v", name, failed)
				}
				if failed := p.delete(url, old...); isFIFO(name) != (len(failed) == 1) {
					p.t.Errorf("%s: a deletion after the end: %v", name, failed)
				}
			}
		}},
		{"12 hours are the most", false, func(p *play) {
			url := p.create("q", nil)
			p.send(url, "", "1")
			ms := p.receive(sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 11 * 3600}, "1")
			if failed := p.change(url, 12*3600, ms...); len(failed) != 0 {
				p.t.Errorf("12 h at once: %v", failed)
			}
			time.Sleep(10 * time.Hour)
			if failed := p.change(url, 2*3600+1, ms...); len(failed) != 1 {
				p.t.Error("more than 12 h were granted")
			}
			if failed := p.change(url, 2*3600, ms...); len(failed) != 0 {
				p.t.Errorf("12 h: %v", failed)
			}
		}},
	}
}

// TestRules plays the rules on the small SQS.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := sqstest.New()
				r.play(&play{s, t, func(name string, a map[string]string) string { s.Create(name, a); return sqstest.URL(name) }})
			})
		})
	}
}

// TestLimits: what is beyond the limit of messages in flight is passed over in silence, but for a receive from a standard queue that does not wait, which
// is refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		wait    int32
		refused bool
	}{{"q", 0, true}, {"q", 1, false}, {"q.fifo", 0, false}, {"q.fifo", 1, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := sqstest.New()
			s.Create(c.name, nil)
			s.Limit(c.name, 1)
			send(s, c.name, "g", "1")
			send(s, c.name, "h", "2")
			for i := range 2 {
				out, err := s.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(sqstest.URL(c.name)), WaitTimeSeconds: c.wait})
				if refused := err != nil; refused != (i == 1 && c.refused) || !refused && len(out.Messages) != 1-i {
					t.Errorf("%+v: receive %d: %+v, %v", c, i, out, err)
				}
			}
		})
	}
}

// TestSendToNoQueue: it is an error, not a panic of whoever writes a test.
func TestSendToNoQueue(t *testing.T) {
	t.Parallel()
	if _, err := sqstest.New().Send("nowhere", "", "x"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("Send: %v", err)
	}
}

package sqs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/rebalancer-go/rebalancer"
	"github.com/rebalancer-go/rebalancer/group"
	"github.com/rebalancer-go/rebalancer/sources/sqs/sqstest"
)

// heedless is a client whose receives end when it wakes, whatever becomes of their contexts.
type heedless struct {
	*sqstest.Server
	wake chan struct{}
}

func (h *heedless) ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	<-h.wake
	return &sqs.ReceiveMessageOutput{}, nil
}

// TestSourceCloseOfAHeedlessClient: a client that does not heed its context holds nobody up for ever, and is told of.
func TestSourceCloseOfAHeedlessClient(t *testing.T) {
	onStage(t, "", nil, func(t *testing.T, s *stage) {
		client := &heedless{s.Server, make(chan struct{})}
		defer close(client.wake)
		s.source.cfg.Client = client
		r := s.open()
		s.none(r, time.Second)
		s.close(r)
		start := time.Now()
		if err := s.source.Close(); err == nil {
			t.Error("Close does not say that receives go on")
		}
		if d := time.Since(start); d > s.source.cfg.Wait+callTimeout+closeGrace {
			t.Errorf("Close took %v", d)
		}
	})
}

// TestRedriveOfAGroup: with Attempts 1 each receive is one try. Only the last is reported as given up, since before that nothing has gone anywhere.
func TestRedriveOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := crewOf(t, "q")
		c.Create("q", map[string]string{"RedrivePolicy": sqstest.RedrivePolicy("dead", 3)})
		c.Create("dead", nil)
		send(c, "q", "", "bad")
		tries, kinds := 0, map[group.EventKind]int{}
		_, stop := c.run("a", func(g *group.Config, s *Config) {
			s.Redrive, g.Retry.Attempts = true, 1
			g.OnEvent = func(e group.Event) { kinds[e.Kind]++ }
		}, func(context.Context, *rebalancer.Message) error { tries++; return errLost })
		c.empty(time.Hour, "q")
		stop()
		if got := c.Bodies("dead"); len(got) != 1 || tries != 3 || kinds[group.KindFailed] != 2 || kinds[group.KindRejected] != 1 {
			t.Errorf("dead letters %q after %d tries, %d failed, %d rejected; want 3, of which 2 failed", got, tries, kinds[group.KindFailed], kinds[group.KindRejected])
		}
	})
}

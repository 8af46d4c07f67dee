package sqs

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// Defaults of Config.
const (
	DefaultVisibility = 30 * time.Second
	DefaultWait       = 20 * time.Second
	DefaultLinger     = time.Second
	DefaultGroupAhead = 1
)

const (
	batchSize = 10             // messages in one call, by SQS's own limit
	mostHeld  = 12 * time.Hour // from its receipt a message can be kept invisible for so long
	mostAhead = batchSize
)

// Config says how queues are read. Client is required; the zero value of every other field is a working default.
type Config struct {
	// Client speaks to SQS. The caller closes nothing; it is used until Close has returned. Required.
	Client Client
	// Account is the number of the account whose queues have names without an account in front, and Region the region of Client.
	// Both are needed only where queues are given as URLs or ARNs: without them nobody can tell whether a URL and a name are one
	// queue. Account is checked when a queue is opened. Default to none.
	Account, Region string

	// Visibility is how long a message stays invisible to others after it was received or extended: about as long as a node that
	// crashed leaves its messages lying, so it should be about the group's TTL. It is extended at a third of it for everything in
	// hand, whatever the handler takes. Whole seconds, 3 s to 1 h. Defaults to DefaultVisibility.
	Visibility time.Duration
	// Wait is how long a receive waits for messages. Close may take as long and some 10 s, see Source.Close. Whole seconds, 1 s to 20 s, and at most
	// two thirds of Visibility. Defaults to DefaultWait, or less where Visibility is short.
	Wait time.Duration
	// Linger is how long the deletion of messages of a standard queue waits for others, so that ten are deleted at once. It waits
	// no longer than ten more take to be handed out, and not at all when nothing else is in hand and nothing more is
	// asked for. At most 5 s; negative for not at all. Defaults to DefaultLinger.
	Linger time.Duration

	// DeadLetter is the name of the queue to which messages are moved that are given up, with what went wrong in attributes. A "*" in it stands for the
	// name of the queue they come from, and ".fifo" is added for those of a FIFO queue. It is checked when a queue is opened.
	// Defaults to none: unless Redrive is set, a message that is given up stays.
	DeadLetter string
	// Redrive leaves messages that are given up to the queue's own redrive policy: such a message is given back, with a growing
	// delay, and SQS moves it once its receives are used up. Each time that it comes its handler is tried again, up to the attempt
	// Retry.Attempts of the group, where the first is the number of its receives: with 1 each receive is one try. Before the last
	// receive giving it up counts as one more failure. Not for FIFO queues, where it would burn the receives of those behind it
	// too, and not with DeadLetter. Defaults to false.
	Redrive bool
	// GroupAhead is how many messages of one message group of a FIFO queue are handed out before the first of them is settled. Above 1
	// is for ConsumeBatch, whose batches would else hold one message of each group. 1 to 10. Defaults to DefaultGroupAhead.
	GroupAhead int

	// Payloads opens the bodies that the extended client library put elsewhere. Defaults to none: such a message is handed out
	// as it is, with the pointer as its body.
	Payloads Payloads
	// KeepPayloads leaves a payload where it is when its message is deleted: for topics that give one payload to several queues.
	// Defaults to false: it is deleted after its message. Where nobody can know that the message is gone, since the deletion was refused or came
	// too late, the payload stays until the message comes again to the same node, or for ever: a lifecycle rule of the bucket should end it.
	KeepPayloads bool

	// Logger is told what nobody else learns, such as a payload that could not be deleted. Defaults to none.
	Logger *slog.Logger
}

var accountPattern = regexp.MustCompile(`^[0-9]{12}$`)

// complete fills in the defaults and returns all that is wrong.
func (c *Config) complete() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("sqs: "+format, args...))
		}
	}
	whole := func(d time.Duration) bool { return d%time.Second == 0 }
	if c.Visibility == 0 {
		c.Visibility = DefaultVisibility
	}
	mostWait := min(DefaultWait, (c.Visibility * 2 / 3).Truncate(time.Second))
	if c.Wait == 0 {
		c.Wait = mostWait
	}
	if c.Linger == 0 {
		c.Linger = DefaultLinger
	}
	if c.GroupAhead == 0 {
		c.GroupAhead = DefaultGroupAhead
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	bad(c.Client == nil, "Client is nil, must be a client of SQS")
	bad(c.Account != "" && !accountPattern.MatchString(c.Account), "Account is %q, must be 12 digits", c.Account)
	bad(c.Visibility < 3*time.Second || c.Visibility > time.Hour || !whole(c.Visibility), "Visibility is %v, must be whole seconds from 3 s to 1 h", c.Visibility)
	bad(c.Wait < time.Second || c.Wait > max(mostWait, time.Second) || !whole(c.Wait), "Wait is %v, must be whole seconds from 1 s to %v, two thirds of Visibility and 20 s at most", c.Wait, mostWait)
	bad(c.Linger > 5*time.Second, "Linger is %v, must be at most 5 s", c.Linger)
	bad(c.GroupAhead < 1 || c.GroupAhead > mostAhead, "GroupAhead is %d, must be 1 to %d", c.GroupAhead, mostAhead)
	bad(c.Redrive && c.DeadLetter != "", "Redrive and DeadLetter exclude each other: DeadLetter is %q", c.DeadLetter)
	if c.DeadLetter != "" {
		if err := checkDeadLetter(c.DeadLetter); err != nil {
			bad(true, "DeadLetter is %q: %w", c.DeadLetter, err)
		}
	}
	return errors.Join(errs...)
}

// margin is how long before the end of its visibility a message counts as lost.
func (c *Config) margin() time.Duration { return c.Visibility / 6 }

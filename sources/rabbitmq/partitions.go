package rabbitmq

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// DefaultPause is that of [PartitionsConfig].
const DefaultPause = 500 * time.Millisecond

// maxPartitions is more than a group needs and less than what makes a broker suffer.
const maxPartitions = 1024

// PartitionsConfig says which partitions and of what kind. Config.URLs, Config.Management and Exchange are required.
type PartitionsConfig struct {
	// Config says how the broker is reached. What it says of consuming does not matter.
	Config Config
	// Exchange is the name of the consistent-hash exchange that publishers publish to, with the key of a message as its routing key.
	Exchange string
	// Queue begins the names of the queues: Queue.0, Queue.1 and so on. Defaults to Exchange.
	Queue string
	// Type of the queues that are made: quorum or classic. Defaults to that of the first queue where there is one, else to quorum.
	Type string
	// Arguments of the queues that are made, such as x-delivery-limit. They must keep the order and drop nothing, so those that do not are refused:
	// priorities, limits of length and times to live. Defaults to those of the first queue where there is one, else to none.
	Arguments map[string]any
	// HashHeader is the header that holds the key, for an exchange that Create makes. Defaults to none: the key is the routing key.
	HashHeader string
	// Pause is how long a changed binding gets to be known by all nodes of the broker. On one node it is at once. Defaults to DefaultPause.
	Pause time.Duration
	// Wait lets Grow return only when the new queues are worked, which needs a running group. Defaults to false.
	Wait bool
	// Progress is told what is done next. Defaults to none.
	Progress func(string)
}

// Partitions is a consistent-hash exchange with numbered queues: messages of one key meet in one queue. Their number changes while publishers publish
// and a group consumes, and the messages of each key stay in order; see the package comment, "Partitions".
//
// Each method may be repeated after it failed or its process died, at any step, and then ends what was begun. Only one changes at a time; a second
// is refused meanwhile.
type Partitions struct {
	c    PartitionsConfig
	s    settings
	link *link
	busy sync.Mutex   // one change at a time also on this connection
	fail func() error // a test's, before each request to the broker; nil: never
}

// NewPartitions checks the configuration, all violations at once. It does no I/O.
func NewPartitions(c PartitionsConfig) (*Partitions, error) {
	s, err := c.Config.check()
	errs := []error{err}
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("rabbitmq: PartitionsConfig."+format, args...))
		}
	}
	if c.Queue == "" {
		c.Queue = c.Exchange
	}
	if c.Pause == 0 {
		c.Pause = DefaultPause
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	const room = 60 // for what is added to names
	want(len(c.Config.Management) > 0, "Config.Management is empty: the management API tells which queues are bound; name it, as http://host:15672")
	want(c.Exchange != "" && len(c.Exchange) <= maxShort && utf8.ValidString(c.Exchange), "Exchange is %q: it must be UTF-8 of 1 to 255 bytes", c.Exchange)
	want(!strings.HasPrefix(c.Exchange, "amq."), "Exchange is %q: names that begin with amq. are the broker's", c.Exchange)
	want(len(c.Queue) <= maxShort-room && utf8.ValidString(c.Queue), "Queue is %q: it must be UTF-8 of at most %d bytes", c.Queue, maxShort-room)
	want(!strings.HasPrefix(c.Queue, "amq.") && !strings.HasPrefix(c.Queue, own), "Queue is %q: it must not begin with amq. or %s", c.Queue, own)
	want(c.Type == "" || c.Type == typeQuorum || c.Type == typeClassic, "Type is %q: it must be %s or %s", c.Type, typeQuorum, typeClassic)
	want(c.Pause >= 0, "Pause is %v: it must not be negative", c.Pause)
	for _, name := range []string{"x-max-priority", "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-queue-type", "x-queue-mode"} {
		_, there := c.Arguments[name]
		want(!there, "Arguments has %s: it would break the order or lose messages; the type is the field Type", name)
	}
	if err := amqp.Table(c.Arguments).Validate(); err != nil {
		want(false, "Arguments: %w", err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p := &Partitions{c: c, s: s}
	p.link = newLink(&p.s, "partitions")
	return p, nil
}

// Close ends the connection.
func (p *Partitions) Close() error {
	p.link.close()
	return nil
}

// queue is the name of the partition of a number.
func (p *Partitions) queue(n int) string { return p.c.Queue + "." + strconv.Itoa(n) }

// number is the inverse of queue; -1 for another name.
func (p *Partitions) number(queue string) int {
	digits, ok := strings.CutPrefix(queue, p.c.Queue+".")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || p.queue(n) != queue {
		return -1
	}
	return n
}

// The names of what is made beside the queues. Records say that something was begun and not ended; tokens are what markers tell and wait for. The id in the
// name of a token is that of its change: a marker of an earlier one, still unread, means nothing to this one's.

func (p *Partitions) name(format string, args ...any) string {
	return own + p.c.Queue + "." + fmt.Sprintf(format, args...)
}
func (p *Partitions) creating() string       { return p.name("create") }
func (p *Partitions) growing(n int) string   { return p.name("grow.%d", n) }
func (p *Partitions) shrinking(n int) string { return p.name("shrink.%d", n) }
func (p *Partitions) settled(n, from int, id string) string {
	return p.name("grow.%d.from.%d.%s", n, from, id)
}
func (p *Partitions) drained(n int, id string) string { return p.name("drain.%d.%s", n, id) }
func (p *Partitions) reached(n int, id string) string { return p.name("reached.%d.%s", n, id) }
func (p *Partitions) empty(n int, id string) string   { return p.name("empty.%d.%s", n, id) }
func (p *Partitions) lock() string                    { return p.name("lock") }

// witness is an exchange that ends when all nodes of the broker are down, as the order of the bindings does.
func (p *Partitions) witness() string { return p.name("witness") }

func (p *Partitions) wrap(what string, err error) error {
	return fmt.Errorf("rabbitmq: %s partitions of exchange %q: %w", what, p.c.Exchange, err)
}

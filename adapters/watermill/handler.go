package watermill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/rebalancer-go/rebalancer"
)

// What the metadata of a message tell beside its headers.
const (
	MetadataResource = "rebalancer.resource" // the queue, directory or prefix that it came from
	MetadataKey      = "rebalancer.key"      // its order key, if it has one
	MetadataFence    = "rebalancer.fence"    // the claim's, in decimal: see rebalancer.Message
	MetadataAttempt  = "rebalancer.attempt"  // 1 at first
)

// uuidHeader is where Watermill's AMQP publisher puts the message's UUID.
const uuidHeader = "_watermill_message_uuid"

// ErrNacked is the error of a message that its handler nacked without returning an error. It is delivered again.
var ErrNacked = errors.New("watermill: the handler nacked the message")

// Config changes how messages reach handlers. Its zero value is valid.
type Config struct {
	// Middleware wraps the handler, the first outermost, as a router's AddMiddleware does. Defaults to none.
	Middleware []message.HandlerMiddleware
	// UUID is the UUID of a message. Defaults to the one that Watermill's AMQP publisher sent with it, and else the message's ID.
	UUID func(*rebalancer.Message) string
	// MostBytes is the longest payload that is read: a payload is in memory as a whole. What is longer fails for good. Defaults to 64 MiB.
	MostBytes int64
	// Logger is told of errors after an Ack. Defaults to slog.Default.
	Logger *slog.Logger
}

// DefaultMostBytes is Config.MostBytes where that is 0.
const DefaultMostBytes = 64 << 20

// check fills in the defaults, and names everything that is wrong.
func (c Config) check(h bool) (Config, error) {
	var bad []error
	if !h {
		bad = append(bad, errors.New("watermill: the handler is nil"))
	}
	for i, m := range c.Middleware {
		if m == nil {
			bad = append(bad, fmt.Errorf("watermill: Config.Middleware[%d] is nil", i))
		}
	}
	if c.MostBytes < 0 {
		bad = append(bad, fmt.Errorf("watermill: Config.MostBytes is %d: want 0 or more", c.MostBytes))
	}
	if c.MostBytes == 0 {
		c.MostBytes = DefaultMostBytes
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, errors.Join(bad...)
}

// Handler makes a handler of a group of one of Watermill that publishes nothing: where middleware returns messages all the same, the message fails with
// message.ErrOutputInNoPublisherHandler, as in a router. Its error names everything that is wrong with its arguments.
func Handler(cfg Config, h message.NoPublishHandlerFunc) (rebalancer.Handler, error) {
	cfg, err := cfg.check(h != nil)
	if err != nil {
		return nil, err
	}
	return cfg.handler(func(m *message.Message) ([]*message.Message, error) { return nil, h(m) }, nil, ""), nil
}

// Publishing makes a handler of a group of one of Watermill whose messages go to a topic of a publisher, before its own counts as handled: after a
// failure or a crash they may be published again. Its error names everything that is wrong with its arguments.
func Publishing(cfg Config, h message.HandlerFunc, to message.Publisher, topic string) (rebalancer.Handler, error) {
	cfg, err := cfg.check(h != nil)
	if to == nil {
		err = errors.Join(err, errors.New("watermill: the publisher is nil"))
	}
	if err != nil {
		return nil, err
	}
	return cfg.handler(h, to, topic), nil
}

func (c Config) handler(h message.HandlerFunc, to message.Publisher, topic string) rebalancer.Handler {
	for i := len(c.Middleware) - 1; i >= 0; i-- {
		h = c.Middleware[i](h)
	}
	return func(ctx context.Context, m *rebalancer.Message) error {
		msg, err := c.message(ctx, m)
		if err != nil {
			return err
		}
		made, err := h(msg)
		if err == nil && len(made) > 0 {
			err = publish(ctx, made, to, topic)
		}
		return c.outcome(m, msg, err)
	}
}

// publish sends what a handler made. A handler that did not see the end of its context has no claim any more, and whoever has it will publish the same.
func publish(ctx context.Context, made []*message.Message, to message.Publisher, topic string) error {
	if to == nil {
		return fmt.Errorf("watermill: %d messages have nowhere to go: %w; use Publishing", len(made), message.ErrOutputInNoPublisherHandler)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("watermill: %d messages for %q came too late: %w", len(made), topic, err)
	}
	if err := to.Publish(topic, made...); err != nil {
		return fmt.Errorf("watermill: publish %d messages to %q: %w", len(made), topic, err)
	}
	return nil
}

// outcome is what the group is told: an Ack or Nack of the handler came before its return.
func (c Config) outcome(m *rebalancer.Message, msg *message.Message, err error) error {
	select {
	case <-msg.Acked():
		if err != nil {
			c.Logger.Warn("a message was acked, and its handler failed", "resource", m.Resource, "id", m.ID, "err", err)
		}
		return nil
	case <-msg.Nacked():
		if err == nil {
			err = ErrNacked
		}
	default:
	}
	return err
}

// message is a message as Watermill has it.
func (c Config) message(ctx context.Context, m *rebalancer.Message) (*message.Message, error) {
	payload := m.Body
	if m.Stream != nil {
		var err error
		if payload, err = c.read(ctx, m); err != nil {
			return nil, err
		}
	}
	msg := message.NewMessageWithContext(ctx, c.uuid(m), payload)
	maps.Copy(msg.Metadata, m.Headers)
	delete(msg.Metadata, uuidHeader)
	msg.Metadata[MetadataResource] = m.Resource
	msg.Metadata[MetadataFence] = strconv.FormatInt(m.Fence, 10)
	msg.Metadata[MetadataAttempt] = strconv.Itoa(m.Attempt)
	if m.Key != "" {
		msg.Metadata[MetadataKey] = m.Key
	}
	return msg, nil
}

func (c Config) uuid(m *rebalancer.Message) string {
	if c.UUID != nil {
		return c.UUID(m)
	}
	if id := m.Headers[uuidHeader]; id != "" {
		return id
	}
	return m.ID
}

// read reads a payload that is a file or an object.
func (c Config) read(ctx context.Context, m *rebalancer.Message) ([]byte, error) {
	r, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	payload, err := io.ReadAll(io.LimitReader(r, c.MostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("watermill: read %s of %s: %w", m.ID, m.Resource, err)
	}
	if int64(len(payload)) > c.MostBytes {
		return nil, rebalancer.Permanent(fmt.Errorf("watermill: %s of %s has more than %d bytes, which a message of Watermill would hold in memory: "+
			"set Config.MostBytes, or handle it without Watermill", m.ID, m.Resource, c.MostBytes))
	}
	return payload, nil
}

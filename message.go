package rebalancer

import (
	"bytes"
	"context"
	"io"
	"time"
)

// Message is one unit of work. It is a plain struct so that tests can write one down.
type Message struct {
	// Resource is the canonical name of the resource that the message came from.
	Resource string
	// ID is the same again on redelivery, and unique in its resource as far as the source can tell.
	ID string
	// Key is the order key: SQS message group, AMQP routing key, file or object name. "" for none.
	Key string
	// Body is the payload of a queue message; nil for files and objects, use Open.
	Body []byte
	// Size is the length of the payload in bytes; -1 when unknown.
	Size int64
	// Headers are the message's headers as text; nil when there are none. Typed values are in Native.
	Headers map[string]string
	// Attempt is 1 at first. Retries in the process count, a drain or a lost claim does not; after a crash it is a minimum.
	Attempt int
	// Published is when the message was made; zero when the source does not say.
	Published time.Time
	// Fence is the token of the claim under which the message is delivered: above 0, and greater with each new claim of
	// Resource in its group, also across a store that lost its data. Write it along with what the handler writes and
	// refuse a smaller one.
	Fence int64
	// Native is what the source's client handed out (fs.FileInfo, a delivery, …), read-only; nil in tests.
	Native any

	// Members are the other files of a set that is one message; nil for all other messages. Open reads the file that leads
	// the set, and Key, Size, Published and Native are that file's.
	Members []Member

	// Stream is set by sources whose payload is not in Body; handlers call Open.
	Stream func(context.Context) (io.ReadCloser, error)
}

// Open reads the payload from its start, whatever its kind. The handler closes the reader; what it leaves open is
// closed when it returns. A read fails with [ErrChanged] when the file or object changed since it was listed.
func (m *Message) Open(ctx context.Context) (io.ReadCloser, error) {
	if m.Stream != nil {
		return m.Stream(ctx)
	}
	return io.NopCloser(bytes.NewReader(m.Body)), nil
}

// Member is a further file of a message that is a set of files. It is settled with its message.
type Member struct {
	// Key is the file's name.
	Key string
	// Size is the length of the file in bytes; -1 when unknown.
	Size int64
	// Published is when the file was made; zero when the source does not say.
	Published time.Time
	// Native is what the source's client handed out, read-only; nil in tests.
	Native any
	// Stream is set by sources; handlers call Open. nil for a file without content.
	Stream func(context.Context) (io.ReadCloser, error)
}

// Open reads the file from its start; see [Message.Open].
func (m *Member) Open(ctx context.Context) (io.ReadCloser, error) {
	if m.Stream != nil {
		return m.Stream(ctx)
	}
	return io.NopCloser(bytes.NewReader(nil)), nil
}

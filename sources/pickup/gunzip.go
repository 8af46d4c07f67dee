package pickup

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/rebalancer-go/rebalancer"
)

// Gunzip returns a handler that is given the messages whose Key ends in .gz unpacked, and all others as they are; so too
// with each of the Members. Open streams in constant memory; the Size of what is unpacked is -1 and its Body is nil. Several
// packed parts one after the other are one. A read of what is cut short or corrupted ends with an error and never with
// io.EOF, and so does a read of what changed since it was listed: a body is whole only when io.EOF was read.
func Gunzip(next rebalancer.Handler) rebalancer.Handler {
	return func(ctx context.Context, m *rebalancer.Message) error {
		plain := *m
		if packed(m.Key) {
			plain.Body, plain.Size, plain.Stream = nil, -1, unpacked(m.Open)
		}
		plain.Members = nil
		for _, x := range m.Members {
			if packed(x.Key) {
				member := x
				x.Size, x.Stream = -1, unpacked(member.Open)
			}
			plain.Members = append(plain.Members, x)
		}
		return next(ctx, &plain)
	}
}

func packed(name string) bool {
	return len(name) > 3 && strings.EqualFold(name[len(name)-3:], ".gz")
}

func unpacked(open func(context.Context) (io.ReadCloser, error)) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		src, err := open(ctx)
		if err != nil {
			return nil, err
		}
		z, err := gzip.NewReader(src)
		if err == io.EOF { // nothing at all is no empty body
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, errors.Join(err, src.Close())
		}
		return &gunzip{z, src}, nil
	}
}

type gunzip struct {
	*gzip.Reader
	src io.Closer
}

// Close closes what is unpacked.
func (g *gunzip) Close() error { return errors.Join(g.Reader.Close(), g.src.Close()) }

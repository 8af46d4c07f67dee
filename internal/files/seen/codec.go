package seen

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	format    = 1
	maxName   = 1024 // bytes of a name
	maxValue  = 64 << 10
	maxHead   = 32 << 10
	trailer   = 4 // bytes of the checksum at a value's end
	kindList  = 'n'
	kindHead  = 'h'
	flagGone  = 1 << 2 // beside the outcome
	flagsKnow = flagGone | 3
)

// seal puts the checksum behind a value.
func seal(b []byte) []byte { return binary.BigEndian.AppendUint32(b, checksum(b)) }

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// listWriter makes a chunk or a journal. Names come in ascending order.
type listWriter struct {
	b     []byte
	count int
	last  string
}

func newList() *listWriter { return &listWriter{b: []byte{format, kindList}} }

func (w *listWriter) add(e *entry) {
	shared := sharedPrefix(w.last, e.name)
	w.b = appendName(w.b, shared, e.name)
	w.b = appendRecord(w.b, e)
	w.last = e.name
	w.count++
}

// size is that of the value, when nothing more is added.
func (w *listWriter) size() int { return len(w.b) + trailer }

func (w *listWriter) bytes() []byte { return seal(w.b) }

func appendName(b []byte, shared int, name string) []byte {
	b = binary.AppendUvarint(b, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(name)-shared))
	return append(b, name[shared:]...)
}

func appendRecord(b []byte, e *entry) []byte {
	flags := byte(e.Outcome)
	if e.gone != 0 {
		flags |= flagGone
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint64(b, e.ID)
	if e.Outcome == Waiting {
		b = binary.AppendUvarint(b, uint64(e.Attempts))
		b = binary.AppendUvarint(b, uint64(e.Next))
	}
	if e.gone != 0 {
		b = binary.AppendUvarint(b, uint64(e.gone))
	}
	return b
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// parser reads a value; after the first failure it reads nothing more.
type parser struct {
	b   []byte
	err error
}

// open checks what every value of every format has, and returns what is between.
func open(b []byte, kind byte, what string) (*parser, error) {
	p := &parser{}
	if len(b) < 2+trailer {
		p.fail("%s has %d bytes, which is too short", what, len(b))
		return nil, p.err
	}
	body := b[:len(b)-trailer]
	if got := checksum(body); got != checksumOf(b) {
		p.fail("%s has checksum %08x, its bytes have %08x", what, checksumOf(b), got)
		return nil, p.err
	}
	if b[0] != format {
		return nil, fmt.Errorf("%s has format %d, this version reads %d: run the newer version that wrote it", what, b[0], format)
	}
	if b[1] != kind {
		p.fail("%s is of kind %q, must be %q", what, b[1], kind)
		return nil, p.err
	}
	p.b = body[2:]
	return p, nil
}

func (p *parser) fail(f string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(f, args...))
		p.b = nil
	}
}

func (p *parser) uvarint(limit uint64, what string) uint64 {
	v, n := binary.Uvarint(p.b)
	switch {
	case n <= 0:
		p.fail("%s is cut off or no number", what)
	case v > limit:
		p.fail("%s is %d, at most %d is possible", what, v, limit)
	default:
		p.b = p.b[n:]
		return v
	}
	return 0
}

func (p *parser) take(n int, what string) []byte {
	if n > len(p.b) {
		p.fail("%s is cut off", what)
		return make([]byte, min(n, 8))
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

// name reads a name behind last into buf, which holds last.
func (p *parser) name(last []byte) []byte {
	shared := int(p.uvarint(uint64(len(last)), "what a name shares with the one before"))
	n := int(p.uvarint(maxName, "the length of a name"))
	if p.err != nil {
		return last
	}
	if shared+n > maxName || shared+n == 0 {
		p.fail("a name has %d bytes, must have 1 to %d", shared+n, maxName)
		return last
	}
	return append(last[:shared:cap(last)], p.take(n, "a name")...)
}

func (p *parser) record(e *entry) {
	flags := p.take(1, "the outcome of a name")[0]
	e.Outcome = Outcome(flags & 3)
	if e.Outcome > Failed || flags&^flagsKnow != 0 {
		p.fail("the outcome of a name is %d, which is none", flags)
		return
	}
	e.ID = binary.BigEndian.Uint64(p.take(8, "an identity"))
	if e.Outcome == Waiting {
		e.Attempts = uint32(p.uvarint(math.MaxUint32, "a number of attempts"))
		e.Next = int64(p.uvarint(math.MaxInt64, "the time of a next attempt"))
	}
	if flags&flagGone != 0 {
		e.gone = uint32(p.uvarint(math.MaxUint32, "the time since a name is missing"))
		if e.gone == 0 {
			p.fail("a name is missing since never")
		}
		e.saved = e.gone
	}
}

// parseList reads a chunk or a journal.
func parseList(b []byte, what string) ([]entry, error) {
	p, err := open(b, kindList, what)
	if err != nil {
		return nil, err
	}
	var entries []entry
	var last []byte
	for len(p.b) > 0 {
		before := string(last)
		last = p.name(last)
		e := entry{name: string(last)}
		p.record(&e)
		if p.err == nil && e.name <= before {
			p.fail("name %.50q does not come after %.50q", e.name, before)
		}
		if p.err != nil {
			return nil, fmt.Errorf("%s: %w", what, p.err)
		}
		entries = append(entries, e)
	}
	return compact(entries), nil
}

// checksumOf is the checksum at the end of a value.
func checksumOf(value []byte) uint32 { return binary.BigEndian.Uint32(value[len(value)-trailer:]) }

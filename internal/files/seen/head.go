package seen

import (
	"encoding/binary"
	"fmt"
	"math"
)

// head says which chunks count.
type head struct {
	fence  int64
	nonce  uint64 // of the State that wrote it
	seq    uint64 // of its writes of the head
	listed uint32 // the last plausible listing: when, in s of Unix time; 0 for none
	names  uint32 // and how many names it had
	next   uint32 // the least number that no chunk ever had
	chunks []chunkRef
}

// chunkRef is a chunk as the head has it.
type chunkRef struct {
	number, count, sum uint32
	first              string // above the last name of the chunk before, at or below the first of this one
}

func (h *head) bytes() []byte {
	b := []byte{format, kindHead}
	b = binary.AppendUvarint(b, uint64(h.fence))
	b = binary.BigEndian.AppendUint64(b, h.nonce)
	for _, v := range []uint64{h.seq, uint64(h.listed), uint64(h.names), uint64(h.next)} {
		b = binary.AppendUvarint(b, v)
	}
	last := ""
	for _, c := range h.chunks {
		b = appendName(b, sharedPrefix(last, c.first), c.first)
		b = binary.AppendUvarint(b, uint64(c.number))
		b = binary.AppendUvarint(b, uint64(c.count))
		b = binary.BigEndian.AppendUint32(b, c.sum)
		last = c.first
	}
	return seal(b)
}

func parseHead(b []byte) (*head, error) {
	p, err := open(b, kindHead, "the head")
	if err != nil {
		return nil, err
	}
	h := &head{
		fence:  int64(p.uvarint(math.MaxInt64, "the fence")),
		nonce:  binary.BigEndian.Uint64(p.take(8, "the writer")),
		seq:    p.uvarint(math.MaxUint64, "the number of the write"),
		listed: uint32(p.uvarint(math.MaxUint32, "the time of the last listing")),
		names:  uint32(p.uvarint(math.MaxUint32, "the size of the last listing")),
		next:   uint32(p.uvarint(math.MaxUint32, "the next chunk")),
	}
	var last []byte
	for len(p.b) > 0 && p.err == nil {
		before := string(last)
		last = p.name(last)
		c := chunkRef{
			first:  string(last),
			number: uint32(p.uvarint(math.MaxUint32, "the number of a chunk")),
			count:  uint32(p.uvarint(maxValue, "the count of a chunk")),
			sum:    binary.BigEndian.Uint32(p.take(4, "the checksum of a chunk")),
		}
		switch {
		case p.err != nil:
		case c.first <= before:
			p.fail("chunk %d begins with %.50q, the one before with %.50q", c.number, c.first, before)
		case c.count == 0 || c.number >= h.next:
			p.fail("chunk %d has %d names, and the next number is %d", c.number, c.count, h.next)
		}
		h.chunks = append(h.chunks, c)
	}
	if p.err != nil {
		return nil, fmt.Errorf("the head: %w", p.err)
	}
	return h, nil
}

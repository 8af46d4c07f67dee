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
	listed uint32 // when what listings prove was last written, or the state was first opened, in s of Unix time
	names  uint32 // how many names the last plausible listing had
	next   uint32 // the least number that no chunk ever had
	chunks []chunkRef
}

// chunkRef is a chunk as the head has it. Chunks are in the order of their names, which the head does not have: however long those
// are, it has room for as many chunks.
type chunkRef struct {
	number, count, sum uint32
}

const (
	mostFixed = 64 // bytes of a head without chunks
	mostRef   = 12 // bytes of a chunk in it
	// maxChunks is how many chunks a head can have.
	maxChunks = (maxHead - mostFixed) / mostRef
)

func (h *head) bytes() []byte {
	b := []byte{format, kindHead}
	b = binary.AppendUvarint(b, uint64(h.fence))
	b = binary.BigEndian.AppendUint64(b, h.nonce)
	for _, v := range []uint64{h.seq, uint64(h.listed), uint64(h.names), uint64(h.next)} {
		b = binary.AppendUvarint(b, v)
	}
	for _, c := range h.chunks {
		b = binary.AppendUvarint(b, uint64(c.number))
		b = binary.AppendUvarint(b, uint64(c.count))
		b = binary.BigEndian.AppendUint32(b, c.sum)
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
	for len(p.b) > 0 && p.err == nil {
		c := chunkRef{
			number: uint32(p.uvarint(math.MaxUint32, "the number of a chunk")),
			count:  uint32(p.uvarint(maxValue, "the count of a chunk")),
			sum:    binary.BigEndian.Uint32(p.take(4, "the checksum of a chunk")),
		}
		switch {
		case p.err != nil:
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

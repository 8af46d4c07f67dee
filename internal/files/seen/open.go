package seen

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer"
)

const openTries = 4

// Open reads the state and takes it over: an earlier State can write nothing afterwards, and what crashes left is removed. It
// fails with ErrDamaged, with ErrLost when the claim does not stand, or with an error of the store, and may be repeated.
func Open(ctx context.Context, cp rebalancer.Checkpoint, o Options) (*State, error) {
	v, ok := cp.(rebalancer.VersionedCheckpoint)
	if !ok {
		return nil, fmt.Errorf("resource %q: files cannot be kept, because the checkpoint of the claim (%T) has no versions", o.Resource, cp)
	}
	if o.Pace == 0 {
		o.Pace = DefaultPace
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Most == 0 {
		o.Most = MaxNames
	}
	s := &State{
		cp: v, opt: o, writing: make(chan struct{}, 1), lastTidy: time.Now(), tried: map[uint64]*rewrite{},
		returned: map[string]bool{}, chunksMost: maxChunks,
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	s.nonce = binary.BigEndian.Uint64(b[:])
	var before *stored
	for range openTries {
		now, err := load(ctx, v)
		if err != nil {
			if now == nil || before != nil && now.headV == before.headV && now.jourV == before.jourV {
				return nil, s.wrap(err)
			}
			before = now // once more: a reading is no snapshot, somebody may have written meanwhile
			continue
		}
		if now.head.fence > o.Fence {
			return nil, s.wrap(fmt.Errorf("fence %d has it, ours is %d: %w", now.head.fence, o.Fence, rebalancer.ErrLost))
		}
		if err = s.take(ctx, now); !errors.Is(err, rebalancer.ErrStale) {
			if err != nil {
				return nil, s.wrap(err)
			}
			return s, nil
		}
	}
	return nil, s.wrap(fmt.Errorf("it changed %d times while it was read: %w", openTries, rebalancer.ErrStale))
}

// stored is the state as it was read.
type stored struct {
	head         *head
	headV, jourV int64
	table
	orphans []string
}

// load reads the state. After an error that what was read does not fit together, it is returned with its versions.
func load(ctx context.Context, cp rebalancer.VersionedCheckpoint) (*stored, error) {
	all, err := cp.LoadEntries(ctx)
	if err != nil {
		return nil, err
	}
	values := make(map[string][]byte, len(all))
	for k, e := range all {
		values[k] = e.Value
	}
	s, err := parse(values)
	s.headV, s.jourV = all[keyHead].Version, all[keyJournal].Version
	return s, err
}

// parse makes a state of the values of a checkpoint. Other keys than its own are ignored.
func parse(values map[string][]byte) (*stored, error) {
	s := &stored{head: &head{}}
	orphans := map[string]bool{}
	for k := range values {
		if strings.HasPrefix(k, prefixChunk) {
			orphans[k] = true
		}
	}
	var err error
	if b, ok := values[keyHead]; ok {
		if s.head, err = parseHead(b); err != nil {
			return s, err
		}
	} else if _, journal := values[keyJournal]; journal || len(orphans) > 0 {
		return s, fmt.Errorf("%w: it has no head; delete the keys below %q of the resource's checkpoint if every file may be worked again", ErrDamaged, Prefix)
	}
	before := ""
	for _, c := range s.head.chunks {
		l, err := c.leaf(values)
		if err != nil {
			return s, err
		}
		if l.first() <= before {
			return s, fmt.Errorf("%w: the names of chunk %d do not come after those of the one before", ErrDamaged, c.number)
		}
		before = l.last()
		s.leaves = append(s.leaves, l)
		s.count += len(l.entries)
		delete(orphans, chunkKey(c.number))
	}
	for k := range orphans {
		s.orphans = append(s.orphans, k)
	}
	return s, s.journal(values)
}

// leaf finds the chunk that the head means.
func (c *chunkRef) leaf(values map[string][]byte) (*leaf, error) {
	b, ok := values[chunkKey(c.number)]
	if !ok {
		return nil, fmt.Errorf("%w: chunk %d is missing", ErrDamaged, c.number)
	}
	entries, err := parseList(b, fmt.Sprintf("chunk %d", c.number))
	if err != nil {
		return nil, err
	}
	if len(entries) != int(c.count) || checksumOf(b) != c.sum {
		return nil, fmt.Errorf("%w: chunk %d is not the one that the head has", ErrDamaged, c.number)
	}
	return &leaf{number: c.number, sum: c.sum, size: len(b), entries: entries}, nil
}

func (s *stored) journal(values map[string][]byte) error {
	s.young = map[string]*entry{}
	b, ok := values[keyJournal]
	if !ok {
		return nil
	}
	entries, err := parseList(b, "the journal")
	if err != nil {
		return err
	}
	for i := range entries {
		if s.old(entries[i].name) == nil {
			s.count++
		}
		s.young[entries[i].name] = &entries[i]
	}
	return nil
}

// take writes a head of our own, and so ends what was before us.
func (s *State) take(ctx context.Context, from *stored) error {
	h := *from.head
	h.fence, h.nonce, h.seq = s.opt.Fence, s.nonce, 1
	if h.listed == 0 {
		h.listed = uint32(s.lastTidy.Unix())
	}
	changes := map[string][]byte{keyHead: h.bytes()}
	for _, k := range from.orphans {
		changes[k] = nil
	}
	versions, err := s.cp.SaveIf(ctx, map[string]int64{keyHead: from.headV, keyJournal: from.jourV}, changes)
	if err != nil {
		return err
	}
	s.headV, s.jourV, s.next = versions[keyHead], from.jourV, h.next
	s.seq, s.applied = 1, 1
	s.names, s.listedOld = int(h.names), int(h.names)
	if at := time.Unix(int64(h.listed), 0); at.Before(s.lastTidy) { // by whoever: a resource that moves often would never be tidied
		s.lastTidy = at
	}
	s.table = from.table
	return nil
}

// Read returns all that a resource's checkpoint knows, without taking it over: for people and tests.
func Read(ctx context.Context, cp rebalancer.Checkpoint) (map[string]Record, error) {
	values, err := cp.Load(ctx)
	if err != nil {
		return nil, err
	}
	s, err := parse(values)
	if err != nil {
		return nil, err
	}
	out := make(map[string]Record, s.count)
	s.each(func(e *entry) { out[e.name] = e.Record })
	return out, nil
}

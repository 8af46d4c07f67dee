package coord

import (
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// FormatMin and FormatMax are the range of format versions that this library reads. Every value begins with its
	// version; the coordinator writes the highest that all members read.
	FormatMin = 1
	// FormatMax is the newest format.
	FormatMax = 1

	// formatNext is what the next library writes, in tests of an upgrade: the layout is the same.
	formatNext = FormatMax + 1
)

// ErrFormat is wrapped by the decoding functions when a value cannot be read.
var ErrFormat = errors.New("unreadable value in the store")

// Settings is the group's one guarded entry, written by its first node or by Create.
type Settings struct {
	Mode   Mode   `json:"mode"`
	Origin Origin `json:"origin"`
	TTL    int64  `json:"ttl_ms"`
	Grace  int64  `json:"grace_ms"`
	Format int    `json:"format"`
	// MaxActive is how many nodes may hold resources at once; 0: all. FailBack lets a node of a higher priority take over
	// from one that is well.
	MaxActive int  `json:"max_active,omitempty"`
	FailBack  bool `json:"fail_back,omitempty"`
	// MaxMoving and MaxMovingNode bound how many resources of the group, and of one node, are in hand-over at a time; 0: no limit.
	MaxMoving     int `json:"max_moving,omitempty"`
	MaxMovingNode int `json:"max_moving_node,omitempty"`
	// Created names the incarnation of the store in which the group was created explicitly: it needs no grace in that one.
	Created string `json:"created,omitempty"`
	// Deleted marks a tombstone.
	Deleted bool `json:"deleted,omitempty"`
}

// Member is a node's own entry, bound to its session.
type Member struct {
	Node      string            `json:"node"`
	Instance  string            `json:"instance"`
	FormatMin int               `json:"format_min"`
	FormatMax int               `json:"format_max"`
	Version   string            `json:"version,omitempty"`
	Priority  int               `json:"priority,omitempty"`
	Weight    int               `json:"weight,omitempty"`
	Max       int               `json:"max,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Leaving   bool              `json:"leaving,omitempty"`
	// Static: the name outlives its process, and so does its share for a while.
	Static bool `json:"static,omitempty"`
	// Born orders the processes of a static name: the store's time (µs) when this one opened its first session, or later than that of
	// the one that it took over from. The store may go back to an entry of an older one.
	Born int64 `json:"born_us,omitempty"`
	// Draining: the node asks to be given nothing.
	Draining bool `json:"draining,omitempty"`
	// Stopped is the newest generation for which the node has stopped (GlobalBarrier).
	Stopped int64 `json:"stopped,omitempty"`
	// Declined are resources that the node could not open.
	Declined []string `json:"declined,omitempty"`
	// List is the node's static list when it is short; else it stands in ListParts entries, with ListHash over it.
	List      []string `json:"list,omitempty"`
	ListParts int      `json:"list_parts,omitempty"`
	ListHash  string   `json:"list_hash,omitempty"`
}

// Leader names the coordinator; the entry is bound to its session.
type Leader struct {
	Node string `json:"node"`
}

// Claim is the entry behind a node's hold on a resource, bound to its session. Its version is the fence.
type Claim struct {
	Resource string `json:"resource"`
	Node     string `json:"node"`
	Since    int64  `json:"since_us"` // the store's time, as far as the node knew it
}

// Assignment is what a node should hold. Leaving names, for what it should not hold any more, the next owner ("" for none).
type Assignment struct {
	Epoch      int64             `json:"epoch"`
	Generation int64             `json:"gen"`
	Share      []string          `json:"share,omitempty"`
	Leaving    map[string]string `json:"leaving,omitempty"`
	Parts      int               `json:"parts,omitempty"` // further entries with more of Share, Leaving and Paused
	// Paused are those of Share that are claimed, but not worked.
	Paused []string `json:"paused,omitempty"`
	// Drained: the node is given nothing because somebody asked for that.
	Drained bool `json:"drained,omitempty"`
	// ReservedUntil, when it is not 0, says that the node is static and has left: Share is kept for it until the store's time
	// is that (µs), and grants nothing.
	ReservedUntil int64 `json:"reserved_until_us,omitempty"`
	// Joined is the generation of the plan by which the node was first given anything: the greater, the newer the node; 0: not known.
	Joined int64 `json:"joined,omitempty"`
	// Late is how many of Share, its last, have come since a node was last planned for the first time.
	Late int `json:"late,omitempty"`
	// Why are the causes of the plan, for people and measures, with commas between them; "" when its coordinator does not tell.
	Why string `json:"why,omitempty"`
}

// Barrier is the state of a group in GlobalBarrier mode.
type Barrier struct {
	Generation int64 `json:"gen"`
	Open       bool  `json:"open"`
}

// Registration is a resource kept in the store.
type Registration struct {
	Name   string `json:"name"`
	Weight int    `json:"weight,omitempty"` // its load; 0 counts as 1
	// Require are labels, as "key=value", that a node must have to be given the resource; Prefer are those that it should have.
	Require []string `json:"require,omitempty"`
	Prefer  []string `json:"prefer,omitempty"`
}

// Control is what an operator asks for; its key says what. Keep: a paused resource stays claimed, so that it resumes at once.
type Control struct {
	Resource string `json:"resource,omitempty"`
	Node     string `json:"node,omitempty"`
	Keep     bool   `json:"keep,omitempty"`
}

// NodeStatus is what a node tells operators: why resources do not get on.
type NodeStatus struct {
	Troubles map[string]string `json:"troubles,omitempty"`
	// Last are the last errors of resources under the node's present claims, also when they get on again.
	Last map[string]LastError `json:"last,omitempty"`
	// Pending is, of a coordinator, how many resources are still to move when others have moved (Settings.MaxMoving).
	Pending int `json:"pending,omitempty"`
}

// LastError is what went wrong with a resource last, and when that was by its node's wall clock, in µs.
type LastError struct {
	Error string `json:"error"`
	At    int64  `json:"at_us"`
}

type nameList struct {
	Names []string `json:"names"`
}

// encode writes a value in the first format: its version, then JSON, whose maps are sorted. See inFormat.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // only types of this file come here, and each of them can be marshalled
		b = []byte("null")
	}
	return append([]byte{'0' + FormatMin}, b...)
}

func decode[T any](what string, b []byte) (T, error) {
	var v T
	if len(b) == 0 {
		return v, fmt.Errorf("%w: %s is empty", ErrFormat, what)
	}
	if f := int(b[0]) - '0'; f < FormatMin || f > formatNext {
		return v, fmt.Errorf("%w: %s has format %d, this library reads %d to %d: upgrade it", ErrFormat, what, f, FormatMin, FormatMax)
	}
	if err := json.Unmarshal(b[1:], &v); err != nil {
		return v, fmt.Errorf("%w: %s: %w", ErrFormat, what, err)
	}
	return v, nil
}

// EncodeSettings and its likes below are the only writers and readers of the values.
func EncodeSettings(s Settings) []byte { return encode(s) }

// DecodeSettings reads a value of SettingsKey.
func DecodeSettings(b []byte) (Settings, error) { return decode[Settings]("the group's settings", b) }

// DecodeMember reads a value of MemberKey.
func DecodeMember(b []byte) (Member, error) { return decode[Member]("a member entry", b) }

// DecodeLeader reads a value of LeaderKey.
func DecodeLeader(b []byte) (Leader, error) { return decode[Leader]("the leader entry", b) }

// DecodeClaim reads a value of ClaimKey.
func DecodeClaim(b []byte) (Claim, error) { return decode[Claim]("a claim", b) }

// DecodeBarrier reads a value of BarrierKey.
func DecodeBarrier(b []byte) (Barrier, error) { return decode[Barrier]("the barrier", b) }

// EncodeRegistration writes a value of ResourceKey.
func EncodeRegistration(r Registration) []byte { return encode(r) }

// DecodeRegistration reads a value of ResourceKey.
func DecodeRegistration(b []byte) (Registration, error) {
	return decode[Registration]("a registration", b)
}

// EncodeControl writes a value below ControlPrefix.
func EncodeControl(c Control) []byte { return encode(c) }

// DecodeControl reads a value below ControlPrefix.
func DecodeControl(b []byte) (Control, error) {
	return decode[Control]("what an operator asked for", b)
}

// DecodeNames reads a value below ListPrefix or DiscoveredPrefix.
func DecodeNames(b []byte) ([]string, error) {
	l, err := decode[nameList]("a list of names", b)
	return l.Names, err
}

// DecodeStatus reads a value of StatusKey.
func DecodeStatus(b []byte) (NodeStatus, error) { return decode[NodeStatus]("a node's status", b) }

package coord

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// The layout of a group's key space. Names of nodes have no "/"; names of resources may have any byte.
const (
	// SettingsKey holds the group's Settings.
	SettingsKey = "settings"
	// LeaderKey holds the Leader; its version is the epoch.
	LeaderKey = "leader"
	// BarrierKey holds the Barrier of a group in GlobalBarrier mode.
	BarrierKey = "barrier"

	// MemberPrefix is before the name of a node: its Member entry.
	MemberPrefix = "member/"
	// StatusPrefix is before the name of a node: its NodeStatus entry.
	StatusPrefix = "status/"
	// ListPrefix is before a node's name, "/" and a number: a part of a long static list.
	ListPrefix = "list/"
	// AssignmentPrefix is before a node's name and "/": its Assignment entry, and with a number after it, a further part.
	AssignmentPrefix = "assign/"
	// ClaimPrefix is before the key form of a resource: its Claim entry.
	ClaimPrefix = "claim/"
	// ResourcePrefix is before the key form of a resource: its registration.
	ResourcePrefix = "resource/"
	// DiscoveredPrefix is before a number: a part of the discovered list.
	DiscoveredPrefix = "discovered/"
	// ControlPrefix is before all that operators ask for; see Control.
	ControlPrefix = "control/"
	// AllCheckpoints is before the checkpoints of all resources; see CheckpointPrefix.
	AllCheckpoints = "checkpoint/"

	// CoordinatorAddress is woken when something concerns the coordinator.
	CoordinatorAddress = "coordinator"
	addressPrefix      = "node/"
)

// maxName is the longest name that stands in a key as it is.
const maxName = 512

// resourceKey is a resource's name as it stands in keys: itself, or a hash when it is long. The first byte
// tells them apart.
func resourceKey(name string) string {
	if len(name) <= maxName {
		return "=" + name
	}
	sum := sha256.Sum256([]byte(name))
	return "#" + hex.EncodeToString(sum[:]) + name[:64]
}

// ClaimKey is the key of a resource's claim.
func ClaimKey(resource string) string { return ClaimPrefix + resourceKey(resource) }

// ResourceKey is the key of a resource's registration.
func ResourceKey(resource string) string { return ResourcePrefix + resourceKey(resource) }

// MemberKey is the key of a node's member entry.
func MemberKey(node string) string { return MemberPrefix + node }

// StatusKey is the key of what a node reports of itself.
func StatusKey(node string) string { return StatusPrefix + node }

// AssignmentKey is the key of the first part of a node's assignment, and the prefix of all of them.
func AssignmentKey(node string) string { return AssignmentPrefix + node + "/" }

const (
	drainPrefix = ControlPrefix + "drain/"
	pinPrefix   = ControlPrefix + "pin/"
	movePrefix  = ControlPrefix + "move/"
	pausePrefix = ControlPrefix + "pause/"

	// PauseGroupKey holds a Control that pauses the whole group.
	PauseGroupKey = ControlPrefix + "pause-group"
)

// DrainKey is the key of a Control by which a node is given nothing any more.
func DrainKey(node string) string { return drainPrefix + node }

// PinKey is the key of a Control that ties a resource to a node.
func PinKey(resource string) string { return pinPrefix + resourceKey(resource) }

// MoveKey is the key of a Control that moves a resource to a node once; the coordinator deletes it.
func MoveKey(resource string) string { return movePrefix + resourceKey(resource) }

// PauseKey is the key of a Control that pauses a resource.
func PauseKey(resource string) string { return pausePrefix + resourceKey(resource) }

// CheckpointPrefix is before the keys of a resource's checkpoint.
func CheckpointPrefix(resource string) string {
	k := resourceKey(resource)
	return fmt.Sprintf("%s%d:%s/", AllCheckpoints, len(k), k)
}

// CheckpointOf splits a key below AllCheckpoints into the name of the resource and the key of its checkpoint. Of a name that is too long for keys only its
// form there is known, which begins with "#".
func CheckpointOf(key string) (resource, own string, ok bool) {
	rest, _ := strings.CutPrefix(key, AllCheckpoints)
	length, rest, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 1 || n >= len(rest) || rest[n] != '/' {
		return "", "", false
	}
	return strings.TrimPrefix(rest[:n], "="), rest[n+1:], true
}

// NodeAddress is woken when something concerns that node.
func NodeAddress(node string) string { return addressPrefix + node }

func part(prefix string, i int) string { return fmt.Sprintf("%s%06d", prefix, i) }

// nodeOfAssignment splits an assignment's key into the node's name and the number of the part ("" for the first).
func nodeOfAssignment(key string) (node, part string) {
	node, part, _ = strings.Cut(strings.TrimPrefix(key, AssignmentPrefix), "/")
	return node, part
}

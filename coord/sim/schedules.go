package sim

import "github.com/rebalancer-go/rebalancer/coord"

// The nodes of the schedules: the first coordinates.
const (
	lead = iota
	nodeA
	nodeB
	nodeC
)

// heldAnswer: a claim is answered, but the answer is on its way while the store goes back to before the claim, and the node accepts
// that. Nobody holds the claim any more when the answer arrives.
func heldAnswer() *Schedule {
	return &Schedule{Name: "answer of an earlier incarnation", Mode: coord.ResourceBarrier, play: func(d *director) {
		d.start(lead, nodeA)
		d.hold(of(nodeA, puts(coord.ClaimPrefix)))
		d.pin(nodeA)
		d.until("the claim", d.sent(of(nodeA, puts(coord.ClaimPrefix))))
		d.idle()
		d.store.snapshot()
		d.answerLater("the claim", of(nodeA, puts(coord.ClaimPrefix)))
		d.store.lose(d.now, 0, false)
		d.free()
		d.hold(of(nodeA, puts(coord.ClaimPrefix))) // what it claims again waits for the grace anyway
		d.pass(searchTTL / 5)                      // a renewal is refused, the claims are read, the incarnation is accepted
		d.answer()
		d.pass(searchTTL / 5)
		d.settled()
	}}
}

// lateClaim: the resource is given to A, on to B, and on to C, while A's claim is on its way and B has not read yet. Nobody held it
// when C was chosen, so A's entry still names B as the next owner.
func lateClaim() *Schedule {
	return &Schedule{Name: "claim that arrives two plans later", Mode: coord.ResourceBarrier, play: func(d *director) {
		claims, releases := of(nodeA, puts(coord.ClaimPrefix)), of(nodeA, deletes(coord.ClaimPrefix))
		d.start(lead, nodeA, nodeB, nodeC)
		d.hold(claims)
		d.hold(of(nodeB, hints))
		d.pin(nodeA)
		d.idle()
		d.pin(nodeB)
		d.idle()
		d.hold(of(nodeC, hints))
		d.pin(nodeC)
		d.idle()
		d.hold(releases)
		d.deliverOne("A's claim", claims)
		d.idle()
		d.deliverOne("C's hint", of(nodeC, hints)) // it finds the resource claimed by A, if A's claim was let through
		d.idle()
		d.prompt()
	}}
}

// lateRelease: A is to give the resource to B, and to C instead while its release is on its way.
func lateRelease() *Schedule {
	return &Schedule{Name: "release that names the next owner of the plan before", Mode: coord.ResourceBarrier, play: func(d *director) {
		releases := of(nodeA, deletes(coord.ClaimPrefix))
		d.start(lead, nodeA, nodeB, nodeC)
		d.pin(nodeA)
		d.idle()
		d.hold(releases)
		d.pin(nodeB)
		d.until("A's release", d.sent(releases))
		d.idle()
		d.hold(of(nodeA, hints))
		d.pin(nodeC)
		d.idle() // C finds that A holds it
		d.deliverOne("A's release", releases)
		d.idle()
		d.prompt()
	}}
}

// lateCommit: a group that was created explicitly needs no grace in its first incarnation, and so a claim of that one asks for none.
// A's claim is on its way while the resource is given on to B, who works it. Then the store goes back to before B's claim.
func lateCommit() *Schedule {
	return &Schedule{Name: "claim of an earlier incarnation", Mode: coord.ResourceBarrier, play: func(d *director) {
		claims, rejoins := of(nodeA, puts(coord.ClaimPrefix)), of(nodeA, puts(coord.MemberPrefix))
		d.create()
		d.start(lead, nodeA, nodeB)
		d.hold(claims)
		d.pin(nodeA)
		d.idle()
		d.store.snapshot()
		d.hold(of(nodeA, hints)) // it does not learn that it is B's now
		d.pin(nodeB)
		d.idle()
		d.store.lose(d.now, 0, false)
		d.hold(of(nodeB, renewals)) // B does not know yet
		d.hold(of(lead, anything))
		d.hold(rejoins)
		d.until("A to accept the incarnation", d.sent(rejoins))
		d.deliverOne("A's claim", claims)
		d.pass(searchTTL / 10)
		d.settled()
	}}
}

// lateWrite: a coordinator's plan is on its way for so long that its session ends. Nobody coordinates yet when it arrives.
func lateWrite() *Schedule {
	return &Schedule{Name: "plan of an ended session", Mode: coord.ResourceBarrier, play: func(d *director) {
		plans := of(lead, puts(coord.AssignmentPrefix))
		d.start(lead, nodeA)
		d.hold(plans)
		d.pin(nodeA)
		d.until("the plan", d.sent(plans))
		d.hold(of(lead, anything))
		d.hold(of(nodeA, puts(coord.LeaderKey)))
		d.until("A to stand for election", d.sent(of(nodeA, puts(coord.LeaderKey))))
		d.deliverOne("the plan", plans)
		d.settled()
	}}
}

// create founds the group as an operator does.
func (d *director) create() {
	ttl := int64(searchTTL / ms)
	d.store.put(d.now, coord.SettingsKey, coord.EncodeSettings(coord.Settings{Mode: d.sc.Mode, Origin: coord.OriginStatic, TTL: ttl, Grace: ttl,
		Format: coord.FormatMax, Created: d.store.incarnation}), "")
}

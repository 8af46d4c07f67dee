package sim

import "github.com/rebalancer-go/rebalancer/coord"

// Properties as violations name them.
const (
	overlap = "no overlap"
	covered = "work is covered"
	fences  = "fences grow"
	release = "no release while working"
	free    = "claims are free"
	deposed = "deposed coordinator"
	writer  = "one writer per term"
	barrier = "global barrier"
	settles = "settles"
	idle    = "idle costs one write per renewal"
)

// lostHint is a hand-over whose hints may be lost: two renewals must be enough to learn of it.
func lostHint() Scenario {
	return Scenario{Name: "hand-over with a lost hint", Nodes: 2, Late: 1, Resources: []string{"a", "b"}, Mode: coord.ResourceBarrier,
		Hints: true, Horizon: 4, Within: 3 * sec, Budget: Budget{Lost: 1}, Limit: 8000}
}

// by is a row that a schedule shows.
func by(x *Schedule, c *Cover, g Guarded) Guarded {
	g.Engine, g.Schedule, g.Cover = BySchedule, x, c
	return g
}

// in is a row that the worlds of a profile show.
func in(p Profile, g Guarded) Guarded {
	g.Profile = p
	return g
}

// ownEntry covers what tells an older process of a static name that it was superseded.
var ownEntry = Cover{"own entry", coord.GuardOwnEntry, "the older process finds that its member entry is another's, unless its answers are lost"}

func covers(c Cover, g Guarded) Guarded {
	g.Cover = &c
	return g
}

func machineGuards() []Guarded {
	any := func(name string, g coord.Guards, rule string, breaks ...string) Guarded {
		return Guarded{Name: name, Machine: g, Rule: rule, Breaks: breaks, Engine: BySimulation, Seeds: 600}
	}
	return []Guarded{
		any("trust", coord.GuardTrust, "work ends when the node's own trust does", covered, overlap),
		any("margin", coord.GuardMargin, "trust ends a margin before the session", covered, overlap),
		in(LateAnswers, any("sent", coord.GuardSent, "trust counts from the sending of the renewal", covered, overlap)),
		any("stop first", coord.GuardStopFirst, "a claim is released only after its worker stopped", release),
		any("release version", coord.GuardReleaseVersion, "a release names the version of the claim", release, covered),
		any("release answered", coord.GuardReleaseAnswered, "no restart while the own release is unanswered", covered, release),
		any("claim free", coord.GuardClaimFree, "a claim requires that the resource is free", free, overlap),
		any("epoch", coord.GuardEpoch, "a coordinator's writes check its term", deposed),
		any("barrier acks", coord.GuardBarrierAcks, "a generation opens only after all have stopped", barrier),
		any("barrier latch", coord.GuardBarrierLatch, "who stopped never restarts on an older barrier", barrier, settles),
		any("fence before rejoin", coord.GuardFenceRejoin, "everything is lost before a new session", covered, overlap),
		any("renew incarnation", coord.GuardRenewIncarnation, "F3: renewals name the incarnation", covered, overlap),
		any("re-read", coord.GuardReread, "F4: the own claims are read again in a new incarnation", covered, overlap),
		in(ForgetGlobal, any("same version", coord.GuardSameVersion, "F4: what is kept has the same version", covered)),
		by(heldAnswer(), &Cover{"re-read", coord.GuardReread, "an answer of another incarnation makes the node read its claims again, and nothing starts before that is done"},
			any("reply incarnation", coord.GuardReplyIncarnation, "F5: a claim counts only if its answer is of the accepted incarnation", covered)),
		any("own commit", coord.GuardOwnCommit, "F5: what was merely read is never worked", fences, covered, overlap),
		any("grace", coord.GuardGrace, "F2: claims wait for the grace", overlap),
		in(ForgetLate, any("lead reset", coord.GuardLeadReset, "F8: a new incarnation ends the term", settles, writer)),
		any("differs", coord.GuardDiffers, "F8: entries are compared for difference", settles, idle),
		any("renew assignment", coord.GuardRenewAssignment, "H1: a renewal names the assignment entry", settles),
		{Name: "renew waiting", Machine: coord.GuardRenewWaiting, Rule: "H1: a renewal names the claims waited for", Breaks: []string{settles},
			Engine: BySearch, Search: lostHint()},
		in(FailedReads, any("seen on apply", coord.GuardSeenOnApply, "H2: seen advances when a read was applied", settles)),
		any("digest", coord.GuardDigest, "H3: digests of the very list that was planned from", settles),
		by(lateClaim(), nil, any("claim assignment", coord.GuardClaimAssignment, "H4: claims check the assignment entry: a hand-over needs no renewal", settles)),
		by(lateRelease(), nil, any("release assignment", coord.GuardReleaseAssignment, "H4: releases check the assignment entry: a hand-over needs no renewal", settles)),
		in(HintsAlone, any("next rewrite", coord.GuardNextRewrite, "H5: an entry is rewritten when the next owner changes", settles)),
		in(StaticNames, covers(ownEntry, any("supersede", coord.GuardSupersede, "S1: a new process of a static name closes the session of the older one", settles))),
		in(StaticNames, any("own session", coord.GuardOwnSession, "S2: a claim that carries the own name is not the own claim", covered, fences, overlap)),
		in(StaticNames, any("superseded ends", coord.GuardSupersededEnds, "S4: a process that was superseded does not rejoin", settles)),
		in(StaticRaces, any(ownEntry.Name, coord.GuardOwnEntry, "S4: a process of a static name looks whether another one overwrote its member entry", settles)),
		in(StaticNames, any("reserved ends", coord.GuardReservedEnds, "S6: the coordinator is woken when a reserved share ends", settles)),
		in(StaticNames, any("elders", coord.GuardElders, "a process has stopped only when the older ones of its static name have", barrier)),
		any("store step", coord.GuardStoreStep, "a stepped store clock delays the opening of sources", overlap),
	}
}

func storeGuards() []Guarded {
	any := func(name string, g StoreGuards, rule string, breaks ...string) Guarded {
		return Guarded{Name: "store: " + name, Store: g, Rule: rule, Breaks: breaks, Engine: BySimulation, Seeds: 600}
	}
	return []Guarded{
		any("absent record", StoreAbsentRecord, "F1: data without its record is a new incarnation", covered, overlap),
		any("regrace", StoreRegrace, "F2: each loss begins a new grace", overlap),
		any("claim grace", StoreClaimGrace, "F2: a transaction waits for its grace", overlap),
		any("renewal compares", StoreRenewCompares, "F3: a renewal is refused in another incarnation", covered, overlap),
		by(lateCommit(), nil, any("commit compares", StoreCommitCompares, "F3: a commit is refused in another incarnation", overlap)),
		any("unique sessions", StoreUniqueSessions, "F6: session ids are never given twice", covered, release),
		any("clock versions", StoreClockVersions, "F7: versions take the store's time", writer, fences),
		any("expiry aware", StoreExpiryAware, "H1: entries of ended sessions read as absent", idle, settles),
		any("renewal of the living", StoreRenewAlive, "an ended session cannot be renewed", covered, overlap),
		by(lateWrite(), &Cover{"epoch", coord.GuardEpoch, "but for the settings, only coordinators write what outlives a session, and their leader entry ends with it"},
			any("commit of the living", StoreCommitAlive, "an ended session commits nothing", deposed)),
		any("put versions", StorePutVersions, "versions grow across delete and re-create", writer, fences),
		in(StaticNames, covers(ownEntry, any("supersede refuses", StoreSupersedeRefuses, "S1: a superseded session can neither be renewed nor bind anything", settles))),
		in(StaticNames, any("supersede keeps", StoreSupersedeKeeps, "S1, S5: what a superseded session holds stays until its end", covered, overlap)),
		any("atomic checks", StoreAtomicChecks, "checks that do not hold change nothing", deposed),
	}
}

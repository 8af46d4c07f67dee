------------------------------- MODULE Follower -------------------------------
(* What a node holds: it follows its assignment, claims, works, stops, releases.
   A claim or release is prompt (sent, applied and answered in one step), or slow:
   then anything may happen while it is on its way, which costs one fault. *)
EXTENDS Session

\* the assignment and the barrier are read and applied; what is not ours any more is revoked
Follow(n) ==
  /\ Calm(n) /\ Joined(n)
  /\ \/ AsgV(n) # 0 /\ AsgV(n) # node[n].seen
     \/ Mode = "global" /\ barrier.v # node[n].bar.v
  /\ LET p == [node[n] EXCEPT
           !.share = IF AsgV(n) = 0 THEN @ ELSE asg[n].share,
           !.seen  = IF AsgV(n) = 0 THEN @ ELSE AsgV(n),
           !.gen   = IF AsgV(n) = 0 THEN @ ELSE asg[n].gen,
           !.bar   = barrier,
           !.stop  = IF ~barrier.open /\ barrier.gen > @ THEN barrier.gen ELSE @]
     IN node' = [node EXCEPT ![n] = Revoked(p)]
  /\ UNCHANGED <<store, net, hist>>

------------------------------- \* claims
ClaimRequest(n, r, ans) == [n |-> n, r |-> r, s |-> node[n].s, m |-> member[n], av |-> node[n].seen, bv |-> node[n].bar.v, ans |-> ans]
\* The member entry is compared by its content, which stands for its version here.
ClaimHolds(q) ==
  /\ q.s \in live
  /\ G("claim free") => claim[q.r].s = None
  /\ member[q.n] = q.m
  /\ G("claim assignment") => AsgV(q.n) = q.av
  /\ Mode = "global" /\ G("barrier latch") => barrier.v = q.bv
ApplyClaim(q) == claim' = [claim EXCEPT ![q.r] = [s |-> q.s, v |-> NextV(@.v, @.s)]]
Obtained(n, r, c) == [node EXCEPT ![n].got[r] = c, ![n].ph[r] = IF Desired(n, r) THEN "working" ELSE "stopped"]

MayClaim(n, r) == Calm(n) /\ Joined(n) /\ ~node[n].leaving /\ node[n].ph[r] = "none" /\ Desired(n, r)

\* StartWork follows in the same step.
Claim(n, r) ==
  /\ MayClaim(n, r)
  /\ LET q == ClaimRequest(n, r, TRUE) IN ClaimHolds(q) /\ ApplyClaim(q)
  /\ node' = Obtained(n, r, claim'[r])
  /\ UNCHANGED <<live, member, leader, epoch, asg, barrier, listed, net, hist>>

SendClaim(n, r) ==
  /\ MayClaim(n, r) /\ Fault("late")
  /\ creqs' = creqs \cup {ClaimRequest(n, r, TRUE)}
  /\ node' = [node EXCEPT ![n].ph[r] = "asked"]
  /\ UNCHANGED <<store, pubs, rreqs, replies, wrong>>

ClaimArrives(q) ==
  /\ creqs' = creqs \ {q}
  /\ LET ok == ClaimHolds(q)
     IN /\ IF ok THEN ApplyClaim(q) ELSE UNCHANGED claim
        /\ replies' = IF q.ans THEN replies \cup {[k |-> "claim", n |-> q.n, r |-> q.r, s |-> q.s, ok |-> ok, v |-> claim'[q.r].v]} ELSE replies
  /\ UNCHANGED <<live, member, leader, epoch, asg, barrier, listed, pubs, rreqs, node, hist>>

ClaimAnswered(p) ==
  /\ p.k = "claim" /\ Calm(p.n) /\ replies' = replies \ {p}
  /\ node' = IF p.ok THEN Obtained(p.n, p.r, [s |-> p.s, v |-> p.v]) ELSE [node EXCEPT ![p.n].ph[p.r] = "none"]
  /\ UNCHANGED <<store, pubs, creqs, rreqs, hist>>

\* the outcome is unknown: the request may still arrive, its answer will not
ClaimUnknown(n, r) ==
  /\ Calm(n) /\ node[n].ph[r] = "asked"
  /\ creqs' = {IF q.n = n /\ q.r = r THEN [q EXCEPT !.ans = FALSE] ELSE q : q \in creqs}
  /\ replies' = {p \in replies : ~(p.k = "claim" /\ p.n = n /\ p.r = r)}
  /\ node' = [node EXCEPT ![n].ph[r] = "unsure"]
  /\ UNCHANGED <<store, pubs, rreqs, hist>>

ReadClaim(n, r) ==
  /\ Calm(n) /\ node[n].ph[r] = "unsure" /\ claim[r].s # node[n].s
  /\ node' = [node EXCEPT ![n].ph[r] = "none"]
  /\ UNCHANGED <<store, net, hist>>

\* a claim of this session that was read, but not obtained by an answered commit: it is not worked, but deleted, and claimed again
Ghost(n, r) ==
  /\ Calm(n) /\ node[n].ph[r] \in {"none", "unsure"} /\ claim[r].s = node[n].s
  /\ IF G("own commit")
     THEN /\ claim' = [claim EXCEPT ![r].s = None]
          /\ node' = [node EXCEPT ![n].ph[r] = "none"]
     ELSE /\ UNCHANGED claim
          /\ node' = Obtained(n, r, claim[r])
  /\ UNCHANGED <<live, member, leader, epoch, asg, barrier, listed, net, hist>>

------------------------------- \* work
\* the claim was kept: work goes on under it
StartWork(n, r) ==
  /\ Calm(n) /\ Desired(n, r)
  /\ node[n].ph[r] \in (IF G("release answered") THEN {"stopped"} ELSE {"stopped", "releasing", "retry"})
  /\ node' = [node EXCEPT ![n].ph[r] = "working"]
  /\ UNCHANGED <<store, net, hist>>

\* its source is closed and no handler of it runs
Stopped(n, r) ==
  /\ Running(n) /\ node[n].ph[r] \in {"draining", "lost"}
  /\ node' = [node EXCEPT ![n].ph[r] = IF @ = "lost" THEN "none" ELSE "stopped",
                          ![n].got[r] = IF node[n].ph[r] = "lost" THEN Free ELSE @]
  /\ UNCHANGED <<store, net, hist>>

CannotOpen(n, r) ==
  /\ Calm(n) /\ node[n].ph[r] = "working" /\ Fault("decline")
  /\ node' = [node EXCEPT ![n].ph[r] = "stopped", ![n].decl = @ \cup {r}]
  /\ UNCHANGED <<store, net, wrong>>
DeclineEnds(n, r) ==
  /\ Running(n) /\ r \in node[n].decl
  /\ node' = [node EXCEPT ![n].decl = @ \ {r}]
  /\ UNCHANGED <<store, net, hist>>

------------------------------- \* releases
\* what the assignment took away is given to whom it names, if it is still that one
ReleaseRequest(n, r, ans) ==
  [n |-> n, r |-> r, s |-> node[n].s, v |-> node[n].got[r].v, av |-> node[n].seen, ans |-> ans,
   chk |-> G("release assignment") /\ node[n].seen # 0 /\ r \notin node[n].share /\ Lets(node[n]) /\ ~node[n].evict]
AssignmentHolds(q) == q.chk => AsgV(q.n) = q.av
ApplyRelease(q) ==
  LET hit == q.s \in live /\ AssignmentHolds(q) /\ claim[q.r].s # None /\ (G("release version") => claim[q.r].v = q.v)
  IN /\ claim' = IF hit THEN [claim EXCEPT ![q.r].s = None] ELSE claim
     /\ wrong' = wrong \cup (IF hit /\ Handled(q.r) THEN {"released under a handler"} ELSE {})
GaveBack(n, r) == [node EXCEPT ![n].ph[r] = "none", ![n].got[r] = Free]

MayRelease(n, r) ==
  /\ Calm(n)
  /\ \/ node[n].ph[r] \in (IF G("stop first") THEN {"stopped"} ELSE {"stopped", "draining"}) /\ ~Desired(n, r)
     \/ node[n].ph[r] = "retry"

Release(n, r) ==
  /\ MayRelease(n, r)
  /\ LET q == ReleaseRequest(n, r, TRUE) IN AssignmentHolds(q) /\ ApplyRelease(q)
  /\ node' = IF node[n].ph[r] = "draining" THEN node ELSE GaveBack(n, r)
  /\ UNCHANGED <<live, member, leader, epoch, asg, barrier, listed, net, faults>>

SendRelease(n, r) ==
  /\ MayRelease(n, r) /\ Fault("late")
  /\ rreqs' = rreqs \cup {ReleaseRequest(n, r, TRUE)}
  /\ node' = [node EXCEPT ![n].ph[r] = IF @ = "draining" THEN @ ELSE "releasing"]
  /\ UNCHANGED <<store, pubs, creqs, replies, wrong>>

ReleaseArrives(q) ==
  /\ rreqs' = rreqs \ {q}
  /\ ApplyRelease(q)
  /\ replies' = IF q.ans THEN replies \cup {[k |-> "release", n |-> q.n, r |-> q.r, s |-> q.s, ok |-> AssignmentHolds(q), v |-> q.v]} ELSE replies
  /\ UNCHANGED <<live, member, leader, epoch, asg, barrier, listed, pubs, creqs, node, faults>>

ReleaseAnswered(p) ==
  /\ p.k = "release" /\ Calm(p.n) /\ replies' = replies \ {p}
  /\ node' = IF node[p.n].ph[p.r] # "releasing" THEN node
             ELSE IF p.ok THEN GaveBack(p.n, p.r) ELSE [node EXCEPT ![p.n].ph[p.r] = "stopped"]
  /\ UNCHANGED <<store, pubs, creqs, rreqs, hist>>

ReleaseUnknown(n, r) ==
  /\ Calm(n) /\ node[n].ph[r] = "releasing"
  /\ rreqs' = {IF q.n = n /\ q.r = r THEN [q EXCEPT !.ans = FALSE] ELSE q : q \in rreqs}
  /\ replies' = {p \in replies : ~(p.k = "release" /\ p.n = n /\ p.r = r)}
  /\ node' = [node EXCEPT ![n].ph[r] = "retry"]
  /\ UNCHANGED <<store, pubs, creqs, hist>>

------------------------------- \* the global barrier
\* nothing is held here any more, and the member entry says so
Ack(n) ==
  /\ Mode = "global" /\ Calm(n) /\ Joined(n)
  /\ LET p == node[n]
     IN /\ p.bar.v # 0 /\ ~p.bar.open /\ p.ack < p.bar.gen
        /\ G("stop before ack") => \A r \in R : p.ph[r] \in {"none", "unsure"}
        /\ node' = [node EXCEPT ![n].ack = p.bar.gen]
        /\ member' = [member EXCEPT ![n] = MemberOf(n, node'[n])]
  /\ UNCHANGED <<live, leader, epoch, asg, claim, barrier, listed, net, hist>>
=============================================================================

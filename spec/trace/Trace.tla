------------------------------- MODULE Trace -------------------------------
(* Replays recorded traces of machines of package coord against the base
   specification. A trace was put into an order first (package coord/trace): what
   the store did stands between the lines of the nodes. That order is only
   proposed: here each step must be one that the base allows, with the versions,
   sessions, fences and shares that were recorded, and after it the base's
   promises must hold.

   Steps of the base itself: Start, Lapse, Fence, Expire, Crash,
   Evict, SendClaim, ClaimArrives, ClaimAnswered, ClaimUnknown, ReleaseArrives,
   ReleaseAnswered, ReleaseUnknown, StartWork, Stopped, CannotOpen, DeclineEnds,
   Publish, WriteBarrier.

   The base takes in one step what takes real nodes several. For these steps, and
   no others, the trace has halves, or a step that is less demanding:
     OpenSession   also of a process that was told to leave meanwhile
     WriteMember   written as it was when it was sent; Ack is the node's half
     Campaign, StepDown   the store's half; Elected, Deposed are the node's
     Follow        applies what stood there when it was read, not what stands there now
     CloseSession, Finish   the store's half and the process's
     ReadClaim     a claim of unknown outcome was looked for; the look may be old
     SendGhost     a claim that was read, but not obtained, is given back
     SendRelease   of a process that no longer waits for a plan also with the check
                   that it had before
     Notice        the store began another incarnation and had lost nothing: what was
                   read before is forgotten (a store that forgets is module Forgets)
     ClaimKept     a claim is obtained, and work under it does not begin in the same step
     ClaimRefused, ReleaseRefused, ReleaseGone   a request was refused: whether it
                   had to be is not asked
   Plan has no step: what a coordinator makes its plan of (debouncing, weights,
   waiting for who is away) is not in the base. Each entry that it writes is a
   Publish of its own, in its term, over the version that it knew.            *)
EXTENDS Rebalance, Sequences
CONSTANT Traces   \* a sequence of traces; each a sequence of steps
VARIABLES
  t, i,      \* which trace, and its next step
  past,      \* [N -> [version -> what the assignment was]]
  bars,      \* [version -> what the barrier was]
  terms,     \* [epoch -> session]
  acks,      \* {<<session, generation>>}: what nodes have stopped for
  fresh      \* claims that were just obtained and are to be worked: StartWork is to follow
log   == <<past, bars, terms, acks, fresh>>
tvars == <<vars, t, i, past, bars, terms, acks, fresh>>

\* These are about plans, and large where groups are: they have no place here.
NoPlans == {}

\* TLC computes them once, and keeps them where it need not compute them again.
ASSUME TLCSet(1, Traces)
Step == TLCGet(1)[t][i]
Rest == i <= Len(TLCGet(1)[t])

\* An empty match is none: there are traces, each has steps, and something is worked in each.
ASSUME /\ Len(TLCGet(1)) > 0
       /\ \A k \in 1..Len(TLCGet(1)) : \E j \in 1..Len(TLCGet(1)[k]) : TLCGet(1)[k][j].a = "StartWork"

TraceInit ==
  /\ Init /\ t \in 1..Len(TLCGet(1)) /\ i = 1
  /\ past = [n \in N |-> 0 :> [gen |-> 0, share |-> {}]] /\ bars = 0 :> Closed0
  /\ terms = 0 :> None /\ acks = {} /\ fresh = {}

------------------------------- \* steps that the base takes together with others
Quietly == UNCHANGED vars
\* A process that leaves goes on until it hears that its session is closed.
LastWords(n) == Running(n) /\ Trusted(n) /\ node[n].leaving
SetLeaving(x) == /\ node' = [node EXCEPT ![x.n].leaving = TRUE] /\ UNCHANGED <<store, net, hist>>
SetEvict(x)   == /\ node[x.n].leaving
                 /\ IF Calm(x.n) /\ node[x.n].share # {} THEN Evict(x.n)
                    ELSE node' = [node EXCEPT ![x.n] = Revoked([@ EXCEPT !.evict = TRUE])] /\ UNCHANGED <<store, net, hist>>
SetAck(x) ==
  /\ Mode = "global" /\ ((Calm(x.n) /\ Joined(x.n)) \/ LastWords(x.n))
  /\ LET p == node[x.n]
     IN /\ p.bar.v # 0 /\ ~p.bar.open /\ p.ack < p.bar.gen /\ x.gen = p.bar.gen
        /\ \A r \in R : p.ph[r] \in {"none", "unsure"}
        /\ node' = [node EXCEPT ![x.n].ack = p.bar.gen]
  /\ UNCHANGED <<store, net, hist>>
\* A session that was asked for before the process was told to leave. It will be closed.
Opens(x) ==
  IF ~node[x.n].leaving THEN OpenSession(x.n)
  ELSE /\ Running(x.n) /\ node[x.n].s = None
       /\ LET k == node[x.n].k + 1
          IN node' = [node EXCEPT ![x.n].s = <<x.n, k>>, ![x.n].k = k, ![x.n].valid = TRUE] /\ live' = live \cup {<<x.n, k>>}
       /\ UNCHANGED <<member, leader, epoch, asg, claim, barrier, listed, net, hist>>
Notice(x) ==
  /\ Running(x.n) /\ node[x.n].s # None
  /\ node' = [node EXCEPT ![x.n] = Revoked([@ EXCEPT !.seen = 0, !.lead = 0, !.cold = FALSE, !.bar = Closed0, !.stop = 0, !.ack = 0])]
  /\ UNCHANGED <<store, net, hist>>
MemberArrives(x) ==
  /\ x.s \in live /\ member[x.n].s \in {None, x.s} \cup node[x.n].old
  /\ x.stopped = 0 \/ \E a \in acks : a[1] = x.s /\ a[2] >= x.stopped
  /\ member' = [member EXCEPT ![x.n] = [s |-> x.s, leaving |-> x.leaving, decl |-> x.decl, stopped |-> x.stopped]]
  /\ UNCHANGED <<live, leader, epoch, asg, claim, barrier, listed, net, node, hist>>
CampaignArrives(x) ==
  /\ x.s \in live /\ leader.s = None /\ member[x.n].s = x.s
  /\ epoch' = epoch + 1 /\ x.v = epoch' /\ leader' = [s |-> x.s, e |-> x.v]
  /\ UNCHANGED <<live, member, asg, claim, barrier, listed, net, node, hist>>
StepDownArrives(x) ==
  /\ x.s \in live /\ leader = [s |-> x.s, e |-> x.old] /\ leader' = NoLeader
  /\ UNCHANGED <<live, member, epoch, asg, claim, barrier, listed, net, node, hist>>
Elected(x) ==
  /\ node[x.n].s # None /\ x.e \in DOMAIN terms /\ terms[x.e] = node[x.n].s
  /\ node' = [node EXCEPT ![x.n].lead = x.e, ![x.n].cold = TRUE] /\ UNCHANGED <<store, net, hist>>
Deposed(x) ==
  /\ node[x.n].lead = x.e /\ leader.e # x.e
  /\ node' = [node EXCEPT ![x.n].lead = 0, ![x.n].cold = FALSE] /\ UNCHANGED <<store, net, hist>>
FollowRead(x) ==
  /\ Calm(x.n) \/ LastWords(x.n)
  /\ x.v \in DOMAIN past[x.n] /\ past[x.n][x.v] = [gen |-> x.gen, share |-> x.share]
  /\ x.bv \in DOMAIN bars
  /\ LET b == bars[x.bv]
         p == [node[x.n] EXCEPT !.share = x.share, !.seen = x.v, !.gen = x.gen, !.bar = b,
                                !.stop = IF ~b.open /\ b.gen > @ THEN b.gen ELSE @]
     IN node' = [node EXCEPT ![x.n] = Revoked(p)]
  /\ UNCHANGED <<store, net, hist>>
CloseArrives(x) ==
  /\ x.s \in live
  /\ node[x.n].s = x.s => node[x.n].leaving
  /\ ~\E r \in R : claim[r].s = x.s /\ Handled(r)
  /\ EndSession(x.s)
  /\ node' = [node EXCEPT ![x.n].old = @ \ {x.s}]
  /\ UNCHANGED <<epoch, asg, barrier, listed, net, hist>>
\* One that has not heard that its term is over may end as well: with its session the leader entry goes, now or when the request to close it arrives, or
\* when its time is over.
ProcessEnds(x) ==
  /\ Running(x.n) /\ node[x.n].leaving
  /\ \A r \in R : node[x.n].ph[r] \in {"none", "unsure"}
  /\ node' = [node EXCEPT ![x.n] = NoProcess(@.k)]
  /\ DropCalls(x.n)
  /\ UNCHANGED <<store, hist>>
ClaimLooked(x) ==
  /\ Calm(x.n) /\ node[x.n].ph[x.r] = "unsure"
  /\ node' = [node EXCEPT ![x.n].ph[x.r] = "none"]
  /\ UNCHANGED <<store, net, hist>>

\* the answers to the requests of n for r, and the requests themselves, are forgotten
Mine(q, x) == q.n = x.n /\ q.r = x.r /\ q.ans
ClaimRefused(x) ==
  /\ node[x.n].ph[x.r] = "asked"
  /\ ~\E p \in replies : p.k = "claim" /\ p.n = x.n /\ p.r = x.r
  /\ node' = [node EXCEPT ![x.n].ph[x.r] = "none"]
  /\ creqs' = {q \in creqs : ~Mine(q, x)}
  /\ UNCHANGED <<store, pubs, rreqs, replies, hist>>
ReleaseEnds(x, ph, c) ==
  /\ node[x.n].ph[x.r] = "releasing" /\ node[x.n].got[x.r].v = x.v
  /\ node' = [node EXCEPT ![x.n].ph[x.r] = ph, ![x.n].got[x.r] = c]
  /\ rreqs' = {q \in rreqs : ~Mine(q, x)}
  /\ replies' = {p \in replies : ~(p.k = "release" /\ p.n = x.n /\ p.r = x.r)}
  /\ UNCHANGED <<store, pubs, creqs, hist>>
ReleaseRefused(x) == ReleaseEnds(x, IF x.open THEN "retry" ELSE "stopped", node[x.n].got[x.r])
ReleaseGone(x)    == claim[x.r] # node[x.n].got[x.r] /\ ReleaseEnds(x, "none", Free)
SendGhost(x) ==
  /\ Calm(x.n) /\ node[x.n].ph[x.r] \in {"none", "unsure"}
  /\ node' = [node EXCEPT ![x.n].ph[x.r] = "none"]
  /\ rreqs' = rreqs \cup {[n |-> x.n, r |-> x.r, s |-> node[x.n].s, v |-> x.v, av |-> x.av, ans |-> FALSE, chk |-> x.av # 0]}
  /\ UNCHANGED <<store, pubs, creqs, replies, hist>>

------------------------------- \* steps of the base, as they were recorded
\* Of two like requests the one whose sender was told of the outcome is that which it still waits for.
OneOf(Q, x) == IF x.told /\ \E q \in Q : q.ans THEN CHOOSE q \in Q : q.ans
               ELSE IF \E q \in Q : ~q.ans THEN CHOOSE q \in Q : ~q.ans ELSE CHOOSE q \in Q : TRUE
Claims(x)   == {q \in creqs : q.n = x.n /\ q.r = x.r /\ q.s = x.s /\ q.av = x.av /\ (Mode = "global" => q.bv = x.bv)}
Releases(x) == {q \in rreqs : q.n = x.n /\ q.r = x.r /\ q.s = x.s /\ q.v = x.old}
SendsClaim(x) ==
  /\ x.av = node[x.n].seen /\ (Mode = "global" => x.bv = node[x.n].bar.v)
  /\ SendClaim(x.n, x.r)
ClaimCame(x) ==
  /\ Claims(x) # {}
  /\ LET q == OneOf(Claims(x), x) IN ClaimHolds(q) /\ ClaimArrives(q)
  /\ claim'[x.r].v = x.v
ClaimTold(x) == \E p \in replies : p.k = "claim" /\ p.n = x.n /\ p.r = x.r /\ p.ok /\ p.v = x.v /\ ClaimAnswered(p)
ClaimKept(x) ==
  \E p \in replies : /\ p.k = "claim" /\ p.n = x.n /\ p.r = x.r /\ p.ok /\ p.v = x.v /\ Calm(x.n)
                    /\ replies' = replies \ {p}
                    /\ node' = [node EXCEPT ![x.n].got[x.r] = [s |-> p.s, v |-> p.v], ![x.n].ph[x.r] = "stopped"]
                    /\ UNCHANGED <<store, pubs, creqs, rreqs, hist>>
\* One that was sent just before the process stopped to wait for a plan, in the same line, has its check still.
SendsRelease(x) ==
  /\ node[x.n].got[x.r].v = x.v
  /\ LET q == ReleaseRequest(x.n, x.r, TRUE)
     IN IF q.chk THEN x.av = q.av ELSE x.av = 0 \/ (node[x.n].evict /\ x.av = node[x.n].seen)
  /\ SendRelease(x.n, x.r)
ReleaseCame(x) ==
  /\ Releases(x) # {}
  /\ LET q == OneOf(Releases(x), x) IN AssignmentHolds(q) /\ claim[x.r].s # None /\ claim[x.r].v = x.old /\ q.s \in live /\ ReleaseArrives(q)
ReleaseTold(x) == \E p \in replies : p.k = "release" /\ p.n = x.n /\ p.r = x.r /\ p.ok /\ p.v = x.v /\ ReleaseAnswered(p)
Works1(x) == /\ node[x.n].got[x.r].v = x.v
             /\ IF <<x.n, x.r>> \in fresh THEN node[x.n].ph[x.r] = "working" /\ Trusted(x.n) /\ Quietly ELSE StartWork(x.n, x.r)
Ends(x)   == node[x.n].got[x.r].v = x.v /\ Stopped(x.n, x.r)
Fails(x)  == /\ node[x.n].got[x.r].v = x.v
             /\ IF node[x.n].ph[x.r] = "working" THEN CannotOpen(x.n, x.r)
                ELSE /\ node[x.n].ph[x.r] \in {"draining", "lost"}
                     /\ node' = [node EXCEPT ![x.n].ph[x.r] = IF @ = "lost" THEN "none" ELSE "stopped",
                                             ![x.n].got[x.r] = IF node[x.n].ph[x.r] = "lost" THEN Free ELSE @,
                                             ![x.n].decl = IF node[x.n].ph[x.r] = "lost" THEN @ ELSE @ \cup {x.r}]
                     /\ UNCHANGED <<store, net, hist>>
Entry(x) ==
  LET q == [k |-> "plan", n |-> x.n, s |-> x.s, e |-> x.ldr, gen |-> x.gen, w |-> x.m :> [old |-> x.old, del |-> x.open, share |-> x.share], bv |-> 0, ans |-> FALSE]
  IN /\ TermHolds(q) /\ leader.s = x.s /\ AsgV(x.m) = x.old /\ (~x.open => x.e = x.ldr)
     /\ Publish(q)
     /\ ~x.open => asg'[x.m].v = x.v
Turn(x) ==
  LET q == [k |-> "bar", n |-> x.n, s |-> x.s, e |-> x.ldr, gen |-> x.gen, open |-> x.open, bv |-> x.old, ans |-> FALSE]
  IN TermHolds(q) /\ leader.s = x.s /\ barrier.v = x.old /\ x.gen >= barrier.gen /\ WriteBarrier(q) /\ barrier'.v = x.v

------------------------------- \* what a node says of itself
Agrees(says, ph) == says = ph \/ (says = "claimed" /\ ph = "stopped") \/ (says = "stopped" /\ ph = "retry")
Says(x) ==
  /\ LET p == node[x.n]
     IN /\ p.s = x.s /\ p.lead = x.e /\ p.seen = x.v /\ p.gen = x.gen /\ p.bar.v = x.bv /\ p.ack = x.stopped
        /\ p.leaving = x.leaving /\ p.share = x.share
        /\ \A r \in R : LET E == {y \in x.res : y[1] = r}
                        IN IF E = {} THEN p.ph[r] \in {"none", "asked", "unsure"}
                           ELSE \A y \in E : Agrees(y[2], p.ph[r]) /\ p.got[r].v = y[3]
        /\ ~\E r \in R : <<x.n, r>> \in fresh
  /\ Quietly

Do(x) ==
  CASE x.a = "State"           -> Says(x)
    [] x.a = "Start"           -> Start(x.n)
    [] x.a = "OpenSession"     -> Opens(x) /\ node'[x.n].s = x.s
    [] x.a = "Renew"           -> x.s \in live /\ Quietly
    [] x.a = "Lapse"           -> Lapse(x.n)
    [] x.a = "Fence"           -> node[x.n].s = x.s /\ Fence(x.n)
    [] x.a = "Expire"          -> Expire(x.s)
    [] x.a = "Notice"          -> Notice(x)
    [] x.a = "CloseSession"    -> CloseArrives(x)
    [] x.a = "WriteMember"     -> MemberArrives(x)
    [] x.a = "Leave"           -> SetLeaving(x)
    [] x.a = "Evict"           -> SetEvict(x)
    [] x.a = "Finish"          -> ProcessEnds(x)
    [] x.a = "Crash"           -> Crash(x.n)
    [] x.a = "Follow"          -> FollowRead(x)
    [] x.a = "Ack"             -> SetAck(x)
    [] x.a = "SendClaim"       -> SendsClaim(x)
    [] x.a = "ClaimArrives"    -> ClaimCame(x)
    [] x.a = "ClaimAnswered"   -> ClaimTold(x)
    [] x.a = "ClaimKept"       -> ClaimKept(x)
    [] x.a = "ClaimRefused"    -> ClaimRefused(x)
    [] x.a = "ClaimUnknown"    -> ClaimUnknown(x.n, x.r)
    [] x.a = "ReadClaim"       -> ClaimLooked(x)
    [] x.a = "SendGhost"       -> SendGhost(x)
    [] x.a = "StartWork"       -> Works1(x)
    [] x.a = "Revoke"          -> node[x.n].ph[x.r] = "draining" /\ node[x.n].got[x.r].v = x.v /\ Quietly
    [] x.a = "Stopped"         -> Ends(x)
    [] x.a = "CannotOpen"      -> Fails(x)
    [] x.a = "DeclineEnds"     -> DeclineEnds(x.n, x.r)
    [] x.a = "SendRelease"     -> SendsRelease(x)
    [] x.a = "ReleaseArrives"  -> ReleaseCame(x)
    [] x.a = "ReleaseAnswered" -> ReleaseTold(x)
    [] x.a = "ReleaseGone"     -> ReleaseGone(x)
    [] x.a = "ReleaseRefused"  -> ReleaseRefused(x)
    [] x.a = "ReleaseUnknown"  -> ReleaseUnknown(x.n, x.r)
    [] x.a = "Campaign"        -> CampaignArrives(x)
    [] x.a = "StepDown"        -> StepDownArrives(x)
    [] x.a = "Elected"         -> Elected(x)
    [] x.a = "Deposed"         -> Deposed(x)
    [] x.a \in {"Publish", "Forget"} -> Entry(x)
    [] x.a = "WriteBarrier"    -> Turn(x)
    [] OTHER                   -> FALSE

\* a request is carried out after the line in which it was sent, and before that in which its outcome was told
InTime(x) == "sent" \in DOMAIN x => x.sent <= x.l /\ (x.told => x.l <= x.answered)

Remember(x) ==
  /\ past' = [n \in N |-> IF asg'[n].in /\ asg'[n].v # asg[n].v THEN (asg'[n].v :> [gen |-> asg'[n].gen, share |-> asg'[n].share]) @@ past[n] ELSE past[n]]
  /\ bars' = IF barrier' = barrier THEN bars ELSE (barrier'.v :> barrier') @@ bars
  /\ terms' = IF epoch' = epoch THEN terms ELSE (epoch' :> leader'.s) @@ terms
  /\ acks' = IF x.a = "Ack" THEN acks \cup {<<node[x.n].s, x.gen>>} ELSE acks
  /\ fresh' = IF x.a = "ClaimAnswered" /\ node'[x.n].ph[x.r] = "working" THEN fresh \cup {<<x.n, x.r>>}
              ELSE IF x.a = "StartWork" THEN fresh \ {<<x.n, x.r>>} ELSE fresh

Replay == /\ Rest
          /\ LET x == Step IN Do(x) /\ InTime(x) /\ Remember(x)
          /\ i' = i + 1 /\ UNCHANGED t
\* a trace of which no step is left goes on doing nothing; any other that cannot go on is a deadlock, and refused
Over   == ~Rest /\ UNCHANGED tvars
TraceNext == Replay \/ Over
TraceSpec == TraceInit /\ [][TraceNext]_tvars
=============================================================================

------------------------------- MODULE Group -------------------------------
(* A group of nodes N that share resources R through one linearizable store:
   what there is (constants, variables, first state) and what the other modules
   of the base share. Rebalance puts the parts together.

   Names are those of package coord. An event or action of coord and the step
   of this specification that stands for it:

     Start                     Start                    this node's process begins
     OpenSession, Opened       OpenSession
     Renew, Renewed            Renew; refused: Fence
     Commit of a member entry  Join, WriteMember        Ack: of "I have stopped"
     Read, ReadDone            Follow                   assignment and barrier are applied
                               ReadClaim, Ghost         a claim of unknown outcome is looked at
                               LeaderSeen               elected or deposed by what was read
     Commit of the leader      Campaign, StepDown
     Read of the coordinator   Plan                     and the decision that follows at once
     Commit of assignments     Publish, PublishPart     WriteBarrier; GiveUpPublish: no answer
     Commit of claims          Claim                    promptly; StartWork follows in the same step
                               SendClaim, ClaimArrives, ClaimAnswered, ClaimUnknown    slowly
     Commit of releases        Release                  promptly
                               SendRelease, ReleaseArrives, ReleaseAnswered, ReleaseUnknown
     StartWork                 with Claim and ClaimAnswered; StartWork: under a claim that was kept
     Revoke                    with Follow and Evict    work becomes draining
     Lose                      with Fence               work becomes lost
     Stopped                   Stopped
     CannotOpen                CannotOpen, DeclineEnds
     Leave, Finish             Leave, Evict, Finish     Finish closes the session
     CloseSession, Closed      CloseSession             of a session that was given up
     Doubt, Stuck, Listen, Hinted, NoHints, Troubles, Notify, Tick, Drain: no step (see README.md)
     Supersede, Superseded     module StaticNames       List, Listed: AddResource, RemoveResource *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS
  N, R,        \* nodes and resources
  None,        \* no session, no node
  Mode,        \* "resource" | "global": the barrier
  Sticky,      \* TRUE: a plan moves as little as it can; FALSE: any balanced plan
  Ready,       \* nodes that are members in the first state
  Faults,      \* which may happen: "crash" "freeze" "cut" "lead" "leave" "decline" "list" "late" "part"
  MaxFaults,   \* how many of them
  Off          \* guards that are removed

VARIABLES
  \* ---- the store ----
  live,        \* sessions that have not ended; a session is <<node, number>>
  member,      \* [N -> its member entry]; vanishes with its session, as do leader and claims
  leader,      \* [s |-> session or None, e |-> version of the entry, which is the epoch]
  epoch,       \* the last version that was given to the leader entry
  asg,         \* [N -> assignment [in |-> it is there, v |-> last version, ep, gen, share]]
  claim,       \* [R -> [s |-> session or None, v |-> last version]]; the version is the fence
  barrier,     \* [v |-> version, gen, open]; unused with Mode = "resource"
  listed,      \* the resources that there are
  \* ---- requests and answers on their way; ans: their sender waits for the answer ----
  pubs,        \* a coordinator's writes: assignments, or the barrier
  creqs,       \* claims
  rreqs,       \* releases
  replies,     \* answers to slow claims and releases
  \* ---- the nodes ----
  node,        \* [N -> what this node's process knows]; see NoProcess
  \* ---- history ----
  faults,      \* how many there were
  wrong        \* promises that a step has broken

store == <<live, member, leader, epoch, asg, claim, barrier, listed>>
net   == <<pubs, creqs, rreqs, replies>>
hist  == <<faults, wrong>>
vars  == <<live, member, leader, epoch, asg, claim, barrier, listed, pubs, creqs, rreqs, replies, node, faults, wrong>>

G(guard) == guard \notin Off

Free     == [s |-> None, v |-> 0]
NoMember == [s |-> None, leaving |-> FALSE, decl |-> {}, stopped |-> 0]
NoLeader == [s |-> None, e |-> 0]
Closed0  == [v |-> 0, gen |-> 0, open |-> FALSE]

(* What a process knows that has just begun. ph is the phase of each resource:
     "none"                    nothing is held
     "asked"                   a slow claim is unanswered
     "unsure"                  its outcome is unknown: it is to be read
     "working" "draining"      a worker runs; draining: it was told to end
     "stopped"                 held, and no worker runs
     "releasing"               a slow release is unanswered
     "retry"                   its outcome is unknown: it is sent again until it is known
     "lost"                    a worker runs that was told that its claim is lost *)
NoProcess(k) == [
  up      |-> "down",                        \* "up" | "frozen" | "down"
  s       |-> None,                          \* the session
  k       |-> k,                             \* how many sessions were opened under this name
  old     |-> {},                            \* sessions of this process that were given up
  valid   |-> FALSE,                         \* the session is trusted: the node's clock has not passed trusted-until
  leaving |-> FALSE, evict |-> FALSE,
  decl    |-> {},                            \* resources that were declined
  share   |-> {}, seen |-> 0, gen |-> 0,     \* the assignment that was applied, its version, its generation
  bar     |-> Closed0, stop |-> 0, ack |-> 0, \* the barrier as read; generations it began to stop for, and has stopped for
  ph      |-> [r \in R |-> "none"],
  got     |-> [r \in R |-> Free],            \* session and version of the claim
  lead    |-> 0,                             \* the epoch this node coordinates in; 0: it does not
  cold    |-> FALSE]                         \* every entry is to be written anew

MemberOf(n, p) == [s |-> p.s, leaving |-> p.leaving, decl |-> p.decl, stopped |-> p.ack]

Init ==
  /\ live = {<<n, 1>> : n \in Ready}
  /\ node = [n \in N |-> IF n \in Ready THEN [NoProcess(1) EXCEPT !.up = "up", !.s = <<n, 1>>, !.valid = TRUE] ELSE NoProcess(0)]
  /\ member = [n \in N |-> IF n \in Ready THEN MemberOf(n, node[n]) ELSE NoMember]
  /\ leader = NoLeader /\ epoch = 0
  /\ asg = [n \in N |-> [in |-> FALSE, v |-> 0, ep |-> 0, gen |-> 0, share |-> {}]]
  /\ claim = [r \in R |-> Free] /\ barrier = Closed0 /\ listed = R
  /\ pubs = {} /\ creqs = {} /\ rreqs = {} /\ replies = {}
  /\ faults = 0 /\ wrong = {}

Fault(kind) == kind \in Faults /\ faults < MaxFaults /\ faults' = faults + 1

Running(n) == node[n].up = "up"
Trusted(n) == node[n].s # None /\ (G("trust") => node[n].valid)
\* the process runs and trusts its session; the store answers it
Calm(n)    == Running(n) /\ Trusted(n) /\ node[n].s \in live
Joined(n)  == node[n].s # None /\ member[n].s = node[n].s
Members    == {n \in N : member[n].s # None}

\* versions as a check sees them: 0 is an absent entry
AsgV(n)    == IF asg[n].in THEN asg[n].v ELSE 0
ClaimV(r)  == IF claim[r].s = None THEN 0 ELSE claim[r].v

\* with the resource barrier always; else when the barrier is open for the very generation that was assigned, and not older
\* than the one that this node has stopped for
Lets(p) ==
  \/ Mode = "resource"
  \/ /\ p.bar.open \/ (~G("barrier latch") /\ p.bar.gen > 0)
     /\ p.bar.gen = p.gen
     /\ G("barrier latch") => p.bar.gen >= p.stop
Desires(p, r) == r \in p.share \ p.decl /\ ~p.evict /\ Lets(p)
Desired(n, r) == Desires(node[n], r)

\* the worker counts until the node's trust ends, or it was told that its claim is lost
Works(n, r) == node[n].ph[r] \in {"working", "draining"} /\ Trusted(n)
Runs(n, r)  == node[n].ph[r] \in {"working", "draining", "lost"}
\* a handler runs somewhere under the claim as it stands
Handled(r)  == claim[r].s # None /\ \E n \in N : Runs(n, r) /\ node[n].got[r] = claim[r]

\* what a process revokes that comes to know p
Revoked(p) == [p EXCEPT !.ph = [r \in R |-> IF p.ph[r] = "working" /\ ~Desires(p, r) THEN "draining" ELSE p.ph[r]]]

\* nobody waits for the answers to n's requests any more
Deaf(n, qs) == {IF q.n = n THEN [q EXCEPT !.ans = FALSE] ELSE q : q \in qs}
DropCalls(n) == /\ pubs' = Deaf(n, pubs) /\ creqs' = Deaf(n, creqs) /\ rreqs' = Deaf(n, rreqs)
                /\ replies' = {p \in replies : p.n # n}

\* session s is over, and all that is bound to it
EndSession(s) ==
  /\ live' = live \ {s}
  /\ member' = [n \in N |-> IF member[n].s = s THEN NoMember ELSE member[n]]
  /\ leader' = IF leader.s = s THEN NoLeader ELSE leader
  /\ claim' = [r \in R |-> IF claim[r].s = s THEN [claim[r] EXCEPT !.s = None] ELSE claim[r]]

NextV(v, was) == IF was = None /\ ~G("put versions") THEN 1 ELSE v + 1
=============================================================================

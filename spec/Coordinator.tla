------------------------------ MODULE Coordinator ------------------------------
(* Election, plans, their publication, and the global barrier. Claims are safe
   without any of it: two coordinators at once can do no harm. *)
EXTENDS Follower

Campaign(n) ==
  /\ Calm(n) /\ Joined(n) /\ ~node[n].leaving /\ node[n].lead = 0 /\ leader.s = None
  /\ epoch' = NextV(epoch, None) /\ leader' = [s |-> node[n].s, e |-> epoch']
  /\ \/ node' = [node EXCEPT ![n].lead = epoch', ![n].cold = TRUE] /\ UNCHANGED faults
     \/ Fault("late") /\ UNCHANGED node           \* the answer is lost: LeaderSeen
  /\ UNCHANGED <<live, member, asg, claim, barrier, listed, net, wrong>>

\* the leader entry was read: it is ours, or no longer
LeaderSeen(n) ==
  /\ Calm(n)
  /\ LET is == IF leader.s = node[n].s THEN leader.e ELSE 0
     IN is # node[n].lead /\ node' = [node EXCEPT ![n].lead = is, ![n].cold = (is # 0)]
  /\ UNCHANGED <<store, net, hist>>

\* an operator makes the coordinator step down
LoseLeader ==
  /\ leader.s # None /\ Fault("lead") /\ leader' = NoLeader
  /\ UNCHANGED <<live, member, epoch, asg, claim, barrier, listed, net, node, wrong>>

------------------------------- \* what to plan
\* E: for each resource the nodes that may have it. A best map gives it to one of them where there is one, as evenly as that allows.
Load(f, n) == Cardinality({r \in R : f[r] = n})
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE x \in S : TRUE IN f[x] + Sum(f, S \ {x})
Uneven(f)  == Sum([n \in N |-> Load(f, n) * Load(f, n)], N)
AllMaps    == [R -> N \cup {None}]
Best == [E \in [R -> SUBSET N] |->
  LET A == {f \in AllMaps : \A r \in R : IF E[r] = {} THEN f[r] = None ELSE f[r] \in E[r]}
  IN {f \in A : \A g \in A : Uneven(f) <= Uneven(g)}]

Planned(n)  == {m \in Members : ~member[m].leaving /\ ~(m = n /\ node[n].leaving)}
May(S)      == [r \in R |-> {m \in S : r \in listed /\ r \notin member[m].decl}]
ShareOf(m)  == IF asg[m].in THEN asg[m].share ELSE {}
\* who has what by the entries as they stand; while they are half written, two may have one resource
Current(E)  == {f \in AllMaps : \A r \in R : LET H == {m \in E[r] : r \in ShareOf(m)} IN IF H = {} THEN f[r] = None ELSE f[r] \in H}
Moves(f, g) == Cardinality({r \in R : f[r] # g[r]})
Targets(f, E) == IF f \in Best[E] THEN {f}
                 ELSE IF Sticky THEN {g \in Best[E] : \A h \in Best[E] : Moves(f, g) <= Moves(f, h)}
                 ELSE Best[E]
Given(f, m) == {r \in R : f[r] = m}

\* what is to be written so that the entries say f: for the nodes planned for, those that leave, and those that are gone
Writes(n, f, all) ==
  LET S == Planned(n)
      W == {m \in N : IF m \in S THEN all \/ ~asg[m].in \/ asg[m].share # Given(f, m)
                      ELSE asg[m].in /\ (m \notin Members \/ all \/ asg[m].share # {})}
  IN [m \in W |-> [old |-> AsgV(m), del |-> m \notin Members, share |-> IF m \in S THEN Given(f, m) ELSE {}]]
MovesAny(n, f) == \E m \in N : ShareOf(m) # (IF m \in Planned(n) THEN Given(f, m) ELSE {})

\* The fewest moves, by counting: what has no owner, and what is too much where it is. Only where all may have all.
Excess(f, S) == LET q == Cardinality({r \in R : r \in listed}) \div Cardinality(S)
                    x == Cardinality(listed) % Cardinality(S)
                    over == {m \in S : Load(f, m) > q}
                    sum  == Sum([m \in S |-> IF m \in over THEN Load(f, m) - q ELSE 0], S)
                IN sum - (IF x < Cardinality(over) THEN x ELSE Cardinality(over))
Fewest(f, g, n) ==
  LET S == Planned(n)
  IN Sticky /\ S # {} /\ (\A m \in S : member[m].decl = {}) =>
       Moves(f, g) <= Cardinality({r \in listed : f[r] = None}) + Excess(f, S)

------------------------------- \* plans
Waits(n) == \E q \in pubs : q.n = n /\ q.ans
Plans(n, f, all, gen) ==
  [k |-> "plan", n |-> n, s |-> node[n].s, e |-> node[n].lead, gen |-> gen, w |-> Writes(n, f, all), bv |-> barrier.v, ans |-> TRUE]
Turns(n, gen, open) ==
  [k |-> "bar", n |-> n, s |-> node[n].s, e |-> node[n].lead, gen |-> gen, open |-> open, bv |-> barrier.v, ans |-> TRUE]

Closing == Mode = "global" /\ barrier.v # 0 /\ ~barrier.open
\* every member has stopped for the closed barrier, and nobody holds a claim who is no member
AllStopped == /\ \A m \in Members : member[m].stopped >= barrier.gen
              /\ \A r \in R : claim[r].s # None => claim[r].s[1] \in Members

\* everything is read, and what is due is sent
Plan(n) ==
  /\ Calm(n) /\ Joined(n) /\ node[n].lead # 0 /\ ~Waits(n)
  /\ LET E == May(Planned(n))
     IN \E f \in Current(E) : \E g \in Targets(f, E) :
        LET some == DOMAIN Writes(n, g, node[n].cold) # {}
        IN /\ IF Closing
              THEN G("barrier acks") => AllStopped
              ELSE some \/ node[n].cold
           /\ pubs' = IF Closing THEN pubs \cup {IF DOMAIN Writes(n, g, TRUE) = {} THEN Turns(n, barrier.gen, TRUE) ELSE Plans(n, g, TRUE, barrier.gen)}
                      ELSE IF ~some THEN pubs
                      ELSE IF Mode = "global" /\ MovesAny(n, g) THEN pubs \cup {Turns(n, barrier.gen + 1, FALSE)}
                      ELSE pubs \cup {Plans(n, g, node[n].cold, barrier.gen)}
           /\ node' = IF some \/ Closing THEN node ELSE [node EXCEPT ![n].cold = FALSE]
           /\ wrong' = IF Fewest(f, g, n) THEN wrong ELSE wrong \cup {"moved too much"}
  /\ UNCHANGED <<store, creqs, rreqs, replies, faults>>

TermHolds(q) == q.s \in live /\ (G("epoch") => leader.e = q.e)
Written(q, m) ==
  IF q.w[m].del THEN [in |-> FALSE, v |-> asg[m].v, ep |-> q.e, gen |-> 0, share |-> {}]
  ELSE [in |-> TRUE, v |-> IF ~asg[m].in /\ ~G("put versions") THEN 1 ELSE asg[m].v + 1, ep |-> q.e, gen |-> q.gen, share |-> q.w[m].share]
\* the writes of q to the entries of W, each a transaction of its own
ApplyWrites(q, W) ==
  LET ok == {m \in W : TermHolds(q) /\ AsgV(m) = q.w[m].old}
  IN /\ asg' = [m \in N |-> IF m \in ok THEN Written(q, m) ELSE asg[m]]
     /\ wrong' = wrong \cup (IF ok # {} /\ leader.e # q.e THEN {"a deposed coordinator wrote"} ELSE {})

\* A commit of the coordinator arrives and is answered. Refused for its term it ends the term; refused otherwise, everything is
\* read and written again.
Answered(q, ok) ==
  IF ~(q.ans /\ node[q.n].lead = q.e) THEN node
  ELSE IF leader.e # q.e THEN [node EXCEPT ![q.n].lead = 0, ![q.n].cold = FALSE]
  ELSE IF ~ok THEN [node EXCEPT ![q.n].cold = TRUE]
  ELSE IF q.k = "plan" THEN [node EXCEPT ![q.n].cold = FALSE] ELSE node

Publish(q) ==
  /\ q.k = "plan"
  /\ ApplyWrites(q, DOMAIN q.w)
  /\ LET ok == \A m \in DOMAIN q.w : TermHolds(q) /\ AsgV(m) = q.w[m].old
     IN /\ node' = Answered(q, ok)
        \* with the barrier closed, all is written now: it is opened
        /\ pubs' = (pubs \ {q}) \cup (IF ok /\ q.ans /\ Closing /\ node[q.n].lead = q.e
                                      THEN {[k |-> "bar", n |-> q.n, s |-> q.s, e |-> q.e, gen |-> q.gen, open |-> TRUE, bv |-> q.bv, ans |-> TRUE]} ELSE {})
  /\ UNCHANGED <<live, member, leader, epoch, claim, barrier, listed, creqs, rreqs, replies, faults>>

\* one entry is written, the others later: a store need not write a commit at once
PublishPart(q) ==
  /\ q.k = "plan" /\ Fault("part") /\ Cardinality(DOMAIN q.w) > 1
  /\ \E m \in DOMAIN q.w :
       /\ ApplyWrites(q, {m})
       /\ pubs' = (pubs \ {q}) \cup {[q EXCEPT !.w = [x \in DOMAIN q.w \ {m} |-> q.w[x]]]}
  /\ UNCHANGED <<live, member, leader, epoch, claim, barrier, listed, creqs, rreqs, replies, node>>

WriteBarrier(q) ==
  /\ q.k = "bar" /\ pubs' = pubs \ {q}
  /\ LET ok == TermHolds(q) /\ barrier.v = q.bv
     IN /\ barrier' = IF ok THEN [v |-> barrier.v + 1, gen |-> q.gen, open |-> q.open] ELSE barrier
        /\ node' = Answered(q, ok)
        /\ wrong' = wrong \cup (IF ok /\ leader.e # q.e THEN {"a deposed coordinator wrote"} ELSE {})
                          \cup (IF ok /\ q.open /\ \E n \in N : \E r \in R : Works(n, r) THEN {"opened over work"} ELSE {})
  /\ UNCHANGED <<live, member, leader, epoch, asg, claim, listed, creqs, rreqs, replies, faults>>

\* the answer is given up: the write may still arrive. Every entry is written anew, so that it then finds another version.
GiveUpPublish(n) ==
  /\ Calm(n) /\ Waits(n) /\ Fault("late")
  /\ pubs' = Deaf(n, pubs)
  /\ node' = IF node[n].lead = 0 THEN node ELSE [node EXCEPT ![n].cold = TRUE]
  /\ UNCHANGED <<store, creqs, rreqs, replies, wrong>>

\* a coordinator that leaves has published a plan without itself; with the global barrier its successor makes that plan
StepDown(n) ==
  /\ Calm(n) /\ node[n].leaving /\ node[n].lead # 0 /\ leader.e = node[n].lead /\ ~Waits(n)
  /\ \/ node[n].evict
     \/ ShareOf(n) = {} /\ ~node[n].cold
     \/ Mode = "global" /\ Cardinality(Members) > 1
  /\ leader' = NoLeader /\ node' = [node EXCEPT ![n].lead = 0, ![n].cold = FALSE]
  /\ UNCHANGED <<live, member, epoch, asg, claim, barrier, listed, net, hist>>

------------------------------- \* resources come and go
AddResource(r)    == /\ r \notin listed /\ Fault("list") /\ listed' = listed \cup {r}
                     /\ UNCHANGED <<live, member, leader, epoch, asg, claim, barrier, net, node, wrong>>
RemoveResource(r) == /\ r \in listed /\ Fault("list") /\ listed' = listed \ {r}
                     /\ UNCHANGED <<live, member, leader, epoch, asg, claim, barrier, net, node, wrong>>
=============================================================================

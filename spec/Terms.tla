-------------------------------- MODULE Terms --------------------------------
(* The coordinator's term, its plan, and those who follow it, on a store that goes
   back in time (rule F8). Claims are safe without any of this (Forgets). Asked
   here: has one term one writer, and do all end up with what the store says? The
   assignment is one entry here. *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS N, None, MaxOpen, MaxSnap, MaxBack, MaxLost, Off
VARIABLES
  db,      \* [live, leader: [s, e], last: version of the leader entry, plan: [gen, v, for: sessions planned for]]
  inc, clock, snap,
  node,    \* [s, inc, lead: epoch, knows: the plan as the coordinator knows it, req: its write on its way, has: the plan that was applied]
  writers, \* who has written in which term
  spent
vars == <<db, inc, clock, snap, node, writers, spent>>

G(guard) == guard \notin Off
Vacant   == [s |-> 0, e |-> 0]
NoPlan   == [gen |-> 0, v |-> 0, for |-> {}]
Nothing  == [live |-> {}, leader |-> Vacant, last |-> 0, plan |-> NoPlan]
Max(a, b) == IF a > b THEN a ELSE b
Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]

Init == /\ db = Nothing /\ inc = 0 /\ clock = 0 /\ snap = None /\ writers = {}
        /\ node = [n \in N |-> [s |-> 0, inc |-> 0, lead |-> 0, knows |-> NoPlan, req |-> None, has |-> NoPlan]]
        /\ spent = [open |-> 0, snap |-> 0, back |-> 0, lost |-> 0]

OpenSession(n) ==
  /\ node[n].s = 0 /\ Spend("open", MaxOpen)
  /\ db' = [db EXCEPT !.live = @ \cup {spent.open + 1}]
  /\ node' = [node EXCEPT ![n].s = spent.open + 1, ![n].inc = inc]
  /\ UNCHANGED <<inc, clock, snap, writers>>
\* a write that is on its way stays so
Fence(n) ==
  /\ node[n].s # 0 /\ node[n].s \notin db.live
  /\ node' = [node EXCEPT ![n].s = 0, ![n].lead = 0]
  /\ UNCHANGED <<db, inc, clock, snap, writers, spent>>
EndSession(s) == db' = [db EXCEPT !.live = @ \ {s}, !.leader = IF @.s = s THEN Vacant ELSE @]
Expire(s) == /\ s \in db.live /\ Spend("lost", MaxLost) /\ EndSession(s)
             /\ UNCHANGED <<inc, clock, snap, node, writers>>
\* came back with old data, and nobody renews it
ExpireOld(s) == /\ s \in db.live /\ (\A n \in N : node[n].s # s) /\ EndSession(s)
                /\ UNCHANGED <<inc, clock, snap, node, writers, spent>>

\* the new incarnation is accepted
Noticed(n) ==
  /\ node[n].s \in db.live /\ node[n].inc # inc
  /\ node' = [node EXCEPT ![n].inc = inc, ![n].lead = IF G("lead reset") THEN 0 ELSE @, ![n].has = IF G("differs") THEN NoPlan ELSE @]
  /\ UNCHANGED <<db, inc, clock, snap, writers, spent>>
Calm(n) == node[n].s \in db.live /\ node[n].inc = inc

\* a free entry is taken; one that is ours already, by what was read, begins a term as well: everything is read
Campaign(n) ==
  /\ Calm(n) /\ node[n].lead = 0 /\ db.leader.s \in {0, node[n].s}
  /\ LET e == IF db.leader.s = node[n].s THEN db.leader.e
              ELSE IF G("store: clock versions") THEN Max(db.last, clock) + 1 ELSE db.last + 1
     IN /\ db' = [db EXCEPT !.leader = [s |-> node[n].s, e |-> e], !.last = e]
        /\ clock' = Max(clock, e)
        /\ node' = [node EXCEPT ![n].lead = e, ![n].knows = db.plan]
  /\ UNCHANGED <<inc, snap, writers, spent>>
Plan(n) ==
  /\ Calm(n) /\ node[n].lead # 0 /\ node[n].req = None /\ node[n].knows.for # db.live
  /\ node' = [node EXCEPT ![n].req = [e |-> node[n].lead, s |-> node[n].s, v |-> node[n].knows.v, gen |-> node[n].knows.gen + 1, for |-> db.live]]
  /\ UNCHANGED <<db, inc, clock, snap, writers, spent>>
\* the write arrives; refused, it ends the term
Publish(n) ==
  /\ node[n].req # None
  /\ LET q == node[n].req
         p == [gen |-> q.gen, v |-> Max(db.plan.v, clock) + 1, for |-> q.for]
     IN IF db.leader.e = q.e /\ q.s \in db.live /\ db.plan.v = q.v
        THEN /\ db' = [db EXCEPT !.plan = p] /\ clock' = p.v /\ writers' = writers \cup {[e |-> q.e, n |-> n]}
             /\ node' = [node EXCEPT ![n].req = None, ![n].knows = IF node[n].lead = q.e THEN p ELSE @]
        ELSE /\ node' = [node EXCEPT ![n].req = None, ![n].lead = IF @ = q.e THEN 0 ELSE @]
             /\ UNCHANGED <<db, clock, writers>>
  /\ UNCHANGED <<inc, snap, spent>>
\* whatever differs from what was applied is taken
Follow(n) ==
  /\ Calm(n) /\ db.plan # node[n].has /\ (G("differs") \/ db.plan.gen > node[n].has.gen)
  /\ node' = [node EXCEPT ![n].has = db.plan]
  /\ UNCHANGED <<db, inc, clock, snap, writers, spent>>

Snapshot == Spend("snap", MaxSnap) /\ snap' = db /\ UNCHANGED <<db, inc, clock, node, writers>>
GoBack == /\ Spend("back", MaxBack) /\ inc' = inc + 1
          /\ \E d \in {Nothing} \cup (IF snap = None THEN {} ELSE {snap}) : db' = d
          /\ UNCHANGED <<clock, snap, node, writers>>

Proto == (\E n \in N : Fence(n) \/ Noticed(n) \/ Campaign(n) \/ Plan(n) \/ Publish(n) \/ Follow(n)) \/ \E s \in db.live : ExpireOld(s)
Next  == Proto \/ Snapshot \/ GoBack \/ (\E n \in N : OpenSession(n)) \/ \E s \in db.live : Expire(s)
Spec  == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(Proto)

OneWriterPerTerm == \A p, q \in writers : p.e = q.e => p.n = q.n
Settled  == db.live # {} => /\ db.plan.for = db.live /\ db.leader.s \in db.live
                            /\ \A n \in N : node[n].s \in db.live => node[n].has = db.plan
Quiet    == ~(ENABLED Proto) => Settled
Liveness == <>[]Settled

\* must be violated
NeverTwoTerms   == ~(\E p, q \in writers : p.e # q.e)
NeverOldReturns == ~(inc > 0 /\ \E n \in N : node[n].s \in db.live /\ node[n].has.v > db.plan.v /\ db.plan.v > 0)

Sym == Permutations(N)
=============================================================================

------------------------------- MODULE Session -------------------------------
(* A node's life in the store: session, member entry, leaving, the end of trust. *)
EXTENDS Group

Start(n) ==
  /\ node[n].up = "down" /\ node' = [node EXCEPT ![n].up = "up"]
  /\ UNCHANGED <<store, net, hist>>

OpenSession(n) ==
  /\ Running(n) /\ node[n].s = None /\ ~node[n].leaving
  /\ LET k == node[n].k + 1
     IN /\ node' = [node EXCEPT ![n].s = <<n, k>>, ![n].k = k, ![n].valid = TRUE]
        /\ live' = live \cup {<<n, k>>}
  /\ UNCHANGED <<member, leader, epoch, asg, claim, barrier, listed, net, hist>>

\* a session that is alive and trusted stays so; refused, it is given up (Fence)
Renew(n) == Calm(n) /\ UNCHANGED vars

\* An entry of another process under the same name is waited for: its session ends.
WriteOwn(n) ==
  /\ member[n].s \in {None, node[n].s} \cup node[n].old
  /\ member' = [member EXCEPT ![n] = MemberOf(n, node[n])]
  /\ UNCHANGED <<live, leader, epoch, asg, claim, barrier, listed, net, node, hist>>
Join(n)        == Calm(n) /\ ~Joined(n) /\ WriteOwn(n)
WriteMember(n) == Calm(n) /\ Joined(n) /\ member[n] # MemberOf(n, node[n]) /\ WriteOwn(n)

\* the trust ended, or the store refused a call: all is lost, and the session is left to its end
Fence(n) ==
  /\ Running(n) /\ node[n].s # None
  /\ (G("trust") /\ ~node[n].valid) \/ node[n].s \notin live
  /\ LET p     == node[n]
         kept  == IF G("fence before rejoin") THEN {} ELSE {"working", "draining", "stopped"}
         lost  == [r \in R |-> IF p.ph[r] \in kept THEN p.ph[r] ELSE IF Runs(n, r) THEN "lost" ELSE "none"]
     IN node' = [node EXCEPT ![n] = [NoProcess(p.k) EXCEPT
          !.up = "up", !.old = (p.old \cup {p.s}) \cap live, !.leaving = p.leaving, !.decl = p.decl,
          !.ph = lost, !.got = [r \in R |-> IF lost[r] = "none" THEN Free ELSE p.got[r]]]]
  /\ DropCalls(n)
  /\ UNCHANGED <<store, hist>>

\* a session that was given up is closed once nothing runs that was started under it
CloseSession(n, s) ==
  /\ Running(n) /\ s \in node[n].old
  /\ G("close after work") => \A r \in R : Runs(n, r) => node[n].got[r].s # s
  /\ wrong' = wrong \cup (IF \E r \in R : claim[r].s = s /\ Handled(r) THEN {"released under a handler"} ELSE {})
  /\ EndSession(s)
  /\ node' = [node EXCEPT ![n].old = @ \ {s}]
  /\ UNCHANGED <<epoch, asg, barrier, listed, net, faults>>

------------------------------- \* leaving
Leave(n) ==
  /\ Running(n) /\ node[n].s # None /\ ~node[n].leaving /\ Fault("leave")
  /\ node' = [node EXCEPT ![n].leaving = TRUE]
  /\ UNCHANGED <<store, net, wrong>>

\* no coordinator has planned without this node: it gives everything back by itself
Evict(n) ==
  /\ Calm(n) /\ node[n].leaving /\ ~node[n].evict /\ node[n].share # {}
  /\ node' = [node EXCEPT ![n] = Revoked([@ EXCEPT !.evict = TRUE])]
  /\ UNCHANGED <<store, net, hist>>

Finish(n) ==
  /\ Running(n) /\ node[n].leaving /\ node[n].lead = 0
  /\ \A r \in R : node[n].ph[r] = "none"
  /\ node' = [node EXCEPT ![n] = NoProcess(@.k)]
  /\ IF node[n].s = None THEN UNCHANGED <<live, member, leader, claim>> ELSE EndSession(node[n].s)
  /\ DropCalls(n)
  /\ UNCHANGED <<epoch, asg, barrier, listed, hist>>

------------------------------- \* environment
Crash(n) ==
  /\ node[n].up # "down" /\ Fault("crash")
  /\ node' = [node EXCEPT ![n] = NoProcess(@.k)]
  /\ DropCalls(n)
  /\ UNCHANGED <<store, wrong>>

Freeze(n) ==
  /\ Running(n) /\ node[n].s # None /\ Fault("freeze")
  /\ node' = [node EXCEPT ![n].up = "frozen"]
  /\ UNCHANGED <<store, net, wrong>>
Thaw(n) ==
  /\ node[n].up = "frozen" /\ node' = [node EXCEPT ![n].up = "up"]
  /\ UNCHANGED <<store, net, hist>>

\* the node's clock passes trusted-until: it is cut off from the store (a fault), or frozen (that was paid for)
Lapse(n) ==
  /\ node[n].valid
  /\ IF node[n].up = "frozen" THEN UNCHANGED faults ELSE Fault("cut")
  /\ node' = [node EXCEPT ![n].valid = FALSE]
  /\ UNCHANGED <<store, net, wrong>>

\* What module Clocks shows is assumed here: a session ends at the store only after its node's trust in it.
Expire(s) ==
  /\ s \in live
  /\ LET trusted == \E n \in N : node[n].s = s /\ node[n].valid
     IN IF trusted THEN ~G("margin") /\ Fault("cut") ELSE UNCHANGED faults
  /\ EndSession(s)
  /\ UNCHANGED <<epoch, asg, barrier, listed, net, node, wrong>>
=============================================================================

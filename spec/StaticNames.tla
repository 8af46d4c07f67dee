----------------------------- MODULE StaticNames -----------------------------
(* Several processes of one static name, and one resource that is assigned to it
   (rules S1 to S4). A new process overwrites the member entry of an older one and
   supersedes its session, which can only release from then on: what it holds is
   free when it was released, or when that session ends. Time as in Session. *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS P, None, MaxFaults, Faults, \* "crash" "freeze" "cut" "leave"
          Closing,                    \* TRUE: the global barrier may close
          Off
VARIABLES
  live,    \* sessions, numbered as they were opened
  sup,     \* those that were superseded
  last,    \* the number of the last one
  member,  \* the entry under the name: [s |-> session, 0: none, born |-> which process is the newer]
  claim,   \* [s |-> session, 0: free, v |-> last version]
  proc,    \* [P -> what the process knows]
  closed,  \* the barrier is closed
  said,    \* somebody has said that the name has stopped for it
  faults
vars == <<live, sup, last, member, claim, proc, closed, said, faults>>

G(guard) == guard \notin Off
Absent   == [s |-> 0, born |-> 0]
NoProcess(up, k, born) == [
  up |-> up,          \* "down" | "up" | "frozen" | "over"
  s |-> 0, k |-> k,   \* session; how many this process has opened
  valid |-> FALSE,    \* the session is trusted
  in |-> FALSE,       \* a member, in this session
  born |-> born, was |-> FALSE,   \* a member once
  owed |-> FALSE,     \* the older process is still to be superseded
  ends |-> FALSE,     \* it leaves, or was superseded: it gives back, and ends
  ph |-> "none",      \* "working" | "draining" | "stopped" | "lost"
  got |-> [s |-> 0, v |-> 0]]
Fault(kind) == kind \in Faults /\ faults < MaxFaults /\ faults' = faults + 1
Running(p)  == proc[p].up = "up"
Calm(p)     == Running(p) /\ proc[p].valid /\ proc[p].s \in live
Refused(p)  == G("store: supersede refuses") /\ proc[p].s \in sup
Works(p)    == proc[p].ph \in {"working", "draining"} /\ proc[p].valid
Max(a, b)   == IF a > b THEN a ELSE b

Init == /\ live = {} /\ sup = {} /\ last = 0 /\ member = Absent /\ claim = [s |-> 0, v |-> 0]
        /\ proc = [p \in P |-> NoProcess("down", 0, 0)] /\ closed = FALSE /\ said = FALSE /\ faults = 0

EndSessions(S) == /\ live' = live \ S /\ sup' = sup \ S
                  /\ member' = IF member.s \in S THEN Absent ELSE member
                  /\ claim' = IF claim.s \in S THEN [claim EXCEPT !.s = 0] ELSE claim

Start(p) == /\ proc[p].up = "down" /\ proc' = [proc EXCEPT ![p].up = "up"]
            /\ UNCHANGED <<live, sup, last, member, claim, closed, said, faults>>
OpenSession(p) ==
  /\ Running(p) /\ proc[p].s = 0 /\ ~proc[p].ends
  /\ last' = last + 1 /\ live' = live \cup {last + 1}
  /\ proc' = [proc EXCEPT ![p].s = last + 1, ![p].k = @ + 1, ![p].valid = TRUE, ![p].born = IF @ = 0 THEN last + 1 ELSE @]
  /\ UNCHANGED <<sup, member, claim, closed, said, faults>>

\* what a process is that a newer one has superseded
Fenced(p) == [NoProcess(proc[p].up, proc[p].k, proc[p].born) EXCEPT !.was = proc[p].was, !.ends = proc[p].ends,
                !.ph = IF proc[p].ph \in {"working", "draining", "lost"} THEN "lost" ELSE "none"]
Ended(p)  == IF G("superseded ends") THEN [proc[p] EXCEPT !.ends = TRUE, !.owed = FALSE, !.ph = IF @ = "working" THEN "draining" ELSE @]
             ELSE Fenced(p)

\* the entry under the name is read: it is taken, or somebody newer has it
Join(p) ==
  /\ Calm(p) /\ ~proc[p].ends /\ member.s # proc[p].s /\ ~Refused(p)
  /\ proc[p].in => G("own entry")
  /\ IF member.s # 0 /\ proc[p].was /\ proc[p].born < member.born
     THEN proc' = [proc EXCEPT ![p] = Ended(p)] /\ UNCHANGED member
     ELSE LET born == IF member.s = 0 THEN proc[p].born ELSE Max(proc[p].born, member.born + 1)
          IN /\ member' = [s |-> proc[p].s, born |-> born]
             /\ proc' = [proc EXCEPT ![p].in = TRUE, ![p].was = TRUE, ![p].born = born,
                                     ![p].owed = (@ \/ member.s # 0) /\ G("supersede")]
  /\ UNCHANGED <<live, sup, last, claim, closed, said, faults>>
Supersede(p) ==
  /\ Calm(p) /\ proc[p].in /\ proc[p].owed /\ ~Refused(p)
  /\ LET older == {s \in live : s < proc[p].s}
     IN IF G("store: supersede keeps") THEN sup' = sup \cup older /\ UNCHANGED <<live, member, claim>>
        ELSE EndSessions(older)
  /\ proc' = [proc EXCEPT ![p].owed = FALSE]
  /\ UNCHANGED <<last, closed, said, faults>>
\* a call of a session that was superseded is refused
Taken(p) ==
  /\ Calm(p) /\ ~proc[p].ends /\ Refused(p) /\ proc' = [proc EXCEPT ![p] = Ended(p)]
  /\ UNCHANGED <<live, sup, last, member, claim, closed, said, faults>>

Fence(p) ==
  /\ Running(p) /\ proc[p].s # 0 /\ (~proc[p].valid \/ proc[p].s \notin live)
  /\ proc' = [proc EXCEPT ![p] = Fenced(p)]
  /\ UNCHANGED <<live, sup, last, member, claim, closed, said, faults>>
Finish(p) ==
  /\ Running(p) /\ proc[p].ends /\ proc[p].ph = "none"
  /\ EndSessions({proc[p].s}) /\ proc' = [proc EXCEPT ![p] = NoProcess("over", @.k, @.born)]
  /\ UNCHANGED <<last, closed, said, faults>>

\* StartWork follows at once. A claim that carries the own name is not the own claim.
Claim(p) ==
  /\ Calm(p) /\ proc[p].in /\ member.s = proc[p].s /\ ~proc[p].owed /\ ~proc[p].ends /\ ~Refused(p)
  /\ proc[p].ph = "none" /\ ~closed
  /\ \/ claim.s = 0 /\ claim' = [s |-> proc[p].s, v |-> claim.v + 1]
     \/ claim.s # 0 /\ ~G("own session") /\ UNCHANGED claim
  /\ proc' = [proc EXCEPT ![p].ph = "working", ![p].got = claim']
  /\ UNCHANGED <<live, sup, last, member, closed, said, faults>>
Revoke(p)  == /\ Calm(p) /\ closed /\ proc[p].ph = "working" /\ proc' = [proc EXCEPT ![p].ph = "draining"]
              /\ UNCHANGED <<live, sup, last, member, claim, closed, said, faults>>
Stopped(p) == /\ Running(p) /\ proc[p].ph \in {"draining", "lost"}
              /\ proc' = [proc EXCEPT ![p].ph = IF @ = "lost" THEN "none" ELSE "stopped"]
              /\ UNCHANGED <<live, sup, last, member, claim, closed, said, faults>>
Release(p) == /\ Calm(p) /\ proc[p].ph = "stopped"
              /\ claim' = IF claim = proc[p].got THEN [claim EXCEPT !.s = 0] ELSE claim
              /\ proc' = [proc EXCEPT ![p].ph = "none"]
              /\ UNCHANGED <<live, sup, last, member, closed, said, faults>>

\* The global barrier: the member speaks for its name, so also for the older processes, whether or not there is an entry of theirs.
\* "elders": it asks for sessions that were opened before its own. That is not enough: a process that opened its session first and joined
\* last has overwritten one whose session is the newer, which is not superseded, and may still work. "strangers": a claim under the name that
\* is of another session than the member's is waited for. In coord both are the guard "elders".
CloseBarrier == /\ Closing /\ ~closed /\ closed' = TRUE
                /\ UNCHANGED <<live, sup, last, member, claim, proc, said, faults>>
Ack(p) == /\ closed /\ ~said /\ Calm(p) /\ proc[p].in /\ member.s = proc[p].s /\ proc[p].ph = "none"
          /\ G("elders") => ~\E s \in live : s < proc[p].s
          /\ G("strangers") => claim.s \in {0, proc[p].s}
          /\ said' = TRUE
          /\ UNCHANGED <<live, sup, last, member, claim, proc, closed, faults>>

Crash(p)  == /\ proc[p].up \in {"up", "frozen"} /\ Fault("crash") /\ proc' = [proc EXCEPT ![p] = NoProcess("over", @.k, @.born)]
             /\ UNCHANGED <<live, sup, last, member, claim, closed, said>>
Freeze(p) == /\ Running(p) /\ proc[p].s # 0 /\ Fault("freeze") /\ proc' = [proc EXCEPT ![p].up = "frozen"]
             /\ UNCHANGED <<live, sup, last, member, claim, closed, said>>
Thaw(p)   == /\ proc[p].up = "frozen" /\ proc' = [proc EXCEPT ![p].up = "up"]
             /\ UNCHANGED <<live, sup, last, member, claim, closed, said, faults>>
Leave(p)  == /\ Running(p) /\ proc[p].in /\ ~proc[p].ends /\ Fault("leave")
             /\ proc' = [proc EXCEPT ![p].ends = TRUE, ![p].ph = IF @ = "working" THEN "draining" ELSE @]
             /\ UNCHANGED <<live, sup, last, member, claim, closed, said>>
\* trust ends by a cut, which is a fault; a frozen process renews nothing
Lapse(p)  == /\ proc[p].valid
             /\ IF proc[p].up = "frozen" THEN UNCHANGED faults ELSE Fault("cut")
             /\ proc' = [proc EXCEPT ![p].valid = FALSE]
             /\ UNCHANGED <<live, sup, last, member, claim, closed, said>>
Expire(s) == /\ s \in live /\ ~\E p \in P : proc[p].s = s /\ proc[p].valid
             /\ EndSessions({s}) /\ UNCHANGED <<last, proc, closed, said, faults>>

Step(p) == \/ OpenSession(p) \/ Join(p) \/ Supersede(p) \/ Taken(p) \/ Fence(p) \/ Finish(p) \/ Claim(p) \/ Revoke(p)
           \/ Stopped(p) \/ Release(p) \/ Ack(p)
Next == \/ \E p \in P : Step(p) \/ Start(p) \/ Crash(p) \/ Freeze(p) \/ Thaw(p) \/ Leave(p) \/ Lapse(p)
        \/ \E s \in live : Expire(s)
        \/ CloseBarrier
Spec == Init /\ [][Next]_vars
FairSpec == /\ Spec
            /\ \A p \in P : WF_vars(Step(p)) /\ WF_vars(Thaw(p))
            /\ \A s \in 1..(Cardinality(P) + MaxFaults) : WF_vars(Expire(s))

NoOverlap  == \A p, q \in P : p # q => ~(Works(p) /\ Works(q))
Covered    == \A p \in P : Works(p) => claim = proc[p].got /\ claim.s = proc[p].s
FencesGrow == [][claim'.s \notin {0, claim.s} => claim'.v > claim.v]_vars
\* who has said that all have stopped is right
StopsAll   == said => \A p \in P : ~Works(p)
\* a process comes back only after a fault of its own: two that took turns would never end
NoTurns    == \A p \in P : proc[p].k <= 1 + faults
\* in the end the name has one process, which works
Settled    == (\E p \in P : proc[p].up = "up" /\ ~proc[p].ends) =>
                \E p \in P : Works(p) /\ member.s = proc[p].s /\ \A q \in P \ {p} : proc[q].up \in {"down", "over"}
Liveness   == <>[]Settled

\* must be violated
NeverTwo      == ~(\E p, q \in P : p # q /\ Works(p) /\ member.s = proc[q].s)
NeverWaits    == ~(\E p \in P : proc[p].in /\ claim.s \in sup /\ claim.s # proc[p].s)
NeverElder    == ~(closed /\ said)
NeverOrphan   == ~(member.s = 0 /\ claim.s \in sup)
NeverTurnOver == ~(\E p \in P : proc[p].up = "over" /\ proc[p].k > 0 /\ \E q \in P : Works(q))

Sym == Permutations(P)
=============================================================================

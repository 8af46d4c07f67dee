-------------------------------- MODULE Hints --------------------------------
(* Who learns of what, and by what: hints to one address, which may be lost, and
   renewals that tell versions (rules H1 to H5). One coordinator that stays, and
   members that come and die; claims are safe anyway (Rebalance, Forgets). Asked
   here: is anybody left waiting for something that nothing will tell him?

   Steps that stand for coord's: Hinted, Renew (of a node) and CRenew (of the
   coordinator), SendFollow and Followed (Read and ReadDone), SendClaim and
   ClaimArrives, Release, Gather, Publish. *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS N, R, None,
  Poll,       \* renewals are made
  LoseHints,  \* hints may be lost
  Ready,      \* all nodes are members from the start
  MaxReplan,  \* plans made for no reason, at any time
  MaxDead,    \* nodes whose session ends
  MaxFail,    \* reads that fail
  Off
VARIABLES
  mem, dead,  \* who has joined; whose session has ended since
  asg,        \* [N -> the entry [v |-> version, plan |-> the whole plan: its share, and who has what it gives up]]
  claim,      \* [R -> node or None]
  co,         \* coordinator: [dirty, reads: what it has read, None; knows: digest, None; for: planned for; plan; again: plan for no reason]
  chint, hint,\* hints on their way, to the coordinator and to nodes
  node,       \* [seen, plan: as applied, got, blocked: waited for, dirty, reads: an answer on its way]
  creqs,      \* claims on their way
  replans, fails
vars == <<mem, dead, asg, claim, co, chint, hint, node, creqs, replans, fails>>

G(guard)   == guard \notin Off
Alive      == mem \ dead
Up(n)      == n \in Alive
Nobody     == [r \in R |-> None]
\* an entry of an ended session reads as absent
Holder(r)  == IF claim[r] \in dead THEN None ELSE claim[r]
\* as a renewal tells it
Told(r)    == IF G("store: expiry aware") THEN Holder(r) ELSE claim[r]

Init ==
  /\ mem = (IF Ready THEN N ELSE {}) /\ dead = {}
  /\ asg = [n \in N |-> [v |-> 0, plan |-> Nobody]] /\ claim = Nobody
  /\ co = [dirty |-> FALSE, reads |-> None, knows |-> None, for |-> {}, plan |-> Nobody, again |-> FALSE]
  /\ chint = Ready /\ hint = {}
  /\ node = [n \in N |-> [seen |-> 0, plan |-> Nobody, got |-> {}, blocked |-> {}, dirty |-> FALSE, reads |-> None]]
  /\ creqs = {} /\ replans = 0 /\ fails = 0

------------------------------- \* environment
Join(n) == /\ n \notin mem /\ mem' = mem \cup {n} /\ chint' = TRUE
           /\ UNCHANGED <<dead, asg, claim, co, hint, node, creqs, replans, fails>>
Die(n)  == /\ Up(n) /\ Cardinality(dead) < MaxDead /\ dead' = dead \cup {n}
           /\ UNCHANGED <<mem, asg, claim, co, chint, hint, node, creqs, replans, fails>>
Replan  == /\ replans < MaxReplan /\ replans' = replans + 1 /\ co.for # {} /\ co.reads = None /\ ~co.dirty
           /\ co' = [co EXCEPT !.dirty = TRUE, !.again = TRUE]
           /\ UNCHANGED <<mem, dead, asg, claim, chint, hint, node, creqs, fails>>
LoseHint == /\ LoseHints
            /\ \/ chint /\ chint' = FALSE /\ UNCHANGED hint
               \/ \E n \in hint : hint' = hint \ {n} /\ UNCHANGED chint
            /\ UNCHANGED <<mem, dead, asg, claim, co, node, creqs, replans, fails>>

------------------------------- \* coordinator
CHinted == /\ chint /\ chint' = FALSE /\ co' = [co EXCEPT !.dirty = TRUE]
           /\ UNCHANGED <<mem, dead, asg, claim, hint, node, creqs, replans, fails>>
\* its renewal tells the digest of the member entries; without "digest" the first one after a plan is taken for that of the plan
CRenew == /\ Poll /\ ~co.dirty /\ co.reads = None /\ co.knows # Alive
          /\ co' = IF co.knows = None /\ ~G("digest") /\ co.for # {} THEN [co EXCEPT !.knows = Alive] ELSE [co EXCEPT !.dirty = TRUE]
          /\ UNCHANGED <<mem, dead, asg, claim, chint, hint, node, creqs, replans, fails>>
Gather == /\ co.dirty /\ co.reads = None
          /\ co' = [co EXCEPT !.dirty = FALSE, !.reads = [live |-> Alive, held |-> claim]]
          /\ UNCHANGED <<mem, dead, asg, claim, chint, hint, node, creqs, replans, fails>>
\* every plan is possible; entries whose share, or whose next owners of what is still held, change are rewritten, and their nodes woken
Publish ==
  /\ co.reads # None
  /\ LET S == co.reads.live
         next == [co EXCEPT !.reads = None, !.again = FALSE, !.knows = IF G("digest") THEN S ELSE None]
     IN IF S = {} \/ (S = co.for /\ ~co.again) THEN co' = next /\ UNCHANGED <<asg, hint>>
        ELSE \E f \in [R -> S] :
          LET W == {n \in N : \E r \in R : \/ (co.plan[r] = n) # (f[r] = n)
                                           \/ (G("next rewrite") /\ co.reads.held[r] = n /\ co.plan[r] # f[r])}
          IN /\ co' = [next EXCEPT !.plan = f, !.for = S]
             /\ asg' = [n \in N |-> IF n \in W THEN [v |-> asg[n].v + 1, plan |-> f] ELSE asg[n]]
             /\ hint' = hint \cup (W \ dead)
  /\ UNCHANGED <<mem, dead, claim, chint, node, creqs, replans, fails>>

------------------------------- \* nodes
Hinted(n) == /\ Up(n) /\ n \in hint /\ hint' = hint \ {n} /\ node' = [node EXCEPT ![n].dirty = TRUE]
             /\ UNCHANGED <<mem, dead, asg, claim, co, chint, creqs, replans, fails>>
\* versions of the own entry, and of the claims that are waited for
Renew(n) ==
  /\ Poll /\ Up(n) /\ ~node[n].dirty /\ node[n].reads = None
  /\ LET new  == G("renew assignment") /\ asg[n].v # node[n].seen
         free == IF G("renew waiting") THEN {r \in node[n].blocked : Told(r) = None} ELSE {}
     IN /\ new \/ free # {}
        /\ node' = [node EXCEPT ![n].dirty = new, ![n].blocked = @ \ free,
                                ![n].seen = IF new /\ ~G("seen on apply") THEN asg[n].v ELSE @]
  /\ UNCHANGED <<mem, dead, asg, claim, co, chint, hint, creqs, replans, fails>>
SendFollow(n) ==
  /\ Up(n) /\ node[n].dirty /\ node[n].reads = None
  /\ node' = [node EXCEPT ![n].dirty = FALSE,
              ![n].reads = [v |-> asg[n].v, plan |-> asg[n].plan, free |-> {r \in node[n].blocked : Holder(r) = None}]]
  /\ UNCHANGED <<mem, dead, asg, claim, co, chint, hint, creqs, replans, fails>>
Followed(n) ==
  /\ Up(n) /\ node[n].reads # None
  /\ LET a == node[n].reads
     IN node' = [node EXCEPT ![n].reads = None, ![n].seen = a.v, ![n].plan = a.plan,
                             ![n].blocked = {r \in @ \ a.free : a.plan[r] = n}]
  /\ UNCHANGED <<mem, dead, asg, claim, co, chint, hint, creqs, replans, fails>>
ReadFails(n) ==
  /\ Up(n) /\ node[n].reads # None /\ fails < MaxFail /\ fails' = fails + 1
  /\ node' = [node EXCEPT ![n].reads = None, ![n].dirty = @ \/ G("seen on apply")]
  /\ UNCHANGED <<mem, dead, asg, claim, co, chint, hint, creqs, replans>>

SendClaim(n, r) ==
  /\ Up(n) /\ node[n].plan[r] = n /\ r \notin node[n].got \cup node[n].blocked /\ ~\E q \in creqs : q.n = n /\ q.r = r
  /\ creqs' = creqs \cup {[n |-> n, r |-> r, v |-> node[n].seen]}
  /\ UNCHANGED <<mem, dead, asg, claim, co, chint, hint, node, replans, fails>>
\* refused for the assignment or for who holds it, what stands there is read
ClaimArrives(q) ==
  /\ creqs' = creqs \ {q}
  /\ LET stale == G("claim assignment") /\ q.v # asg[q.n].v
     IN IF ~Up(q.n) THEN UNCHANGED <<claim, node>>
        ELSE IF ~stale /\ Holder(q.r) = None
        THEN claim' = [claim EXCEPT ![q.r] = q.n] /\ node' = [node EXCEPT ![q.n].got = @ \cup {q.r}]
        ELSE /\ UNCHANGED claim
             /\ node' = [node EXCEPT ![q.n].dirty = TRUE, ![q.n].blocked = IF Holder(q.r) # None /\ node[q.n].plan[q.r] = q.n THEN @ \cup {q.r} ELSE @]
  /\ UNCHANGED <<mem, dead, asg, co, chint, hint, replans, fails>>
\* it wakes the next owner that the applied entry names
Release(n, r) ==
  /\ Up(n) /\ r \in node[n].got /\ node[n].plan[r] # n
  /\ IF G("release assignment") /\ asg[n].v # node[n].seen
     THEN ~node[n].dirty /\ node[n].reads = None /\ node' = [node EXCEPT ![n].dirty = TRUE] /\ UNCHANGED <<claim, hint>>
     ELSE /\ claim' = [claim EXCEPT ![r] = None] /\ node' = [node EXCEPT ![n].got = @ \ {r}]
          /\ hint' = hint \cup ({node[n].plan[r]} \ dead)
  /\ UNCHANGED <<mem, dead, asg, co, chint, creqs, replans, fails>>

Proto == \/ CHinted \/ CRenew \/ Gather \/ Publish
         \/ \E n \in N : Hinted(n) \/ Renew(n) \/ SendFollow(n) \/ Followed(n) \/ \E r \in R : SendClaim(n, r) \/ Release(n, r)
         \/ \E q \in creqs : ClaimArrives(q)
Next  == Proto \/ Replan \/ LoseHint \/ \E n \in N : Join(n) \/ Die(n) \/ ReadFails(n)
Spec  == Init /\ [][Next]_vars
\* a node that runs goes on, and whatever is on its way arrives
FairSpec == /\ Spec /\ WF_vars(CHinted) /\ WF_vars(CRenew) /\ WF_vars(Gather) /\ WF_vars(Publish)
            /\ \A n \in N : /\ WF_vars(Hinted(n)) /\ WF_vars(Renew(n)) /\ WF_vars(SendFollow(n)) /\ WF_vars(Followed(n))
                           /\ \A r \in R : /\ WF_vars(SendClaim(n, r)) /\ WF_vars(Release(n, r))
                                          /\ WF_vars(\E q \in creqs : q.n = n /\ q.r = r /\ ClaimArrives(q))

OneHolder == \A r \in R : Cardinality({n \in Alive : r \in node[n].got}) <= 1
Settled   == Alive # {} => co.for = Alive /\ \A r \in R : co.plan[r] \in Alive /\ claim[r] = co.plan[r] /\ r \in node[co.plan[r]].got
Quiet     == ~(ENABLED Proto) => Settled
Liveness  == <>[]Settled

\* must be violated
NeverBlocked  == \A n \in N : node[n].blocked = {}
NeverStale    == ~(\E q \in creqs : q.v # asg[q.n].v)
NeverThird    == ~(\E r \in R : \E n \in Alive : r \in node[n].got /\ co.plan[r] # n /\ node[n].plan[r] \notin {n, co.plan[r], None})
NeverLateRead == ~(\E n \in N : node[n].reads # None /\ node[n].reads.v # asg[n].v)

Sym == Permutations(N)
=============================================================================

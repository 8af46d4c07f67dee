-------------------------------- MODULE Reach --------------------------------
(* What the base must be able to reach, or its promises would be empty. Each of
   these says "never", and must be violated (checks/reach.txt). *)
EXTENDS Rebalance

NeverWorks      == ~(\A r \in R : Owners(r) # {})
NeverBalanced   == ~(\E a, b \in N : a # b /\ \E q, r \in R : Works(a, q) /\ Works(b, r))
NeverMoves      == ~(\E r \in R : claim[r].v > 1 /\ Owners(r) # {})
NeverWaits      == ~(\E n \in N : \E r \in R : r \in node[n].share /\ claim[r].s \notin {None, node[n].s} /\ node[n].s # None)
NeverSecondTerm == ~(\E n \in N : node[n].lead > 1 /\ \E r \in R : Owners(r) # {})
NeverDeposed    == ~(\E q \in pubs : q.k = "plan" /\ leader.e # q.e /\ leader.e # 0 /\ \A m \in DOMAIN q.w : AsgV(m) = q.w[m].old)
NeverGhost      == ~(\E n \in N : \E r \in R : Calm(n) /\ claim[r].s = node[n].s /\ node[n].ph[r] \in {"none", "unsure"})
NeverLateClaim  == ~(\E q \in creqs : ~q.ans /\ ~ClaimHolds(q))
NeverLateFree   == ~(\E q \in rreqs : claim[q.r].s # None /\ claim[q.r].v # q.v)
NeverLost       == ~(\E n \in N : \E r \in R : node[n].ph[r] = "lost" /\ \E m \in N : Works(m, r))
NeverZombie     == ~(\E n \in N : \E r \in R : node[n].up = "frozen" /\ node[n].ph[r] = "working" /\ \E m \in N \ {n} : Works(m, r))
NeverGivenUp    == ~(\E n \in N : node[n].old # {} /\ node[n].s # None /\ \E r \in R : claim[r].s \in node[n].old)
NeverDeclined   == ~(\E n \in N : \E r \in node[n].decl : \E m \in N \ {n} : Works(m, r))
NeverUnlisted   == ~(\E r \in R : r \notin listed /\ Owners(r) # {})
NeverKept       == ~(\E n \in N : \E r \in R : node[n].ph[r] = "stopped" /\ Desired(n, r))
NeverLeaves     == ~(\E n \in N : member[n].leaving /\ \E r \in R : Works(n, r))
NeverEvicts     == ~(\E n \in N : node[n].evict)
NeverHalf       == Cardinality(Current(May(Members))) <= 1
NeverOpens      == ~(barrier.open /\ \E r \in R : Owners(r) # {})
NeverClosesOver == ~(Closing /\ \E n \in N : \E r \in R : Works(n, r) /\ ~\E m \in N : node[m].bar.v = barrier.v)
NeverReopens    == ~(barrier.open /\ barrier.gen > 1 /\ \E r \in R : Owners(r) # {})
=============================================================================

------------------------------- MODULE Rebalance -------------------------------
(* The protocol: its steps, what is fair, and what is promised. *)
EXTENDS Coordinator

\* abandoned requests may be lost
LoseRequest ==
  /\ \/ \E q \in creqs : ~q.ans /\ creqs' = creqs \ {q} /\ UNCHANGED <<rreqs, pubs>>
     \/ \E q \in rreqs : ~q.ans /\ rreqs' = rreqs \ {q} /\ UNCHANGED <<creqs, pubs>>
     \/ \E q \in pubs  : ~q.ans /\ pubs' = pubs \ {q}   /\ UNCHANGED <<creqs, rreqs>>
  /\ UNCHANGED <<store, replies, node, hist>>

\* what a node does that runs
NodeStep(n) ==
  \/ OpenSession(n) \/ Join(n) \/ WriteMember(n) \/ Fence(n) \/ Evict(n) \/ Finish(n)
  \/ \E s \in node[n].old : CloseSession(n, s)
  \/ Campaign(n) \/ LeaderSeen(n) \/ Plan(n) \/ StepDown(n)
  \/ Follow(n) \/ Ack(n)
  \/ \E r \in R : \/ Claim(n, r) \/ ClaimUnknown(n, r) \/ ReadClaim(n, r) \/ Ghost(n, r)
                  \/ StartWork(n, r) \/ Stopped(n, r) \/ Release(n, r) \/ ReleaseUnknown(n, r)
\* requests arrive, answers too
Arrival ==
  \/ \E q \in pubs : Publish(q) \/ WriteBarrier(q)
  \/ \E q \in creqs : ClaimArrives(q)
  \/ \E q \in rreqs : ReleaseArrives(q)
  \/ \E p \in replies : ClaimAnswered(p) \/ ReleaseAnswered(p)
Untrusted(s) == s \in live /\ ~\E n \in N : node[n].s = s /\ node[n].valid

Proto == \/ \E n \in N : NodeStep(n) \/ Thaw(n)
         \/ Arrival
         \/ \E s \in live : Untrusted(s) /\ Expire(s)
Env   == \/ \E n \in N : \/ Start(n) \/ Crash(n) \/ Freeze(n) \/ Lapse(n) \/ Leave(n) \/ GiveUpPublish(n) \/ Renew(n)
                         \/ \E r \in R : SendClaim(n, r) \/ SendRelease(n, r) \/ CannotOpen(n, r) \/ DeclineEnds(n, r)
         \/ \E r \in R : AddResource(r) \/ RemoveResource(r)
         \/ \E q \in pubs : PublishPart(q)
         \/ LoseLeader \/ LoseRequest
         \/ \E s \in live : ~Untrusted(s) /\ Expire(s)
Next  == Proto \/ Env
Spec  == Init /\ [][Next]_vars

\* nothing is assumed of faults, nor of processes that do not run, nor of the end of a decline
Sessions == {<<n, k>> : n \in N, k \in 1..(MaxFaults + 2)}
FairSpec == /\ Spec
            /\ \A n \in N : WF_vars(NodeStep(n)) /\ WF_vars(Thaw(n))
            /\ WF_vars(Arrival)
            /\ \A s \in Sessions : WF_vars(Untrusted(s) /\ Expire(s))

------------------------------- \* promises
Phases == {"none", "asked", "unsure", "working", "draining", "stopped", "releasing", "retry", "lost"}
TypeOK ==
  /\ \A s \in live : s[1] \in N
  /\ \A n \in N : /\ node[n].up \in {"up", "frozen", "down"}
                  /\ node[n].ph \in [R -> Phases]
                  /\ node[n].valid => node[n].s # None
                  /\ member[n].s \in live \cup {None} /\ (member[n].s # None => member[n].s[1] = n)
  /\ leader.s \in live \cup {None} /\ leader.e <= epoch
  /\ \A r \in R : claim[r].s \in live \cup {None}
  /\ listed \subseteq R

\* each resource is worked by at most one node at a time
NoOverlap == \A r \in R : \A a, b \in N : a # b => ~(Works(a, r) /\ Works(b, r))
\* behind all work stands the very claim, with its fence
Covered   == \A n \in N : \A r \in R : Works(n, r) => claim[r] = node[n].got[r] /\ claim[r].s = node[n].s
\* with the global barrier nobody works under one generation while others work under another
OneGeneration == \A a, b \in N : \A q, r \in R : Mode = "global" /\ Works(a, q) /\ Works(b, r) => node[a].bar.gen = node[b].bar.gen \/ node[a].ph[q] = "draining" \/ node[b].ph[r] = "draining"
\* one coordinator to a term
OneCoordinator == \A a, b \in N : a # b /\ node[a].lead # 0 => node[a].lead # node[b].lead
\* "released under a handler", "a deposed coordinator wrote", "opened over work", "moved too much": no step does that
KeptPromises == wrong = {}

\* fences and epochs grow, whatever is deleted and made again
FencesGrow == [][\A r \in R : claim'[r].v >= claim[r].v /\ (claim'[r].s \notin {None, claim[r].s} => claim'[r].v > claim[r].v)]_vars
EpochsGrow == [][epoch' >= epoch /\ (leader'.s # None /\ leader' # leader => leader'.e > epoch)]_vars
\* a node that starts to work has a greater fence than all that worked before: with Covered, FencesGrow says so

\* everything that somebody may have is worked, once, by a live member, evenly
Owners(r) == {n \in N : Works(n, r)}
Settled ==
  LET S == {m \in Members : ~member[m].leaving}
  IN S # {} => \E f \in Best[May(S)] : \A r \in R : Owners(r) = (IF f[r] = None THEN {} ELSE {f[r]})
\* nothing is left that could be done without another fault, and yet all is not settled
Quiet    == ~(ENABLED Proto) => Settled
Liveness == <>[]Settled
\* plans come to an end
PlansEnd == <>[][asg' = asg]_vars

Sym == Permutations(N) \cup Permutations(R)
=============================================================================

------------------------------- MODULE Forgets -------------------------------
(* Claims on a store that goes back to an earlier state, or to nothing, while
   nodes work (rules F1 to F7). What a node wants is arbitrary here, any resource
   at any time, so what holds does not depend on coordinators or assignments.
   Every request and answer travels by itself, and may be overtaken.

   Module Clocks shows what is assumed of time: a session that was last renewed in
   the running incarnation outlives its node's trust (Expire), and the grace
   outlasts all trust from earlier incarnations (GraceEnds).

   Steps that stand for coord's: OpenSession, Renew and Renewed, Noticed (the read
   of the own claims in a new incarnation), SendClaim, ClaimArrives, ClaimAnswered
   (Commit and Committed), ClaimUnknown, StartWork, Stopped, SendRelease,
   ReleaseArrives, Fence. *)
EXTENDS Naturals, FiniteSets, TLC
CONSTANTS N, R, None,
  MaxOpen, MaxClaim, MaxSnap, MaxBack, MaxLost,   \* how many sessions, claims, snapshots, losses of data, lost or doubled messages
  Skew,    \* by how much the clocks of two servers differ
  Grace,   \* on the same scale
  History, \* TRUE: keep what FencesGrow needs
  Off
VARIABLES
  db,      \* what the store may lose: [live |-> sessions, claim |-> [R -> [s, v]], last |-> [R -> version], ctr |-> sessions given]
  inc,     \* the incarnation of its data
  over,    \* its grace is over
  clock, offset,   \* the server's time; it does not go back, but the next server's may differ
  snap,    \* a state that may come back; None
  node,    \* [s: session, 0: none; renewed: incarnation of the last renewal; inc: incarnation that was accepted;
           \*  work: resources; got: [R -> version of the claim obtained, 0: none]; ans: of a renewal, on its way]
  creqs, creps, rreqs,     \* claims, their answers, releases
  top,     \* [R -> the newest claim that was worked under]
  spent    \* [open, claim, snap, back, lost]: how many there were
vars == <<db, inc, over, clock, offset, snap, node, creqs, creps, rreqs, top, spent>>

G(guard)  == guard \notin Off
Free      == [s |-> 0, v |-> 0]
Nothing   == [live |-> {}, claim |-> [r \in R |-> Free], last |-> [r \in R |-> 0], ctr |-> 0]
NoProcess == [s |-> 0, renewed |-> 0, inc |-> 0, work |-> {}, got |-> [r \in R |-> 0], ans |-> None]
Max(a, b) == IF a > b THEN a ELSE b
Spend(what, most) == spent[what] < most /\ spent' = [spent EXCEPT ![what] = @ + 1]
Working(n, r)     == r \in node[n].work
Asked(n, r)       == (\E q \in creqs : q.n = n /\ q.r = r /\ q.ans) \/ (\E p \in creps : p.n = n /\ p.r = r)

Init ==
  /\ db = Nothing /\ inc = 0 /\ over = TRUE /\ clock = 1 /\ offset \in 0..Skew /\ snap = None
  /\ node = [n \in N |-> NoProcess] /\ creqs = {} /\ creps = {} /\ rreqs = {}
  /\ top = [r \in R |-> Free]
  /\ spent = [open |-> 0, claim |-> 0, snap |-> 0, back |-> 0, lost |-> 0]

------------------------------- \* sessions
OpenSession(n) ==
  /\ Spend("open", MaxOpen)
  /\ IF G("fence before rejoin") THEN node[n].s = 0 ELSE node[n].s \notin db.live
  /\ LET s == IF G("store: unique sessions") THEN spent.open + 1 ELSE db.ctr + 1
     IN /\ db' = [db EXCEPT !.live = @ \cup {s}, !.ctr = @ + 1]
        /\ node' = [node EXCEPT ![n].s = s, ![n].renewed = inc, ![n].inc = inc]
  /\ UNCHANGED <<inc, over, clock, offset, snap, creqs, creps, rreqs, top>>

\* the process ends, or its trust does, or a renewal was refused: nothing is held any more
Fence(n) ==
  /\ node[n].s # 0 /\ node' = [node EXCEPT ![n] = NoProcess]
  /\ creqs' = {IF q.n = n THEN [q EXCEPT !.ans = FALSE] ELSE q : q \in creqs}
  /\ creps' = {p \in creps : p.n # n}
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, rreqs, spent, top>>

Renew(n) ==
  /\ node[n].s \in db.live /\ node[n].ans = None
  /\ G("renew incarnation") => node[n].inc = inc
  /\ node' = [node EXCEPT ![n].ans = inc]
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, creqs, creps, rreqs, spent, top>>
Renewed(n) ==
  /\ node[n].ans # None
  /\ node' = [node EXCEPT ![n].ans = None, ![n].renewed = Max(@, node[n].ans)]
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, creqs, creps, rreqs, spent, top>>

\* a renewal's answer that is older than the trust it would give is no use any more
Stale(i) == [n \in N |-> IF node[n].ans # None /\ node[n].ans < i THEN [node[n] EXCEPT !.ans = None] ELSE node[n]]
Expire(s) ==
  /\ s \in db.live
  /\ \A n \in N : ~(node[n].s = s /\ node[n].renewed = inc)
  /\ db' = [db EXCEPT !.live = @ \ {s}, !.claim = [r \in R |-> IF @[r].s = s THEN Free ELSE @[r]]]
  /\ node' = [n \in N |-> IF node[n].s = s /\ node[n].ans = inc THEN [node[n] EXCEPT !.ans = None] ELSE node[n]]
  /\ UNCHANGED <<inc, over, clock, offset, snap, creqs, creps, rreqs, spent, top>>

\* the own claims are read in a new incarnation: exactly those of the same session and version are kept
Noticed(n) ==
  /\ node[n].s # 0 /\ node[n].inc # inc
  /\ LET kept == {r \in R : \/ ~G("re-read")
                            \/ /\ node[n].got[r] # 0 /\ db.claim[r].s = node[n].s
                               /\ G("same version") => db.claim[r].v = node[n].got[r]}
     IN node' = [node EXCEPT ![n].inc = inc, ![n].work = @ \cap kept,
                             ![n].got = [r \in R |-> IF r \in kept THEN @[r] ELSE 0]]
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, creqs, creps, rreqs, spent, top>>

------------------------------- \* claims
SendClaim(n, r) ==
  /\ node[n].s # 0 /\ node[n].got[r] = 0 /\ ~Asked(n, r) /\ Spend("claim", MaxClaim)
  /\ creqs' = creqs \cup {[n |-> n, r |-> r, s |-> node[n].s, inc |-> node[n].inc, ans |-> TRUE]}
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, node, creps, rreqs, top>>

\* The group was created explicitly in incarnation 0: claims that were sent in it ask for no grace.
ClaimArrives(q) ==
  /\ creqs' = creqs \ {q}
  /\ IF /\ db.claim[q.r] = Free /\ q.s \in db.live
        /\ G("grace") => over \/ q.inc = 0
        /\ G("store: commit compares") => q.inc = inc
     THEN LET v == IF G("store: clock versions") THEN Max(db.last[q.r] + 1, clock + offset) ELSE db.last[q.r] + 1
          IN /\ db' = [db EXCEPT !.claim[q.r] = [s |-> q.s, v |-> v], !.last[q.r] = v]
             /\ clock' = clock + 1
             /\ creps' = IF q.ans THEN creps \cup {[n |-> q.n, r |-> q.r, s |-> q.s, v |-> v, inc |-> inc]} ELSE creps
     ELSE UNCHANGED <<db, clock, creps>>
  /\ UNCHANGED <<inc, over, offset, snap, node, rreqs, spent, top>>

ClaimAnswered(p) ==
  /\ creps' = creps \ {p}
  /\ node' = IF node[p.n].s = p.s /\ (G("reply incarnation") => p.inc = node[p.n].inc)
             THEN [node EXCEPT ![p.n].got[p.r] = p.v] ELSE node
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, creqs, rreqs, spent, top>>

ClaimUnknown(n, r) ==
  /\ Asked(n, r) /\ Spend("lost", MaxLost)
  /\ creqs' = {IF q.n = n /\ q.r = r THEN [q EXCEPT !.ans = FALSE] ELSE q : q \in creqs}
  /\ creps' = {p \in creps : ~(p.n = n /\ p.r = r)}
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, node, rreqs, top>>

\* a claim of the own session that was read, but not obtained
Ghost(n, r) == /\ node[n].s # 0 /\ node[n].inc = inc /\ db.claim[r].s = node[n].s /\ node[n].got[r] = 0 /\ ~Asked(n, r)

StartWork(n, r) ==
  /\ node[n].s # 0 /\ r \notin node[n].work
  /\ \/ node[n].got[r] # 0 /\ node' = [node EXCEPT ![n].work = @ \cup {r}]
     \/ ~G("own commit") /\ Ghost(n, r) /\ node' = [node EXCEPT ![n].work = @ \cup {r}, ![n].got[r] = db.claim[r].v]
  /\ LET c == [s |-> node[n].s, v |-> node'[n].got[r]] IN top' = IF History /\ c # top[r] THEN [top EXCEPT ![r] = c] ELSE top
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, creqs, creps, rreqs, spent>>
Stopped(n, r) ==
  /\ r \in node[n].work /\ node' = [node EXCEPT ![n].work = @ \ {r}]
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, creqs, creps, rreqs, spent, top>>

SendRelease(n, r) ==
  /\ node[n].s # 0 /\ r \notin node[n].work
  /\ \E v \in {node[n].got[r]} \cup (IF Ghost(n, r) THEN {db.claim[r].v} ELSE {}) :
       v # 0 /\ rreqs' = rreqs \cup {[r |-> r, s |-> node[n].s, v |-> v, inc |-> node[n].inc]}
  /\ node' = [node EXCEPT ![n].got[r] = 0]
  /\ UNCHANGED <<db, inc, over, clock, offset, snap, creqs, creps, spent, top>>
ReleaseArrives(q) ==
  /\ \/ rreqs' = rreqs \ {q} /\ UNCHANGED spent
     \/ UNCHANGED rreqs /\ Spend("lost", MaxLost)        \* and once more, later
  /\ db' = IF /\ G("release version") => db.claim[q.r].v = q.v
              /\ G("store: commit compares") => q.inc = inc
              /\ q.s \in db.live
           THEN [db EXCEPT !.claim[q.r] = Free] ELSE db
  /\ UNCHANGED <<inc, over, clock, offset, snap, node, creqs, creps, top>>

------------------------------- \* losses
Snapshot ==
  /\ Spend("snap", MaxSnap) /\ snap' = db
  /\ UNCHANGED <<db, inc, over, clock, offset, node, creqs, creps, rreqs, top>>
GoBack ==
  /\ Spend("back", MaxBack)
  /\ \E d \in {Nothing} \cup (IF snap = None THEN {} ELSE {snap}) : db' = d
  /\ inc' = inc + 1 /\ over' = FALSE /\ offset' \in 0..Skew
  /\ UNCHANGED <<clock, snap, node, creqs, creps, rreqs, top>>
\* emptied while it runs: only the missing record tells
Emptied ==
  /\ ~G("store: absent record") /\ Spend("back", MaxBack) /\ db' = Nothing
  /\ UNCHANGED <<inc, over, clock, offset, snap, node, creqs, creps, rreqs, top>>
GraceEnds ==
  /\ ~over /\ over' = TRUE /\ clock' = clock + Grace
  /\ G("grace outlasts") => \A n \in N : node[n].s # 0 => node[n].renewed >= (IF G("store: regrace") THEN inc ELSE 1)
  /\ node' = Stale(inc)
  /\ UNCHANGED <<db, inc, offset, snap, creqs, creps, rreqs, spent, top>>

Next ==
  \/ \E n \in N : \/ OpenSession(n) \/ Fence(n) \/ Renew(n) \/ Renewed(n) \/ Noticed(n)
                  \/ \E r \in R : SendClaim(n, r) \/ ClaimUnknown(n, r) \/ StartWork(n, r) \/ Stopped(n, r) \/ SendRelease(n, r)
  \/ \E s \in db.live : Expire(s)
  \/ \E q \in creqs : ClaimArrives(q)
  \/ \E p \in creps : ClaimAnswered(p)
  \/ \E q \in rreqs : ReleaseArrives(q)
  \/ Snapshot \/ GoBack \/ Emptied \/ GraceEnds
Spec == Init /\ [][Next]_vars

------------------------------- \* promises
NoOverlap == \A r \in R : \A a, b \in N : a # b => ~(Working(a, r) /\ Working(b, r))
\* work that is trusted in the running incarnation is covered by the very claim
Covered   == \A n \in N : \A r \in R :
               Working(n, r) /\ node[n].renewed = inc => db.claim[r] = [s |-> node[n].s, v |-> node[n].got[r]]
\* what work starts under is newer than all that anybody has worked under before, or is that very claim
FencesGrow == [][\A r \in R : top'[r].v >= top[r].v /\ (top'[r] # top[r] => top'[r].v > top[r].v)]_top

\* must be violated
NeverKept      == ~(\E n \in N : \E r \in R : Working(n, r) /\ inc > 0 /\ node[n].renewed = inc)
NeverGhost     == ~(\E n \in N : \E r \in R : Ghost(n, r))
NeverLostWork  == ~(\E n \in N : \E r \in R : Working(n, r) /\ db.claim[r].s # node[n].s)
NeverOtherSoon == ~(\E n \in N : \E r \in R : Working(n, r) /\ node[n].inc = inc /\ inc > 0 /\ over)
NeverReturned  == ~(inc > 0 /\ \E r \in R : db.claim[r].s # 0 /\ ~over)

Sym == Permutations(N)
=============================================================================

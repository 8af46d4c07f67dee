------------------------------- MODULE Clocks -------------------------------
(* Discrete time: one node's clock against the store's. It shows what the other
   modules assume:
     Session!Expire     a session ends at the store only after its node's trust in it;
     Forgets!GraceEnds  the grace outlasts all trust from before the data was lost;
     and that a step of the store's clock, which breaks the first, is survived by
     the next owner's waiting.
   Timers count down, so runs of every length are covered. A tick is a tick of
   the store; the node's clock may miss one in every Drift ticks, no more. *)
EXTENDS Naturals
CONSTANTS
  TTL,        \* of the session, at the store
  Trust,      \* of the node in its session, on its own clock: TTL less the margin
  Drift,      \* the node's clock may miss 1 tick in Drift; 0: none
  Step,       \* how far the store's clock may be stepped forward, once; 0: not
  Tolerance,  \* steps up to this are not noticed
  Grace,      \* how long after a loss of its data the store takes no claim; None of it counts before it was noticed
  Split,      \* how long the old server may go on to answer after a failover
  Loss,       \* TRUE: the store may lose its data
  Off
VARIABLES
  left,       \* ticks until the session ends at the store; 0: it has ended
  trust,      \* ticks of the node's clock until its trust ends
  call,       \* its renewal: "none" | "sent" | "done": applied, the answer is on its way
  age,        \* ticks of the node's clock since it was sent
  slow,       \* ticks until its clock may miss one again
  stepped,
  lost,
  split,      \* ticks that the old server goes on
  grace,      \* ticks until claims are taken; Grace + 1: the loss has not been noticed
  next,       \* the next owner: "no" | "holds": it has the claim, and waits | "works"
  hold        \* ticks that it waits
vars == <<left, trust, call, age, slow, stepped, lost, split, grace, next, hold>>

G(guard) == guard \notin Off
Less(x)  == IF x > 0 THEN x - 1 ELSE 0

Init == /\ left = TTL /\ trust = Trust /\ call = "none" /\ age = 0 /\ slow = 0
        /\ stepped = FALSE /\ lost = FALSE /\ split = Split /\ grace = Grace + 1
        /\ next = "no" /\ hold = 0

Tick ==
  /\ left' = Less(left) /\ hold' = Less(hold)
  /\ split' = IF lost THEN Less(split) ELSE split
  /\ grace' = IF grace = Grace + 1 THEN grace ELSE Less(grace)
  /\ \/ /\ trust' = Less(trust) /\ slow' = Less(slow)
        /\ age' = IF call = "none" THEN 0 ELSE IF age < TTL THEN age + 1 ELSE age
     \/ Drift > 0 /\ slow = 0 /\ slow' = Drift - 1 /\ UNCHANGED <<trust, age>>
  /\ UNCHANGED <<call, stepped, lost, next>>

\* the node
SendRenew == /\ call = "none" /\ call' = "sent" /\ age' = 0
             /\ UNCHANGED <<left, trust, slow, stepped, lost, split, grace, next, hold>>
Renew == /\ call = "sent" /\ (lost => split > 0)
         /\ IF left = 0 /\ G("store: renewal of the living")
            THEN call' = "none" /\ UNCHANGED left
            ELSE call' = "done" /\ left' = TTL
         /\ UNCHANGED <<trust, age, slow, stepped, lost, split, grace, next, hold>>
\* Without "trust" a node that was frozen, and finds its time over, goes on when an answer comes that is old.
Renewed == /\ call = "done" /\ call' = "none" /\ age' = 0
           /\ LET from == IF G("sent") THEN age ELSE 0
                  more == IF from < Trust THEN Trust - from ELSE 0
              IN trust' = IF (trust > 0 \/ ~G("trust")) /\ more > trust THEN more ELSE trust
           /\ UNCHANGED <<left, slow, stepped, lost, split, grace, next, hold>>
LoseCall == /\ call # "none" /\ call' = "none" /\ age' = 0
            /\ UNCHANGED <<left, trust, slow, stepped, lost, split, grace, next, hold>>

\* the store
StepClock == /\ Step > 0 /\ ~stepped /\ stepped' = TRUE
             /\ left' = IF left > Step THEN left - Step ELSE 0
             /\ UNCHANGED <<trust, call, age, slow, lost, split, grace, next, hold>>
LoseData  == /\ Loss /\ ~lost /\ lost' = TRUE
             /\ UNCHANGED <<left, trust, call, age, slow, stepped, split, grace, next, hold>>
\* the new incarnation begins
NoticeLoss == /\ lost /\ grace = Grace + 1 /\ grace' = Grace
              /\ UNCHANGED <<left, trust, call, age, slow, stepped, lost, split, next, hold>>

\* the next owner: it claims when the claim is free, and has seen the store's time before and after the step
Claim == /\ next = "no" /\ IF lost THEN grace = 0 \/ ~G("grace") ELSE left = 0
         /\ IF stepped /\ Step > Tolerance /\ G("store step")
            THEN next' = "holds" /\ hold' = TTL
            ELSE next' = "works" /\ UNCHANGED hold
         /\ UNCHANGED <<left, trust, call, age, slow, stepped, lost, split, grace>>
Open  == /\ next = "holds" /\ hold = 0 /\ next' = "works"
         /\ UNCHANGED <<left, trust, call, age, slow, stepped, lost, split, grace, hold>>

Next == Tick \/ SendRenew \/ Renew \/ Renewed \/ LoseCall \/ StepClock \/ LoseData \/ NoticeLoss \/ Claim \/ Open
Spec == Init /\ [][Next]_vars

\* who is trusted lives: the assumption of Session!Expire
TrustedLives == trust > 0 /\ ~stepped /\ ~lost => left > 0
\* nobody else works what a node trusts to be its own
NoOverlap    == next = "works" => trust = 0

\* must be violated
NeverRenewed == ~(call = "done" /\ trust < Trust)
NeverNext    == next # "works"
NeverHolds   == next # "holds"
NeverUntrustedLives == ~(trust = 0 /\ left > 0)
NeverNextAfterLoss  == ~(lost /\ left > 0 /\ next = "works")
=============================================================================

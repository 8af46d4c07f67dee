package sim

// StoreGuards is a set of names of promises that the store keeps. Only tests break them.
type StoreGuards uint16

// What the protocol relies on in a store. Each comment says what the store does while the guard is in place.
const (
	StoreAbsentRecord     StoreGuards = 1 << iota // F1: data without its record is a new incarnation
	StoreRegrace                                  // F2: each loss of data begins a new grace
	StoreClaimGrace                               // F2: a transaction waits for the grace that it names
	StoreRenewCompares                            // F3: a renewal is refused in another incarnation than the one it names
	StoreCommitCompares                           // F3: a commit is refused in another incarnation than the one it names
	StoreUniqueSessions                           // F6: a session's id is never given twice, also after a loss of data
	StoreClockVersions                            // F7: versions take the store's time, so that they grow across a loss of data
	StoreExpiryAware                              // H1: an entry of an ended session reads as absent in renewals and digests
	StoreRenewAlive                               // an ended session cannot be renewed
	StoreCommitAlive                              // an ended session commits nothing
	StorePutVersions                              // a version grows also across delete and re-create
	StoreAtomicChecks                             // a transaction whose checks do not hold changes nothing
	StoreSupersedeRefuses                         // S1: a superseded session can neither be renewed nor bind anything
	StoreSupersedeKeeps                           // S1, S5: what a superseded session holds stays until its end, unless its process is proved to be dead
	storeGuardEnd
)

// A guard is in place unless it was taken out.
func (s *store) has(g StoreGuards) bool { return s.without&g == 0 }

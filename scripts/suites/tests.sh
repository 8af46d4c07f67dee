# A short run of everything tests each package twice already: under the race detector, and without it with the newest dependencies.
tested_elsewhere() {
	[ -z "$SOAK" ] && case " $asked " in *" race "*" newest "*) need_cc ;; *) false ;; esac
}
tested_elsewhere || gotest "tests: every package, shuffled" -shuffle="$SEED" $(packages)

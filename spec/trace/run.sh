#!/bin/bash
# Validates traces of the code against the specification, with TLC. TLA2TOOLS_JAR names the jar of the TLA+ tools.
#   spec/trace/run.sh [-n N] [-seed S] [-runs N] [-dir DIRECTORY]
# N simulated groups from seed S (1000 from a fresh one) are recorded, and as many runs of groups over real servers with faults (-runs, 20; 0: none). With
# -dir nothing is recorded: the traces in that directory are taken. Each must be a behaviour of the specification, in which something is worked; and
# altered ones, and an empty one, must be refused. BATCH is how many traces TLC takes at a time (100), WORKERS is for TLC (2).
set -u
cd "$(dirname "$0")" || exit 2
root=$(cd ../.. && pwd)
n=1000 seed=$(($(date +%s) % 1000000000)) runs=20 given=
while [ $# -gt 0 ]; do
	case $1 in
	-n) n=$2 ;;
	-seed) seed=$2 ;;
	-runs) runs=$2 ;;
	-dir) given=$2 ;;
	*) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit 2 ;;
	esac
	shift 2 || exit 2
done
if [ ! -f "${TLA2TOOLS_JAR:-}" ] || ! command -v java >/dev/null; then
	echo "spec/trace: NOTHING WAS CHECKED: TLA2TOOLS_JAR names no jar of the TLA+ tools, or there is no java" >&2
	exit 3
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/sim" "$tmp/real" "$tmp/none" || exit 2
go build -o "$tmp/cmd" "$root/spec/trace/cmd" || exit 2
failed=0

# tlc MODULE: what TLC says of a module of traces, in $tmp/out.
tlc() {
	rm -rf "$tmp/states"
	java -XX:+UseParallelGC -Xmx"${HEAP:-3g}" -Xss64m -DTLA-Library="$PWD:$PWD/.." -cp "$TLA2TOOLS_JAR" tlc2.TLC -noGenerateSpecTE -metadir "$tmp/states" \
		-workers "${WORKERS:-2}" -config "$1.cfg" "$1.tla" >"$tmp/out" 2>&1
}

fail() {
	failed=$((failed + 1))
	echo "spec/trace: FAILED: $*"
}

# accept DIRECTORY: all traces in it are behaviours of the specification.
accept() {
	local from=$1 out=$1/modules module states began=$SECONDS total=0
	mkdir -p "$out"
	find "$from" -maxdepth 1 -name '*.ndjson' | sort | xargs "$tmp/cmd" -batch "${BATCH:-100}" "$out" || fail "$from: Go refuses some"
	for module in "$out"/Batch*.tla; do
		[ -f "$module" ] || { fail "$from: there is no trace in which something is worked" && return; }
		if ! tlc "${module%.tla}"; then
			fail "${module##*/}:"
			grep -E '^(Error|Assumption|/\\ [ti] =)' "$tmp/out" | tail -12
			cp "$tmp/out" "${TMPDIR:-/tmp}/spec-trace-${module##*/}.out"
		fi
		states=$(sed -n 's/^[0-9]* states generated, \([0-9]*\) distinct.*/\1/p' "$tmp/out" | tail -1)
		total=$((total + ${states:-0}))
	done
	echo "spec/trace: ${from##*/}: $total states, $((SECONDS - began)) s"
}

# refuse MODULE WHAT: TLC finds that the trace is none of the specification.
refuse() {
	local rc
	tlc "$1"
	rc=$?
	# 11: a step is not allowed; 12, 13: a promise is broken; 10: an assumption, of traces that are not empty
	case $rc in 10 | 11 | 12 | 13) ;; *) fail "$2: not refused (exit status $rc)" && cp "$tmp/out" "${TMPDIR:-/tmp}/spec-trace-refused.out" ;; esac
}

altered() {
	local line module count=0
	mkdir -p "$tmp/altered"
	find "$1" -maxdepth 1 -name '*.ndjson' | sort | xargs "$tmp/cmd" -alter 3 "$tmp/altered" >"$tmp/list" || fail "Go does not refuse some that were altered"
	while IFS=: read -r module line; do
		refuse "$tmp/altered/$module" "$module,$line" && count=$((count + 1))
	done <"$tmp/list"
	[ $count -gt 0 ] || fail "there was nothing to alter"
	echo "spec/trace: $count altered traces were tried"
}

empty() {
	local kind
	for kind in '<< >>' '<< << >> >>' '<< << [a |-> "Start", l |-> 1, n |-> 1] >> >>'; do
		printf -- '---- MODULE Empty ----\nEXTENDS Trace\nRecorded == %s\n====\n' "$kind" >"$tmp/none/Empty.tla"
		cp "$tmp/any.cfg" "$tmp/none/Empty.cfg"
		refuse "$tmp/none/Empty" "an empty match: $kind"
	done
}

if [ -n "$given" ]; then
	cp "$given"/*.ndjson "$tmp/sim/" || exit 2
else
	echo "spec/trace: $n simulated groups from seed $seed; again: spec/trace/run.sh -n $n -seed $seed -runs 0"
	(cd "$root" && go test ./coord/sim -run '^TestTraces$' -count=1 -first="$seed" -traces="$n" -into="$tmp/sim") || fail "simulated groups"
fi
accept "$tmp/sim"
altered "$tmp/sim"
cp "$tmp/sim/modules/Batch1.cfg" "$tmp/any.cfg" && empty
if [ -z "$given" ] && [ "$runs" -gt 0 ]; then
	(cd "$root" && REBAL_REQUIRE=servers go test ./integration/stores -run '^TestTracedRuns$' -count=1 -timeout 1h -parallel 4 -traces="$runs" -into="$tmp/real") || fail "runs over real servers"
	accept "$tmp/real"
fi
echo "spec/trace: $failed failed, $SECONDS s"
[ $failed -eq 0 ]

#!/bin/bash
# Checks the specification with TLC. TLA2TOOLS_JAR names the jar of the TLA+ tools.
#   spec/run.sh mc|mutants|trace|all [-write] [PATTERN]
# mc: every row of checks/mc.txt passes, and of checks/reach.txt what is said never to happen does happen. mutants: every row of
# checks/mutants.txt fails, with the property that it names. trace: spec/trace/run.sh. PATTERN picks rows by their name.
# -write renews RESULTS.md, after a whole run. JOBS is how many checks run at a time, each on one core (2), LIMIT for one check, in seconds (900).
set -uf
cd "$(dirname "$0")" || exit 2
JOBS=${JOBS:-2} LIMIT=${LIMIT:-900}
what=${1:-} write= pattern=
for arg in "${@:2}"; do
	case $arg in -write) write=yes ;; *) pattern=$arg ;; esac
done
case $what in mc | mutants | trace | all) ;; *)
	sed -n '2,7s/^# \{0,1\}//p' "$0"
	exit 2
	;;
esac
if [ ! -f "${TLA2TOOLS_JAR:-}" ]; then
	echo "spec: NOTHING WAS CHECKED: TLA2TOOLS_JAR does not name a jar of the TLA+ tools (tla2tools.jar)" >&2
	exit 3
fi
command -v java >/dev/null || {
	echo "spec: NOTHING WAS CHECKED: there is no java" >&2
	exit 3
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ran=0
# One archive of the tools' classes makes every start cheaper.
shared=()
archive() {
	java -XX:ArchiveClassesAtExit="$tmp/classes.jsa" -XX:+UseSerialGC -cp "$TLA2TOOLS_JAR" tlc2.TLC -noGenerateSpecTE -metadir "$tmp/states" \
		-config cfg/clocks.cfg Clocks.tla >/dev/null 2>&1
	[ ! -f "$tmp/classes.jsa" ] || shared=(-Xshare:auto -XX:SharedArchiveFile="$tmp/classes.jsa")
}

# config CFG CHANGES FILE: the configuration with some of its lines replaced: CONSTANT=VALUE, or KEYWORD=NAME. A guard's name has _ for a space.
config() {
	local out=$3 change key value
	cp "cfg/$1.cfg" "$out"
	for change in $2; do
		key=${change%%=*} value=${change#*=}
		case $key in
		SPECIFICATION | INVARIANTS | PROPERTIES | SYMMETRY)
			sed -i "/^$key /d" "$out"
			[ -z "$value" ] || echo "$key $value" >>"$out"
			;;
		*)
			grep -q "^  $key = " "$out" || {
				echo "spec: cfg/$1.cfg has no constant $key" >&2
				return 1
			}
			[ "$key" != Off ] || value=${value//_/ }
			sed -i "s|^  $key = .*|  $key = $value|" "$out"
			;;
		esac
	done
}

# check DIR KIND NAME MODULE CFG CHANGES EXPECTED: EXPECTED is empty, or the property that must not hold. One worker: of several, some wait where TLC looks
# at liveness, and the first counterexample is not the shortest. Liveness is looked at once, in the whole graph. Its row of the table goes to DIR, and a file that is named failed, if it did.
check() {
	local dir=$1 kind=$2 name=$3 module=$4 cfg=$5 changes=$6 expected=$7 rc broken steps began=$SECONDS verdict
	local java=(-XX:+UseSerialGC)
	[ -z "$expected" ] || java+=(-XX:TieredStopAtLevel=1) # it ends before Java becomes fast
	mkdir "$dir"
	if config "$cfg" "$changes" "$dir/run.cfg"; then
		TIMEFORMAT='%U %S'
		{ time timeout "$LIMIT" java "${java[@]}" "${shared[@]}" -Xmx"${HEAP:-3g}" -cp "$TLA2TOOLS_JAR" tlc2.TLC -noGenerateSpecTE \
			-metadir "$dir/states" -lncheck final -workers 1 -config "$dir/run.cfg" "$module.tla" </dev/null >"$dir/out" 2>&1; } 2>"$dir/time"
		rc=$?
	else
		rc=1 && : >"$dir/out" && echo 0 0 >"$dir/time"
	fi
	local states distinct depth
	read -r states distinct <<<"$(sed -n 's/^\([0-9]*\) states generated, \([0-9]*\) distinct.*/\1 \2/p' "$dir/out" | tail -1)"
	depth=$(sed -n 's/^The depth of the complete state graph search is \([0-9]*\).*/\1/p' "$dir/out")
	broken=$(sed -n -E 's/^Error: (Invariant|Action property|Temporal property) ([A-Za-z]+).* (is|was) violated.*/\2/p' "$dir/out" | head -1)
	grep -q '^Error: Temporal properties were violated' "$dir/out" && broken=Liveness
	steps=$(sed -n 's/^State \([0-9]*\):.*/\1/p' "$dir/out" | sort -n | tail -1)
	if [ -z "$expected" ]; then
		verdict=ok
		[ $rc -eq 0 ] && [ "${distinct:-0}" -gt 1 ] || verdict=FAILED
	else
		verdict="$broken, ${steps:-0} steps"
		[ $rc -eq 12 ] || [ $rc -eq 13 ] || verdict="FAILED: exit status $rc"
		[ -n "$broken" ] && [[ ",$expected," == *",$broken,"* ]] || verdict="FAILED: $expected should break, not ${broken:-nothing}"
	fi
	local took=$((SECONDS - began)) cpu
	cpu=$(awk '{printf "%.0f", $1 + $2}' "$dir/time")
	echo "| $kind | $name | $module | $cfg $changes | $verdict | ${distinct:-0} | ${states:-0} | ${depth:-} | $took | $cpu |" >"$dir/row"
	printf '%-8s %-44s %s: exit %d, %s distinct of %s states, depth %s, %d s (%d s of cpu)\n' "$kind" "$name" "$verdict" "$rc" "${distinct:-0}" "${states:-0}" "${depth:--}" "$took" "$cpu"
	if [[ $verdict == FAILED* ]]; then
		touch "$dir/failed"
		cp "$dir/out" "${TMPDIR:-/tmp}/spec-$kind-${name//[^A-Za-z0-9]/-}.out"
		grep -E '^(Error|State [0-9]|\*\*\*|[0-9]+\. Line)' "$dir/out" | head -40
	fi
	rm -rf "$dir/states"
}

# rows KIND: NAME ; MODULE ; CFG ; CHANGES ; EXPECTED
rows() {
	local name module cfg changes expected
	while IFS=';' read -r name module cfg changes expected; do
		name=$(echo $name) module=$(echo $module) cfg=$(echo $cfg) expected=$(echo $expected)
		case $name in '' | '#'*) continue ;; esac
		[[ -z $pattern || $name == *$pattern* ]] || continue
		ran=$((ran + 1))
		[ $ran -le "$JOBS" ] || wait -n
		check "$tmp/$(printf %04d $ran)" "$1" "$name" "$module" "$cfg" "$(echo $changes)" "$expected" &
	done <"checks/$1.txt"
}

[ "$what" = trace ] || archive
case $what in mc | all) rows mc; rows reach ;; esac
case $what in mutants | all) rows mutants ;; esac
wait
failed=$(find "$tmp" -name failed | wc -l)
case $what in trace | all)
	if [ -x trace/run.sh ]; then
		ran=$((ran + 1)) verdict=ok
		trace/run.sh | tee "$tmp/traces"
		[ "${PIPESTATUS[0]}" -eq 0 ] || verdict=FAILED failed=$((failed + 1))
		mkdir "$tmp/trace"
		echo "| trace | $(sed -n 's/^spec\/trace: //p' "$tmp/traces" | paste -sd';' -) | Trace | | $verdict | | | | | |" >"$tmp/trace/row"
	else
		echo "spec: there is no trace/run.sh: no trace was checked" && failed=$((failed + 1))
	fi
	;;
esac
if [ $ran -eq 0 ]; then
	echo "spec: NOTHING WAS CHECKED: no row has $pattern in its name" >&2
	exit 3
fi
echo "spec: $ran checks, $failed failed, $SECONDS s"
if [ -n "$write" ] && [ -z "$pattern" ] && [ "$what" = all ]; then
	{
		echo "# Results of the last run"
		echo
		echo "Written by \`spec/run.sh all -write\` with $(java -cp "$TLA2TOOLS_JAR" tlc2.TLC -help 2>/dev/null | sed -n 's/.*\(Version [0-9.]*[0-9]\).*/\1/p' | head -1) of TLC, $JOBS checks at a time; do not edit. $ran checks, $failed failed, $SECONDS s."
		echo
		echo "| what | name | module | configuration | result | distinct states | states | depth | s | s of cpu |"
		echo "|---|---|---|---|---|---|---|---|---|---|"
		find "$tmp" -name row | sort | xargs cat
	} >RESULTS.md
fi
[ $failed -eq 0 ]

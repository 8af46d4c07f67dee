#!/usr/bin/env bash
# Writes what the last run of scripts/test.sh tested, and on which versions, into the marked part of docs/tested.md.
# usage: scripts/tested.sh [RESULTS [PAGE]]; RESULTS is what the run has kept: .cache/tested
set -euo pipefail
cd "$(dirname "$0")/.."
results=${1:-.cache/tested} page=${2:-docs/tested.md}
[ -r "$results" ] || { echo "scripts/tested.sh: $results is missing: run scripts/test.sh first" >&2; exit 1; }
[ "$(grep -cE '^<!-- tested: (begin|end) -->$' "$page")" = 2 ] || { echo "scripts/tested.sh: $page lacks its two marks" >&2; exit 1; }
part=$(mktemp)
trap 'rm -f "$part" "$part.page"' EXIT

# The lines of RESULTS: a word, a tab, and what belongs to it. "on" is a line about the machine, "server" a name and its versions, "suite" a line of the summary.
awk -F '\t' '
	$1 == "on"     { on = on "- " $2 "\n" }
	$1 == "server" { servers = servers "| " $2 " | " $3 " |\n" }
	$1 == "suite"  { suites = suites sprintf("| %s | %s | %d | %d | %d s |\n", $7, $2, $3, $4, $6) }
	END {
		printf "%s\n", on
		printf "| server | versions |\n|---|---|\n%s\n", servers
		printf "| suite | result | passed | failed | took |\n|---|---|---|---|---|\n%s", suites
	}' "$results" >"$part"
awk -v part="$part" '
	/^<!-- tested: begin -->$/ { print; while ((getline line <part) > 0) print line; skip = 1 }
	/^<!-- tested: end -->$/   { skip = 0 }
	!skip { if (!/^<!-- tested: begin -->$/) print }' "$page" >"$part.page"
cat "$part.page" >"$page"

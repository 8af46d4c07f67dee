#!/usr/bin/env bash
# Runs the suites, all or those that are named, and ends with a summary. See --help.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

SUITES="lint tests race repeat worlds search processes stores sources page quickstart bench newest"

usage() {
	cat <<'TEXT'
usage: scripts/test.sh [--soak] [SUITE…]

  lint        gofmt, go vet, staticcheck, tidy modules, other platforms build
  tests       go test of every package, shuffled; part of a whole run only with --soak: race and newest run the same
  race        the same under the race detector (needs a C compiler)
  repeat      the protocol's tests 20 times in random order
  worlds      10,000 simulated groups from a fresh seed (soak: 200,000)
  search      every state of small groups; each guard of the protocol removed in turn
  processes   processes killed and frozen over SQLite, Redis, PostgreSQL, ZooKeeper (soak: ten times as often)
  stores      drivers and groups over PostgreSQL, Redis, Valkey, ZooKeeper; installs
              the servers (as root on Debian) into ~/.cache/rebalancer-servers
  sources     drivers of sources over RabbitMQ and fauxqs; the order of each key under faults (soak: 10 minutes for each kind of queue)
  page        the status page in a headless Chromium; installs it (as root on Debian)
  quickstart  go run ./examples/quickstart does what it says
  bench       the benchmarks build and run briefly
  newest      the newest version of every dependency passes too

Those that only compute (repeat, worlds, search, and the build of newest) run beside those that mostly wait, with what these
leave of the processors. SEED=N repeats the worlds and the shuffles of an earlier run: the summary shows it.
A suite that cannot run counts as failed.
TEXT
}

SOAK=
chosen=
for arg in "$@"; do
	case $arg in
	--soak) SOAK=1 ;;
	-h | --help) usage; exit 0 ;;
	*)
		case " $SUITES " in
		*" $arg "*) chosen="$chosen $arg" ;;
		*) usage >&2; exit 2 ;;
		esac
		;;
	esac
done

chosen=${chosen:-$SUITES}
asked=$chosen
case " $chosen " in
*" stores "* | *" processes "* | *" sources "* | *" page "*) . scripts/servers/docker.sh && docker_instead "$@" ;;
esac
prepare
case $chosen in
*processes* | *stores*) beside ;; # these mostly wait
esac
for suite in $chosen; do
	. "scripts/suites/$suite.sh"
done
join
summary

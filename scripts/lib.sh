# What the suites share. A suite calls `run` for a command and `gotest` for tests of Go; each adds a line to the results.

STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.7.0
LONG='/(coord/sim|integration/.*|integration|backends/(postgres|redis|zookeeper|sqlserver)|sources/(rabbitmq|sqs|s3|ftp)(/.*)?|examples/(queues|orders|fencing|sqsfifo|sftppoller|s3prefixes)|internal/(sqlstore|testserver))$' # packages with suites of their own

# prepare looks for what the suites need, gets it where it may, and makes a place for their results.
prepare() {
	export HOME=${HOME:-/tmp}
	command -v go >/dev/null || { echo "Go is missing: see https://go.dev/dl" >&2; exit 1; }
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/rebalancer-test.XXXXXX")
	BESIDE=
	trap 'stop_beside; rm -rf "$WORK"' EXIT
	trap 'exit 130' INT TERM
	RESULTS=$WORK/results
	: >"$RESULTS"
	BEGAN=$(date +%s)
	WHOLE=
	[ "$chosen" != "$SUITES" ] || WHOLE=1
	SEED=${SEED:-$((0x$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')))}
	export REBAL_REQUIRE=${REBAL_REQUIRE:-embedded} # what must not be skipped for want of it
	echo "seed $SEED"
	go build -o "$WORK/testreport" ./internal/testreport || exit 1
}

# packages lists those that have no suite of their own.
packages() { go list ./... | grep -Ev "$LONG"; }

heading() { printf '\n=== %s\n' "$*"; }

# run NAME COMMAND…: one suite that passes or fails as a whole.
run() {
	local name=$1 began=$SECONDS result=ok passed=1 failed=0
	shift
	heading "$name"
	"$@" || { result=FAILED passed=0 failed=1; }
	printf '%s\t%d\t%d\t0\t%d\t%s\n' "$result" "$passed" "$failed" $((SECONDS - began)) "$name" >>"$RESULTS"
}

# gotest NAME ARGUMENTS…: go test.
gotest() {
	local name=$1 before after
	shift
	heading "$name"
	echo "go test $*"
	before=$(wc -l <"$RESULTS")
	if ! go test -json -count=1 "$@" 2>&1 | "$WORK/testreport" -results "$RESULTS" "$name"; then
		after=$(tail -n 1 "$RESULTS")
		if [ "$(wc -l <"$RESULTS")" = "$before" ] || [ "${after%%$'\t'*}" = ok ]; then # the command failed, no test did
			printf 'FAILED\t0\t1\t0\t0\t%s (go test itself)\n' "$name" >>"$RESULTS"
		fi
	fi
}

# missing NAME WHY: a suite that cannot run here. That is a failure.
missing() {
	heading "$1"
	printf '\n*** %s CANNOT RUN: %s\n\n' "$1" "$2" >&2
	printf 'SKIPPED\t0\t0\t0\t0\t%s: %s\n' "$1" "$2" >>"$RESULTS"
}

# need_cc gets a C compiler, on a Debian system that we own.
need_cc() {
	command -v "$(go env CC)" >/dev/null && return 0
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	echo "installing gcc"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get -qq update && apt-get -qq install -y --no-install-recommends gcc libc6-dev; } >"$WORK/apt.log" 2>&1 || {
		tail -n 20 "$WORK/apt.log"
		return 1
	}
	command -v "$(go env CC)" >/dev/null
}

SERVERS=${REBAL_SERVERS:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rebalancer-servers}

# need_servers gets the servers that tests start. From then on a test that lacks one fails.
need_servers() {
	scripts/servers.sh || return 1
	case $REBAL_REQUIRE in
	*servers*) ;;
	*) export REBAL_REQUIRE=$REBAL_REQUIRE,servers ;;
	esac
}

# versions PACKAGE NEWER: of Debian's package here, and of the one in the root of the next release.
versions() {
	{
		dpkg-query -W -f '${Version}\n' "$1"
		dpkg-query --admindir="$SERVERS/trixie/var/lib/dpkg" -W -f '${Version}\n' "$2"
	} 2>/dev/null | sed -E 's/^[0-9]+://; s/[-+~].*//' | paste -sd '/' | sed 's#/# and #'
}

# beside starts the suites that only compute, takes them from those that are chosen, and gives them what others leave of the processors.
beside() {
	local suite rest=
	for suite in $chosen; do
		case $suite in
		repeat | worlds | search) set -- "$@" "$suite" ;;
		newest) set -- newest_build "$@" && rest="$rest newest" ;;
		*) rest="$rest $suite" ;;
		esac
	done
	[ $# -gt 0 ] || return 0
	chosen=$rest
	: >"$WORK/beside.results"
	set -m # a process group of its own, to be ended as one
	(
		RESULTS=$WORK/beside.results
		renice -n 19 -p "$BASHPID" >/dev/null 2>&1 || true
		for suite; do
			. "scripts/suites/$suite.sh"
		done
	) >"$WORK/beside.log" 2>&1 &
	BESIDE=$!
	set +m
}

# join waits for them and shows what they said.
join() {
	[ -n "$BESIDE" ] || return 0
	wait "$BESIDE" || printf 'FAILED\t0\t1\t0\t0\twhat runs beside the others\n' >>"$RESULTS"
	BESIDE=
	cat "$WORK/beside.log"
	cat "$WORK/beside.results" >>"$RESULTS"
}

stop_beside() { [ -z "$BESIDE" ] || kill -- "-$BESIDE" 2>/dev/null || true; }

# ground says what all this ran on.
ground() {
	printf '%s, %s cores, %s\n' "$(uname -srm)" "$(getconf _NPROCESSORS_ONLN)" "$(go env GOVERSION)"
	printf 'SQLite %s (modernc.org/sqlite %s), files on %s\n' \
		"$(CGO_ENABLED=0 go run ./internal/testground 2>/dev/null || echo '?')" \
		"$(go list -m -f '{{.Version}}' modernc.org/sqlite 2>/dev/null)" \
		"$(stat -f -c %T "$WORK" 2>/dev/null || echo 'an unknown file system')"
	printf 'race detector: %s\n' "$("$(go env CC)" --version 2>/dev/null | head -n 1 || true)"
}

# servers lists what the tests start, and the versions that are installed.
servers() {
	local name both
	while IFS='|' read -r name both; do
		[ -z "$both" ] || printf 'server\t%s\t%s\n' "$name" "${both% and }"
	done <<-EOF
		PostgreSQL|$(versions postgresql-15 postgresql-17)
		PgBouncer|$(versions pgbouncer pgbouncer)
		Redis|$(versions redis-server redis-server)
		Valkey|$(versions valkey-server valkey-server)
		ZooKeeper|$(versions zookeeper zookeeper)
		RabbitMQ|$(versions rabbitmq-server rabbitmq-server)
		OpenSSH|$(versions openssh-server openssh-server)
		vsftpd|$(unpacked vsftpd)
		ProFTPD|$(unpacked proftpd-core)
		Pure-FTPd|$(unpacked pure-ftpd)
		fauxqs (for SQS)|$(sed -n 's/.*fauxqs@//p' "$SERVERS/fauxqs/.complete" 2>/dev/null)
		versitygw (for S3)|$(sed -n 's/.*@v//p' "$SERVERS/versitygw/.complete" 2>/dev/null)
	EOF
}

# unpacked is the version of a package that was unpacked, not installed: that which this release of Debian has.
unpacked() {
	[ -d "$SERVERS/ftp" ] && apt-cache policy "$1" 2>/dev/null | sed -nE 's/^ *Candidate: ([0-9]+:)?([^-+~]*).*/\2/p'
}

# keep_results leaves what `make tested` reads, of a run of all suites.
keep_results() {
	[ -n "$WHOLE" ] || return 0
	mkdir -p .cache && {
		printf '%s\n' "$1" | sed "s/^/on\t/"
		printf 'on\tat %s, %s%s\n' "$(git rev-parse --short HEAD 2>/dev/null || echo '?')" "$(date -u +%F)" "${SOAK:+, soak}"
		servers
		sed "s/^/suite\t/" "$RESULTS"
	} >.cache/tested
}

summary() {
	local on
	heading summary
	on=$(ground)
	printf '%s\n' "$on"
	keep_results "$on"
	printf 'seed %s%s, %d s in all\n\n' "$SEED" "${SOAK:+, soak}" $(($(date +%s) - BEGAN))
	awk -F '\t' '
		{ printf "  %-11s %6d passed %4d failed %5d s   %s%s\n", $1, $2, $3, $5, $6, $4 ? " (" $4 " not possible for the store)" : ""
		  passed += $2; failed += $3; if ($1 != "ok" && $3 == 0) failed++ }
		END { printf "\n%d passed, %d failed\n", passed, failed; exit failed > 0 || passed == 0 }' "$RESULTS"
	exit
}

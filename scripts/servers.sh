#!/usr/bin/env bash
# Gets the servers that the tests of the drivers start: Debian's packages, and the newer versions of the next release in a root of its
# own, which nothing else uses. Nothing that runs on this machine is touched: no daemon is started, by a policy that forbids it while
# packages are installed. As root on Debian; elsewhere it says what is missing.
#
# The root and nothing else is kept between runs, in $REBAL_SERVERS (default: ~/.cache/rebalancer-servers).
set -euo pipefail

PACKAGES="redis-server zookeeper postgresql postgresql-15 pgbouncer rabbitmq-server libfaketime openssh-server debootstrap"
NEWER="valkey-server postgresql-17 zookeeper rabbitmq-server"
CACHE=${REBAL_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/rebalancer-servers}
ROOT=$CACHE/trixie
export DEBIAN_FRONTEND=noninteractive

die() { echo "scripts/servers.sh: $*" >&2; exit 1; }
quietly() { "$@" >"$LOG" 2>&1 || { tail -n 30 "$LOG" >&2; die "failed: $*"; }; }

# no_daemons forbids starts while packages are installed, in the root $1, unless a policy is there already.
no_daemons() {
	[ -e "$1/usr/sbin/policy-rc.d" ] && return
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod +x "$1/usr/sbin/policy-rc.d"
	POLICY="$POLICY $1/usr/sbin/policy-rc.d"
}

installed() { dpkg-query -W -f '${db:Status-Status}\n' $PACKAGES 2>/dev/null | grep -cx installed | grep -qx "$(wc -w <<<"$PACKAGES")"; }

packages() {
	installed && return
	echo "installing $PACKAGES"
	no_daemons ""
	quietly apt-get -qq update
	quietly apt-get -o DPkg::Lock::Timeout=300 -qq install -y --no-install-recommends $PACKAGES
}

# mirror is where this machine gets its own packages from.
mirror() {
	apt-get indextargets --format '$(SITE) $(ORIGIN) $(CREATED_BY)' 2>/dev/null | awk '$2 == "Debian" && $1 !~ /security/ { print $1; exit }'
}

# newer makes the root, or adds to one that an earlier version of this script made. Its .complete lists what it has.
newer() {
	[ "$(cat "$ROOT/.complete" 2>/dev/null)" = "$NEWER" ] && return
	if [ -e "$ROOT/.complete" ]; then
		echo "adding to the root of Debian trixie, for $NEWER"
	else
		base
	fi
	no_daemons "$ROOT"
	cp /etc/resolv.conf "$ROOT/etc/resolv.conf" 2>/dev/null || true
	[ ! -d /etc/apt/apt.conf.d ] || grep -rhsE '^Acquire' /etc/apt/apt.conf.d >"$ROOT/etc/apt/apt.conf.d/90host" || true
	quietly unshare -m --propagation private sh -c '
		mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
		exec chroot "$1" sh -c "dpkg --configure -a && apt-get -qq update && apt-get -qq install -y --no-install-recommends $2"' sh "$ROOT" "$NEWER"
	echo "$NEWER" >"$ROOT/.complete"
}

base() {
	local from
	from=$(mirror)
	[ -n "$from" ] || die "no mirror of Debian among the sources of apt"
	echo "making a root of Debian trixie for $NEWER"
	rm -rf "$ROOT"
	mkdir -p "$ROOT"
	quietly debootstrap --variant=minbase trixie "$ROOT" "$from"
}

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	die "needs root on Debian to install: $PACKAGES; and in a root of Debian trixie: $NEWER"
fi
LOG=$(mktemp) POLICY=
trap 'rm -f "$LOG" $POLICY' EXIT
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
flock 9
packages
newer
. "${0%/*}/servers/fauxqs.sh" && fauxqs
. "${0%/*}/servers/versitygw.sh" && versitygw
. "${0%/*}/servers/ftp.sh" && ftp

# The drivers of stores, and groups over each of them, on real servers: see scripts/servers.sh.
SERVERS=${REBAL_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/rebalancer-servers}

# versions PACKAGE NEWER: of Debian's package here, and of the one in the root of the next release.
versions() {
	{
		dpkg-query -W -f '${Version}\n' "$1"
		dpkg-query --admindir="$SERVERS/trixie/var/lib/dpkg" -W -f '${Version}\n' "$2"
	} 2>/dev/null | sed -E 's/^[0-9]+://; s/[-+~].*//' | paste -sd '/' | sed 's#/# and #'
}

stores_suite() {
	local race=
	need_cc && race=-race
	export REBAL_REQUIRE=$REBAL_REQUIRE,servers
	[ -z "$race" ] || export CGO_ENABLED=1
	gotest "stores: PostgreSQL $(versions postgresql-15 postgresql-17)" $race -timeout 1h ./backends/postgres
	gotest "stores: Redis and Valkey $(versions redis-server valkey-server)" $race -timeout 1h ./backends/redis
	gotest "stores: ZooKeeper $(versions zookeeper zookeeper)" $race -timeout 1h ./backends/zookeeper
	unset CGO_ENABLED
	gotest "stores: groups over each, with faults" -timeout 12h -parallel 6 ./integration/stores -seed="$SEED" ${SOAK:+-soak}
}

run "stores: the servers are there" scripts/servers.sh
if [ -e "$SERVERS/trixie/.complete" ]; then
	stores_suite
else
	missing "stores: PostgreSQL, Redis, Valkey, ZooKeeper" "scripts/servers.sh could not install the servers"
fi

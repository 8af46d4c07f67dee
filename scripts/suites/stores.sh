# The drivers of stores, under the race detector where there is a compiler (but one), and groups over each of them, on real servers.
# Their tests mostly wait: more of them at a time than there are cores.
store_drivers() {
	local race=
	need_cc && race=-race CGO_ENABLED=1
	export CGO_ENABLED
	gotest "stores: PostgreSQL $(versions postgresql-15 postgresql-17)" $race -timeout 1h -parallel 4 ./backends/postgres
	gotest "stores: Redis $(versions redis-server valkey-server) (Valkey)" $race -timeout 1h -parallel 4 ./backends/redis
	# Not under the race detector: the client library reads its lastZxid without its lock whenever it sets watches again (v1.0.4, conn.go).
	gotest "stores: ZooKeeper $(versions zookeeper zookeeper)" -timeout 30m -parallel 12 ./backends/zookeeper
	if [ -n "${REBALANCER_TEST_SQLSERVER:-}" ]; then
		gotest "stores: SQL Server" $race -timeout 2h ./backends/sqlserver
	else # its other tests need a server, which no package has: see the README
		gotest "stores: SQL Server's statements, without a server" $race -skip '^(TestContract.*|TestErrorsOfServers|TestTraps)$' ./backends/sqlserver
	fi
	unset CGO_ENABLED
	gotest "stores: SQL Server's way of locking, played by PostgreSQL" -timeout 1h -parallel 4 ./internal/sqlstore ./internal/testserver ./examples/fencing
}

if need_servers; then
	store_drivers
	gotest "stores: the command line over each" -timeout 10m -parallel 6 ./integration/cli -run "^TestStore"
	gotest "stores: groups over each, and histories that must be linearizable, with faults" -timeout 12h -parallel 6 ./integration/stores ./integration/linear -seed="$SEED" ${SOAK:+-soak}
else
	missing "stores: PostgreSQL, Redis, Valkey, ZooKeeper" "scripts/servers.sh could not install the servers"
fi

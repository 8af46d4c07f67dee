[ -n "$BESIDE" ] && join
[ -d "$WORK/newest" ] || . scripts/suites/newest_build.sh

newest_tests() {
	local here=$PWD
	cd "$WORK/newest" && gotest "newest: tests with the newest dependencies" $(packages)
	# What the drivers' clients do differently shows in a part of the contract; their own suites are run with the versions of go.mod.
	[ -z "$SERVED" ] || gotest "newest: drivers of stores, in part" -parallel 4 -run '^TestContractOn(Redis|Postgres15)$/^(Abilities|Commit|Hint|Keys|One|Read|Renew)' ./backends/postgres ./backends/redis
	cd "$here" || exit 1
}

SERVED=
need_servers && SERVED=1 || missing "newest: drivers of stores" "scripts/servers.sh could not install the servers"
newest_tests

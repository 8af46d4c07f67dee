[ -n "$BESIDE" ] && join
[ -d "$WORK/newest" ] || . scripts/suites/newest_build.sh

newest_tests() {
	local here=$PWD
	cd "$WORK/newest" && gotest "newest: tests with the newest dependencies" $(packages)
	cd "$here" || exit 1
}

newest_tests

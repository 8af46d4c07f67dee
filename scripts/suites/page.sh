# The status page in a headless Chromium, in a module of its own; one test has a group on RabbitMQ and PostgreSQL.
need_chromium() {
	command -v chromium >/dev/null && return 0
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	echo "installing chromium"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } >"$WORK/apt.log" 2>&1 || {
		tail -n 20 "$WORK/apt.log"
		return 1
	}
}

if ! need_chromium; then
	missing "page: in a browser" "no chromium; install Debian's package chromium"
elif ! need_servers; then
	missing "page: in a browser" "scripts/servers.sh could not install RabbitMQ and PostgreSQL"
else
	run "page: go vet" go -C integration/page vet ./...
	cd integration/page || exit 1
	gotest "page: in Chromium $(chromium --version 2>/dev/null | cut -d ' ' -f 2)" -timeout 10m ./...
	cd ../.. || exit 1
fi

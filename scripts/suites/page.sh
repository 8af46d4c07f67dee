# The status page in a headless Chromium, in a module of its own.
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

if need_chromium; then
	run "page: go vet" go -C integration/page vet ./...
	cd integration/page || exit 1
	gotest "page: in Chromium $(chromium --version 2>/dev/null | cut -d ' ' -f 2)" -timeout 10m ./...
	cd ../.. || exit 1
else
	missing "page: in a browser" "no chromium; install Debian's package chromium"
fi

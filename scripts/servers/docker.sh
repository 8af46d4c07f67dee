# Where the servers that tests start cannot be installed (this is not Debian, or we are not root), and a Docker engine answers, the tests run in a
# container of Debian, where they can. What they install and download stays in two volumes, rebalancer-root and rebalancer-go.
# It is privileged: tests mount, make namespaces and stop processes. REBAL_DOCKER=no: not.

# docker_instead ARGUMENTS…: does not return where it runs scripts/test.sh with them in a container.
docker_instead() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && return 0
	[ "${REBAL_DOCKER:-}" != no ] || return 0
	if ! command -v docker >/dev/null; then
		echo "scripts/test.sh: this is not Debian as root, and there is no Docker: suites that need servers cannot run" >&2
		return 0
	fi
	if ! docker info --format '{{.ServerVersion}}' >/dev/null 2>&1; then
		echo "scripts/test.sh: this is not Debian as root, and no Docker engine answers (see: docker info): suites that need servers cannot run" >&2
		return 0
	fi
	local go
	go=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	echo "scripts/test.sh: running in a container of golang:$go-bookworm, since servers cannot be installed here"
	exec docker run --rm --init --privileged -v "$PWD:/src" -v rebalancer-root:/root -v rebalancer-go:/go -w /src \
		-e SEED -e CI -e REBAL_REQUIRE -e GOFLAGS=-buildvcs=false "golang:$go-bookworm" scripts/test.sh "$@"
}

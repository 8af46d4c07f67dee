#!/usr/bin/env bash
# Builds the command line for release: a static program for each platform, in an archive with the licence, and the checksums of all.
# Needs nothing but Go and tar. FOLDER must be ignored by git, or the version says "dirty". usage: scripts/release.sh [FOLDER] (default: dist)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64 windows/amd64}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/}
	name=rebalancer
	[ "$os" != windows ] || name=rebalancer.exe
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags "-s -w" -o "$work/$name" ./cmd/rebalancer
	cp LICENSE "$work/LICENSE"
	tar -C "$work" --owner=0 --group=0 -czf "$out/rebalancer-$os-$arch.tar.gz" "$name" LICENSE
	rm "$work/$name"
done
cd "$out"
sha256sum rebalancer-*.tar.gz >SHA256SUMS

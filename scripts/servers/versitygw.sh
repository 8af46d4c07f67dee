# versitygw speaks S3 over a directory. It is built from the Go module proxy, some minutes long, and kept in $CACHE/versitygw.
VERSITYGW=github.com/versity/versitygw/cmd/versitygw@v1.8.0

versitygw() {
	local dir=$CACHE/versitygw
	[ "$(cat "$dir/.complete" 2>/dev/null)" = "$VERSITYGW" ] && return
	echo "building $VERSITYGW, which takes some minutes"
	mkdir -p "$dir/bin"
	# Not as a part of this module, and not with what is set for it.
	(cd / && GOBIN=$dir/bin GOFLAGS= CGO_ENABLED=0 quietly nice -n 10 go install -trimpath "$VERSITYGW")
	[ -x "$dir/bin/versitygw" ] || die "the build of $VERSITYGW left no program"
	echo "$VERSITYGW" >"$dir/.complete"
}

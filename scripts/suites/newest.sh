newest_copy() {
	mkdir "$WORK/newest" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C "$WORK/newest" &&
		cd "$WORK/newest" && go get -u ./... && go mod tidy && go build ./...
}
newest_get() { (newest_copy && cd "$WORK/newest" && go list -m -u all | head -n 40); }
newest_tests() {
	local here=$PWD
	cd "$WORK/newest" && gotest "newest: tests with the newest dependencies" $(packages)
	cd "$here" || exit 1
}

run "newest: go get -u, go build" newest_get
newest_tests

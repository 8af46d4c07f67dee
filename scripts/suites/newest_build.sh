# A copy of the module with the newest version of every dependency. What it makes is what `newest` tests.
newest_copy() {
	mkdir "$WORK/newest" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C "$WORK/newest" &&
		cd "$WORK/newest" && go get -u ./... && go mod tidy && go build ./... && go vet $(packages)
}
# (sed reads to the end; head would leave go list with a broken pipe, and the suite with a failure.)
newest_get() { (newest_copy && cd "$WORK/newest" && go list -m -u all | sed -n 1,40p); }

run "newest: go get -u, go build, go vet" newest_get

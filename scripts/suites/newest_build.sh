# A copy of the module with the newest version of every dependency. What it makes is what `newest` tests.
newest_copy() {
	mkdir "$WORK/newest" && git ls-files -z --cached --others --exclude-standard | xargs -0 tar --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C "$WORK/newest" &&
		cd "$WORK/newest" && go get -u ./... && go mod tidy && go build ./... && go vet $(packages)
}
newest_get() { (newest_copy && cd "$WORK/newest" && go list -m -u all | head -n 40); }

run "newest: go get -u, go build, go vet" newest_get

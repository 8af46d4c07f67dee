formatted() {
	local list
	list=$(gofmt -l .) && [ -z "$list" ] || { echo "gofmt -w: $list"; return 1; }
}
other_platforms() {
	local os
	for os in darwin freebsd windows; do
		GOOS=$os CGO_ENABLED=0 go build ./... || { echo "on $os"; return 1; }
	done
}

run "lint: gofmt" formatted
run "lint: go vet" go vet ./...
run "lint: staticcheck ${STATICCHECK##*@}" go run "$STATICCHECK" ./...
tidy() {
	local module
	for module in . bench integration/page adapters/watermill; do
		go -C "$module" mod tidy -diff || return 1
	done
}
run "lint: modules are tidy" tidy
metrics_example() { go -C examples/metrics mod tidy -diff && go -C examples/metrics vet ./... && go -C examples/metrics test ./...; }
run "examples/metrics: builds, and its dashboard asks for what there is" metrics_example
adapters() { go -C adapters/watermill vet ./... && go -C adapters/watermill run "$STATICCHECK" ./...; }
run "lint: builds for darwin, freebsd, windows" other_platforms
run "lint: adapters/watermill, vet and staticcheck" adapters
gotest "lint: rules of the module" ./internal/arch

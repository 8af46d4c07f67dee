bench_runs() { (cd bench && go vet ./... && go run . -short); }
run "bench: builds and runs briefly" bench_runs

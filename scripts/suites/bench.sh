bench_runs() { go -C bench vet ./... && go -C bench run ./cmd/table -quick; }
run "bench: builds, and a short look" bench_runs

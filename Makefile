# Everything that there is to run. `make` lists it.

.PHONY: help test soak lint race bench quickstart tested

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## all tests, with their set-up; a summary at the end (about half an hour on 2 quiet cores)
	@scripts/test.sh

soak: ## the same with the long runs at full length (hours)
	@scripts/test.sh --soak

lint: ## format, vet, staticcheck and the module's rules alone
	@scripts/test.sh lint

race: ## the packages under the race detector alone
	@scripts/test.sh race

bench: ## the runtime's cost against a bare channel, and hand-overs
	@go -C bench run ./cmd/table

quickstart: ## three processes share directories, one is killed, one joins
	@go run ./examples/quickstart

tested: ## writes into docs/tested.md what the last run tested, and on which versions
	@scripts/tested.sh

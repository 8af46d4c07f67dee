if need_cc; then
	CGO_ENABLED=1 gotest "race: every package" -race -shuffle="$SEED" $(packages)
	cd adapters/watermill || exit 1
	CGO_ENABLED=1 gotest "race: adapters/watermill" -race -shuffle="$SEED" ./...
	cd ../.. || exit 1
else
	missing "race: every package" "no C compiler ($(go env CC)); install gcc"
fi

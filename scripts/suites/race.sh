if need_cc; then
	CGO_ENABLED=1 gotest "race: every package" -race -shuffle="$SEED" $(packages)
else
	missing "race: every package" "no C compiler ($(go env CC)); install gcc"
fi

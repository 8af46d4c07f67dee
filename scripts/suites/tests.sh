gotest "tests: every package, shuffled" -shuffle="$SEED" $(packages)

worlds=10000
[ -z "$SOAK" ] || worlds=200000
gotest "worlds: $worlds simulated groups from seed $SEED" ./coord/sim -run '^TestWorlds$' -timeout 12h -worlds="$worlds" -first="$SEED"

gotest "search: every state of small groups, guards removed" ./coord/sim -skip '^TestWorlds$' -timeout 3h ${SOAK:+-search.full -search.states=500000}

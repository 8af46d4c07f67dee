gotest "search: every state of small groups, guards removed" ./coord/sim -skip '^TestWorlds$' -timeout 1h

rounds=20 freezes=5
[ -z "$SOAK" ] || rounds=200 freezes=50
gotest "processes: $rounds kills, $freezes freezes over SQLite and files" ./integration/... -count=1 -timeout 12h

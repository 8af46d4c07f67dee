need_servers || missing "processes: over servers" "scripts/servers.sh could not install the servers"
gotest "processes: killed and frozen, over SQLite and servers" ./integration -timeout 12h -seed="$SEED" ${SOAK:+-soak}
gotest "processes: figures of hand-over, crash and idle groups" ./integration/figures -timeout 1h

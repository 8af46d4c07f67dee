gotest "processes: killed and frozen over SQLite and real files" ./integration -timeout 12h -seed="$SEED" ${SOAK:+-soak}
gotest "processes: figures of hand-over, crash and idle groups" ./integration/figures -timeout 1h

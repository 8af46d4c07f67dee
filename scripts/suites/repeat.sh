gotest "repeat: protocol and assignment, 50 times" -count=50 -shuffle="$SEED" ./coord ./coord/assign

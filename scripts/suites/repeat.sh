gotest "repeat: the protocol, 50 times in random orders" -count=50 -timeout 1h -shuffle="$SEED" ./coord
gotest "repeat: the assignment, 5 times in random orders" -count=5 -timeout 1h -shuffle="$SEED" ./coord/assign

gotest "repeat: the protocol, 20 times in random orders" -count=20 -timeout 1h -shuffle="$SEED" ./coord
gotest "repeat: the assignment, 5 times in random orders" -count=5 -timeout 1h -shuffle="$SEED" ./coord/assign

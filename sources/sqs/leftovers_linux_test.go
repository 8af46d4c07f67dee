package sqs

import "github.com/rebalancer-go/rebalancer/internal/testserver"

var leftovers = testserver.Leftovers()

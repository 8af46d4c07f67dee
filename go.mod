module github.com/rebalancer-go/rebalancer

go 1.26.0

run "quickstart: go run ./examples/quickstart" timeout 120 go run ./examples/quickstart

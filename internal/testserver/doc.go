//go:build linux

// Package testserver starts real servers for tests: each is a private child process, in a directory and on a loopback port of its own, that the test may kill,
// freeze, thaw, stop and start again, with a proxy in front of it that slows down or cuts off what passes. It is for tests alone, and for Linux.
//
// scripts/servers.sh installs the servers. Without one, Need skips the test, unless REBAL_REQUIRE names "servers", as the suites of
// scripts/test.sh do: there a server that is missing is a failure.
package testserver

// Package stores runs whole groups over each store, in both modes: the scenarios that every store must pass, random runs with faults of nodes, network and
// server, and stores that lose data. Nodes live in this process and have a connection of their own each; real servers are started, killed, frozen and cut off by the
// tests. The package has tests only.
package stores

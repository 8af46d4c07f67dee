// Package order shows that the order of each key holds whatever happens: numbered messages go through the partitions of a broker to a group of
// processes that are killed, frozen, cut off, replaced, and made more and fewer, while queues are added and taken away. The package has tests only.
package order

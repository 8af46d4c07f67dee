// Package queues compares what a message costs through group.Consume with loops over the same client, on a real broker, in
// the same run. Its benchmarks print the ratios.
package queues

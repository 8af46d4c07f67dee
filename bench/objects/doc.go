// Package objects compares what an object of S3 costs through group.Consume with loops that somebody writes by hand with the same client, over
// the same server, in the same run. Its benchmarks print the ratios.
package objects

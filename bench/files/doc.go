// Package files compares what a file costs through group.Consume with loops that somebody writes by hand, over the same
// directory, in the same run. Its benchmarks print the ratios.
package files

// Package integration tests the command line as users run it: real processes, real files, a real store, and real faults.
// It has no code of its own outside its tests.
package integration

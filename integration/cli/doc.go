// Package cli has no code: its tests run the command line against real servers, to see what doctor finds and --discover lists there.
package cli

// Package cli has no code: its tests run the command line against real servers, to see what doctor finds, --discover lists, and administrative commands do there.
package cli

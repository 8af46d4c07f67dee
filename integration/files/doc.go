// Package files shows that sources of files lose nothing, whatever happens between the listing of a file and its settlement: groups of processes
// over a networked store work directories and prefixes, and each process is killed at every step in turn. Files are uploaded slowly, with pauses,
// under other names, and are replaced while they are read. Each body tells its own length and sum. The package has tests only.
package files

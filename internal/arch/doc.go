// Package arch holds tests of the rules that the whole module keeps: which package may import which, no registration and no
// state behind the caller's back, no clock where there must be none, and no test that passes without having run. Each rule
// is shown to find a bad example too.
package arch

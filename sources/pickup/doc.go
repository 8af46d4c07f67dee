// Package pickup says which files are messages and what becomes of them, for all sources whose messages are files or
// objects: their Config embeds a [Policy].
//
//	file.Config{Root: "/data", Policy: pickup.Policy{OnSuccess: pickup.Delete()}}
//
// # What is known of an upload
//
// A file is delivered when it is whole, as far as that can be known. From outside, an upload that pauses looks like one
// that has ended: StableFor and MinAge tell the two apart only while the pause is shorter. An upload that may pause for
// longer needs a sign by the sender: a rename when it is complete (from a name that Ignore has) or a done-file.
// What is read is held against what was listed: a body ends without an error only if the file has the length it
// was listed with and has not changed.
package pickup

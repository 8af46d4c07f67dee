package pickup

import "fmt"

// Action is what becomes of a file: Delete, MoveTo, Keep or Tag. The zero Action is none.
type Action struct {
	kind       Kind
	folder     string
	key, value string
}

// Kind is which of the actions one is.
type Kind int

const (
	// None is the Kind of the zero Action.
	None Kind = iota
	// Deletes is the Kind of Delete.
	Deletes
	// Moves is the Kind of MoveTo.
	Moves
	// Keeps is the Kind of Keep.
	Keeps
	// Tags is the Kind of Tag.
	Tags
)

// Delete removes the file, if it is still the one that was worked.
func Delete() Action { return Action{kind: Deletes} }

// MoveTo moves the file into a folder, which is made when it is missing. A relative folder is inside the resource's own
// place and cannot lead out of it. An absolute one is elsewhere, as the source says; the files of a resource go to the
// path of the resource below it. Nothing is overwritten: a file whose name is taken there gets the time into its name.
//
// What is between braces is a layout of time.Format for the time of the move in UTC: MoveTo("done/{2006}/{01-02}") or
// MoveTo("done/{2006/01/02}"). A folder cannot have braces in its name otherwise.
func MoveTo(folder string) Action { return Action{kind: Moves, folder: folder} }

// Keep leaves the file where it is, and the group's store remembers that it was worked: by its name and identity, so that
// another file under the name is another message. See "Files that stay" in the package's comment.
func Keep() Action { return Action{kind: Keeps} }

// Tag leaves the object where it is, gives it a tag (for a lifecycle rule, for others), and the group's store remembers it as
// with Keep. Only objects have tags.
func Tag(key, value string) Action { return Action{kind: Tags, key: key, value: value} }

// Kind returns which of the actions this is.
func (a Action) Kind() Kind { return a.kind }

// Folder returns what MoveTo was given; "" for other actions.
func (a Action) Folder() string { return a.folder }

// Label returns what Tag was given; "" for other actions.
func (a Action) Label() (key, value string) { return a.key, a.value }

// String is the action as it is written in a program.
func (a Action) String() string {
	switch a.kind {
	case Deletes:
		return "Delete()"
	case Moves:
		return fmt.Sprintf("MoveTo(%q)", a.folder)
	case Keeps:
		return "Keep()"
	case Tags:
		return fmt.Sprintf("Tag(%q, %q)", a.key, a.value)
	}
	return "none"
}

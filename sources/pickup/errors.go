package pickup

import "errors"

var (
	// ErrChecksum is returned by a read of a body, at its end, when it is not what its checksum file says, and by Message.Open when the
	// checksum file cannot be understood. The file stays as it is: a retry helps only when the sender mends one of the two.
	ErrChecksum = errors.New("the file does not match its checksum file")
	// ErrEmpty is why a file without content is given up under EmptyReject.
	ErrEmpty = errors.New("the file is empty")
)

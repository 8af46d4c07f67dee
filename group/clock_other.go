//go:build !linux

package group

// readBoot: no clock that counts suspended time is read here.
func readBoot() (int64, bool) { return 0, false }

func virtualTime() bool { return false }

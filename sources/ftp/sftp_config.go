package ftp

import (
	"context"
	"errors"
)

// SSH says how SFTP is spoken.
type SSH struct{}

// sftpDialer checks what concerns SFTP and returns what connects; the violations are without a prefix.
func (c Config) sftpDialer(target) (dialer, []error) {
	return func(context.Context) (remote, error) { return nil, errors.ErrUnsupported }, nil
}

package statuspage

import (
	"strings"

	"github.com/rebalancer-go/rebalancer/internal/redact"
)

// redact blots out what is, or looks like, a secret.
func (c *Config) redact(s string) string {
	for _, secret := range append([]string{c.Token}, c.Secrets...) {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, redact.Blot)
		}
	}
	return redact.Text(s)
}

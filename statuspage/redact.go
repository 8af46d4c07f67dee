package statuspage

import (
	"regexp"
	"strings"
)

var (
	urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):[^\s@]*@`)
	namedSecret = regexp.MustCompile(`(?i)\b((?:pass(?:word|wd)?|pwd|token|secret|api[_-]?key)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s;,&]+)`)
)

const blot = "•••"

// redact blots out what is, or looks like, a secret.
func (c *Config) redact(s string) string {
	for _, secret := range append([]string{c.Token}, c.Secrets...) {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, blot)
		}
	}
	s = urlPassword.ReplaceAllString(s, "$1:"+blot+"@")
	return namedSecret.ReplaceAllString(s, "${1}"+blot)
}

// Package redact blots out what looks like a secret in texts that people are shown, such as errors of drivers that name the URL they connected to.
package redact

import "regexp"

// Blot stands for a secret.
const Blot = "•••"

var (
	urlPassword = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):[^\s@]*@`)
	namedSecret = regexp.MustCompile(`(?i)\b((?:pass(?:word|wd)?|pwd|token|secret|api[_-]?key)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s;,&]+)`)
)

// Text is s without the passwords of URLs and without what follows names such as password= and token:. It must see a text before that is cut: half a URL
// does not look like one.
func Text(s string) string {
	s = urlPassword.ReplaceAllString(s, "$1:"+Blot+"@")
	return namedSecret.ReplaceAllString(s, "${1}"+Blot)
}

package main

import (
	"net/url"
	"slices"
	"strings"
)

// hidden stands for a secret.
const hidden = "(hidden)"

// redacted is a flag's value as anybody may see it.
func redacted(name, value string) string {
	switch {
	case value == "":
		return ""
	case name == "store" || name == "source":
		return redactedURL(value)
	case secretWord(name):
		return hidden
	}
	return value
}

// secretWord tells by its name what is to be hidden.
func secretWord(name string) bool {
	return slices.ContainsFunc([]string{"password", "secret", "token"}, func(word string) bool { return strings.Contains(name, word) }) &&
		!strings.HasSuffix(name, "-file")
}

// redactedURL is a URL without what is, or may be, a secret: the password, the fragment, and the values of the parameters that are not known to be none. A text
// that is no URL is not shown at all.
func redactedURL(raw string) string {
	u, err := parseURL("", raw)
	if err != nil || u.Opaque != "" {
		return "(not shown: it is no URL as expected)"
	}
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	}
	if u.Fragment != "" {
		u.Fragment, u.RawFragment = "…", ""
	}
	if strings.Contains(u.Path, "@") { // in u:12/ss@host what looks like a port begins a password
		u.Path, u.RawPath, u.Host = "/…", "", u.Hostname()
	}
	query := u.Query()
	for name, values := range query {
		for i, v := range values {
			if !openParameter(name) || strings.Contains(v, "@") {
				values[i] = "xxxxx"
			}
		}
	}
	u.RawQuery = query.Encode()
	if strings.Contains(u.Host, ",") { // several hosts
		return strings.ReplaceAll(u.String(), "%2C", ",")
	}
	return u.String()
}

// openParameter tells whether the values of a parameter may be seen.
func openParameter(name string) bool {
	return slices.Contains([]string{
		"stable_for", "min_age", "interval", "idle_interval", "ignore", "done_file", "checksum_file", "trigger_file", "set", "empty", "order", "strict_order",
		"claim_by_rename", "heartbeat", "prefetch", "delivery_limit", "dead_letter_exchange", "management", "cacertfile", "certfile", "keyfile", "auth_mechanism",
		"visibility", "wait", "linger", "redrive", "payloads", "region", "endpoint", "path_style", "subtree", "deletion", "timeout", "connections", "implicit_tls",
		"trust_passive_address", "ignore_unique", "known_hosts", "host_key", "private_key", "passphrase_file", "agent", "database", "sslmode", schemaParameter,
	}, name)
}

package redis

import "strings"

// commands are all that the store calls, itself or in its scripts.
var commands = [...]string{
	"eval", "evalsha", "time", "info", "config|get", "hello", "auth", "ping", "select",
	"hget", "hmget", "hset", "hdel", "zadd", "zscore", "zrem", "zrangebyscore", "zrangebylex", "zlexcount",
	"pexpire", "scan", "publish", "subscribe", "unsubscribe", "wait",
	"cluster|slots", "command", "readonly", "asking",
}

// ACL gives the command that makes the user of a store with this prefix ("" is DefaultPrefix), for an administrator to run on every server;
// PASSWORD in it is to be replaced. The user can reach no other keys and channels, but SCAN shows it the names of all keys
// (leave it out where nobody lists groups), INFO and CONFIG GET the state of the server (see the package's comment on what is lost without).
func ACL(user, prefix string) string {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	words := []string{"ACL", "SETUSER", user, "on", ">PASSWORD", "resetkeys", "~" + glob(prefix) + "*",
		"resetchannels", "&" + glob(prefix) + "*", "nocommands"}
	for _, c := range commands {
		words = append(words, "+"+c)
	}
	return strings.Join(words, " ")
}

// glob escapes what patterns of keys give a meaning to.
func glob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`).Replace(s)
}

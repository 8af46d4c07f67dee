package main

import (
	"flag"
	"maps"
	"slices"
	"strings"
)

// The parts of a configuration file that are no flags.
const (
	keyGroups   = "groups"
	keyCommands = "commands"
)

// secretKeys are the keys without a flag: other users of a machine can see a command line.
func secretKeys() []string { return []string{"source-password", "store-password"} }

// hasNoKey are the flags that the file cannot set: those that say where it is, and those by which a person says yes to something that cannot be
// taken back, which belongs to one call.
func hasNoKey(name string) bool {
	return slices.Contains([]string{"config", "print-config", "execute", "confirm"}, name)
}

// everywhere are the keys beside a group that hold for every command which has such a flag: where the group is, and what its nodes agree on. The
// flags that other commands call like one of consume, such as the weight of a resource, may mean something else.
func everywhere(name string) bool {
	return slices.Contains([]string{
		"store", "source", "output", "ttl", "barrier", "registered", "max-active", "fail-back", "max-moving", "max-moving-per-node",
	}, name)
}

// holdsFor tells whether a key beside a group holds for a command. The source does not for describe: it is not to open it, and fail with it, because nodes
// work it.
func holdsFor(command, key string) bool {
	return command == "consume" || everywhere(key) && (command != "describe" || key != "source")
}

// keyKind is what a key's value must be.
type keyKind int

const (
	kindText keyKind = iota
	kindDuration
	kindNumber
	kindTruth
	kindList
	kindURL    // text that may be kept elsewhere
	kindSecret // the same
)

// what is for errors.
func (k keyKind) what() string {
	return map[keyKind]string{
		kindText: "text", kindDuration: "a number with its unit, as in 30s or 1m30s", kindNumber: "a whole number", kindTruth: "true or false",
		kindList: "a list, as in [a, b]", kindURL: "a URL, {env: VARIABLE} or {file: PATH}", kindSecret: "text, {env: VARIABLE} or {file: PATH}",
	}[k]
}

// kindOf tells by a flag what its key may hold.
func kindOf(fl *flag.Flag) keyKind {
	if fl.Name == "store" || fl.Name == "source" {
		return kindURL
	}
	switch v := fl.Value.(type) {
	case *list:
		return kindList
	case *duration:
		return kindDuration
	case flag.Getter:
		switch v.Get().(type) {
		case bool:
			return kindTruth
		case int:
			return kindNumber
		}
	}
	return kindText
}

// schema is what a configuration file may hold: made of the flags, so that none can be forgotten.
type schema struct {
	plain    map[string]*flag.Flag            // of the file itself and of a group
	commands map[string]map[string]*flag.Flag // by the names of commands; those without flags are left out
}

// configSchema makes the schema. Its flags are of nobody else, for values to be tried on.
func (p *program) configSchema() schema {
	s := schema{plain: map[string]*flag.Flag{}, commands: map[string]map[string]*flag.Flag{}}
	for _, c := range p.commands() {
		keys := map[string]*flag.Flag{}
		f := newFlags(&c)
		c.setup(f)
		f.VisitAll(func(fl *flag.Flag) {
			if f.alias[fl.Name] != "" || hasNoKey(fl.Name) {
				return
			}
			keys[fl.Name] = fl
			if c.name == "consume" || everywhere(fl.Name) && s.plain[fl.Name] == nil {
				s.plain[fl.Name] = fl
			}
		})
		if len(keys) > 0 {
			s.commands[c.name] = keys
		}
	}
	return s
}

// lookup finds the flag of a key, nil for a secret.
func lookupKey(keys map[string]*flag.Flag, key string, secrets bool) (fl *flag.Flag, ok bool) {
	if fl, ok = keys[key]; !ok && secrets {
		ok = slices.Contains(secretKeys(), key)
	}
	return fl, ok
}

// guess is for the error about a key that is not known.
func guess(keys map[string]*flag.Flag, key string, secrets bool) string {
	hyphens := strings.ReplaceAll(strings.TrimLeft(strings.ToLower(key), "-"), "_", "-")
	if _, ok := lookupKey(keys, hyphens, secrets); ok {
		return "write " + hyphens
	}
	all := slices.Sorted(maps.Keys(keys))
	if secrets {
		all = append(all, secretKeys()...)
	}
	return "there are " + strings.Join(all, ", ")
}

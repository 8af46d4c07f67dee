package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// settings are those for a command and a group, "" for none, by key. What stands nearer wins: the command in the group, the group, the command in the
// file, the file.
func (c *configFile) settings(command, group string) map[string]setting {
	out := map[string]setting{}
	for _, s := range []section{c.root, c.groups[group]} {
		for key, v := range s.plain {
			if holdsFor(command, key) || slices.Contains(secretKeys(), key) {
				out[key] = v
			}
		}
		maps.Copy(out, s.commands[command])
	}
	return out
}

// resolve is the text of a setting that may be kept elsewhere.
func (s setting) resolve(lookup func(string) (string, bool)) (string, error) {
	switch {
	case s.env != "":
		v, ok := lookup(s.env)
		if !ok || v == "" {
			return "", fmt.Errorf("the environment variable %s is not set", s.env)
		}
		return v, nil
	case s.file != "":
		b, err := os.ReadFile(s.file)
		return withoutLineEnd(b), err
	case len(s.values) == 0:
		return "", nil
	}
	return s.values[0], nil
}

// withoutLineEnd is what a file holds that an editor has written.
func withoutLineEnd(b []byte) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
}

// configure sets the flags that were given neither on the command line nor in the environment.
func (f *flags) configure(c *configFile, settings map[string]setting, lookup func(string) (string, bool)) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		s, fl := settings[key], f.Lookup(key)
		if fl == nil || f.origin[key] != "" {
			continue
		}
		if l, ok := fl.Value.(*list); ok {
			*l = slices.Clone(s.values)
		} else if v, err := s.resolve(lookup); err != nil {
			errs = append(errs, usagef("%s: %s: %v", c.at(s), key, err))
		} else if err := f.Set(key, v); err != nil {
			errs = append(errs, usagef("%s: %s: %v", c.at(s), key, err))
		}
		f.origin[key] = c.at(s)
	}
	return errors.Join(errs...)
}

// at is where a setting stands.
func (c *configFile) at(s setting) string { return fmt.Sprintf("%s:%d", c.name, s.line) }

// configured is the program as a command sees it whose flags were read: with the settings of the file, when there is one.
func (p *program) configured(c *command, f *flags, pos []string) (*program, error) {
	q := *p
	if f.config == "" {
		return &q, nil
	}
	file, err := readConfig(f.config, p.configSchema())
	if err != nil {
		return nil, err
	}
	q.config = file
	settings := file.settings(c.name, groupOf(c, pos))
	for _, key := range secretKeys() {
		if s, ok := settings[key]; ok {
			q.secrets = append(q.secrets, secret{key, file.at(s), s})
		}
	}
	return &q, f.configure(file, settings, p.lookup)
}

// secret is one of the file.
type secret struct {
	key, at string
	setting
}

// secretOf is the file's secret of this key, "" when there is none.
func (p *program) secretOf(key string) (string, error) {
	for _, s := range p.secrets {
		if s.key == key {
			v, err := s.resolve(p.lookup)
			if err != nil {
				return "", usagef("%s: %s: %v", s.at, key, err)
			}
			return v, nil
		}
	}
	return "", nil
}

// groupOf is the group that a command is about, "" for none.
func groupOf(c *command, pos []string) string {
	if len(pos) > 0 && strings.HasPrefix(c.args, "GROUP") {
		return pos[0]
	}
	return ""
}

// flagsOf defines the flags of a command, with that for the file.
func flagsOf(c *command) (*flags, action) {
	f := newFlags(c)
	act := c.setup(f)
	n := 0
	f.VisitAll(func(*flag.Flag) { n++ })
	if n > 0 {
		f.StringVar(&f.config, "config", "", "a file of settings in YAML, for the flags that are not given and have no variable; see `rebalancer help config`")
		f.explain("config", "FILE")
	}
	return f, act
}

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

// configFile is a file that was read and found to be right.
type configFile struct {
	name   string
	root   section
	groups map[string]section
}

// section is the file itself, or one of its groups.
type section struct {
	plain    map[string]setting
	commands map[string]map[string]setting
}

// setting is what a key is set to.
type setting struct {
	line   int
	values []string // one, or those of a list
	env    string   // the variable that holds the value
	file   string   // the file that holds it
}

// readConfig reads a file whole. Its error has all that is wrong, each with its line.
func readConfig(name string, s schema) (*configFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &kindError{errUsage, "--config: " + err.Error()}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, &kindError{errUsage, "--config: " + err.Error()}
	}
	if len(text) > maxConfig {
		return nil, usagef("--config: %s is longer than %d bytes", name, maxConfig)
	}
	return parseConfig(name, text, s)
}

// parseConfig is readConfig of a text.
func parseConfig(name string, text []byte, s schema) (*configFile, error) {
	p := &configParser{name: name, schema: s}
	root := p.document(text)
	c := &configFile{name: name, groups: map[string]section{}}
	if root != nil {
		c.root = p.section(root, c.groups)
	}
	return c, p.err()
}

// configParser gathers what is wrong.
type configParser struct {
	name   string
	schema schema
	wrong  []configError
}

// configError is one thing that is wrong.
type configError struct {
	line int
	text string
}

func (p *configParser) bad(line int, format string, args ...any) {
	p.wrong = append(p.wrong, configError{line, fmt.Sprintf(format, args...)})
}

func (p *configParser) err() error {
	slices.SortStableFunc(p.wrong, func(a, b configError) int { return a.line - b.line })
	var errs []error
	for _, w := range p.wrong {
		errs = append(errs, usagef("%s:%d: %s", p.name, w.line, w.text))
	}
	return errors.Join(errs...)
}

// document is the one of the text, nil for none.
func (p *configParser) document(text []byte) *yaml.Node {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		p.syntax(err)
		return nil
	}
	switch err := d.Decode(&second); {
	case err == nil:
		p.bad(second.Line, "a second document begins: there must be one")
	case !errors.Is(err, io.EOF):
		p.syntax(err)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil
	}
	return root
}

// syntax takes the line out of the library's error. What it quotes of the file is no more than a character or the name of an anchor.
func (p *configParser) syntax(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	p.bad(max(line, 1), "this is no YAML: %s", text)
}

// entries are the keys and values of a mapping, without those that come twice.
func (p *configParser) entries(n *yaml.Node, what string, each func(key string, line int, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		p.bad(n.Line, "%s must be keys with values, as in `store: URL`", what)
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch first, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			p.bad(key.Line, "a key must be a word")
		case key.ShortTag() == "!!merge" || key.Anchor != "" || value.Anchor != "" || value.Kind == yaml.AliasNode:
			p.bad(key.Line, "%s: anchors, aliases and merge keys are not supported: write it out", key.Value)
		case twice:
			p.bad(key.Line, "%s stands in line %d already", key.Value, first)
		default:
			lines[key.Value] = key.Line
			each(key.Value, key.Line, value)
		}
	}
}

// section reads the file itself, with its groups, or a group: groups is nil.
func (p *configParser) section(n *yaml.Node, groups map[string]section) section {
	what := "a group"
	if groups != nil {
		what = "the file"
	}
	s := section{plain: map[string]setting{}, commands: map[string]map[string]setting{}}
	p.entries(n, what, func(key string, line int, value *yaml.Node) {
		switch {
		case key == keyCommands:
			p.commands(value, s.commands)
		case key == keyGroups && groups != nil:
			p.entries(value, keyGroups, func(name string, _ int, value *yaml.Node) { groups[name] = p.section(value, nil) })
		default:
			p.setting(s.plain, p.schema.plain, true, key, line, value)
		}
	})
	return s
}

// commands reads the settings of single commands.
func (p *configParser) commands(n *yaml.Node, to map[string]map[string]setting) {
	p.entries(n, keyCommands, func(name string, line int, value *yaml.Node) {
		keys, ok := p.schema.commands[name]
		if !ok {
			p.bad(line, "there is no command %q with flags: one of %s", name, strings.Join(slices.Sorted(maps.Keys(p.schema.commands)), ", "))
			return
		}
		to[name] = map[string]setting{}
		p.entries(value, "the command "+name, func(key string, line int, value *yaml.Node) {
			p.setting(to[name], keys, false, key, line, value)
		})
	})
}

func (p *configParser) setting(to map[string]setting, keys map[string]*flag.Flag, secrets bool, key string, line int, n *yaml.Node) {
	fl, ok := lookupKey(keys, key, secrets)
	if !ok {
		p.bad(line, "the key %q is not known: %s", key, guess(keys, key, secrets))
		return
	}
	kind := kindSecret
	if fl != nil {
		kind = kindOf(fl)
	}
	s, ok := p.value(key, kind, n)
	if !ok {
		return
	}
	if fl != nil && kind != kindList && len(s.values) > 0 {
		if err := fl.Value.Set(s.values[0]); err != nil {
			p.bad(line, "%s: %v", key, err)
			return
		}
	}
	to[key] = s
}

// value reads what a key is set to. No error shows it: it may be a secret that stands at the wrong place.
func (p *configParser) value(key string, kind keyKind, n *yaml.Node) (setting, bool) {
	s := setting{line: n.Line}
	switch {
	case n.Kind == yaml.MappingNode && (kind == kindURL || kind == kindSecret):
		return p.elsewhere(key, n)
	case n.Kind == yaml.SequenceNode && kind == kindList:
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" {
				p.bad(item.Line, "%s: what stands in the list must be text: write numbers, true and false in quotes", key)
				return s, false
			}
			s.values = append(s.values, item.Value)
		}
		return s, true
	case n.Kind == yaml.ScalarNode && kind != kindList && n.ShortTag() == kind.tag():
		s.values = []string{n.Value}
		return s, true
	}
	hint := ""
	if n.Kind == yaml.ScalarNode && kind == kindText {
		hint = ": write numbers, true and false in quotes"
	}
	p.bad(n.Line, "%s must be %s%s", key, kind.what(), hint)
	return s, false
}

// tag is what YAML calls a value of this kind.
func (k keyKind) tag() string {
	switch k {
	case kindNumber:
		return "!!int"
	case kindTruth:
		return "!!bool"
	}
	return "!!str"
}

// elsewhere reads {env: VARIABLE} or {file: PATH}.
func (p *configParser) elsewhere(key string, n *yaml.Node) (setting, bool) {
	s, ok := setting{line: n.Line}, true
	p.entries(n, key, func(where string, line int, value *yaml.Node) {
		switch {
		case value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" || value.Value == "":
			p.bad(line, "%s: %s must name one", key, where)
			ok = false
		case where == "env":
			s.env = value.Value
		case where == "file":
			s.file = value.Value
			if !filepath.IsAbs(s.file) {
				s.file = filepath.Join(filepath.Dir(p.name), s.file)
			}
		default:
			p.bad(line, "%s: the key %q is not known: there are env and file", key, where)
			ok = false
		}
	})
	if ok && (s.env == "") == (s.file == "") {
		p.bad(n.Line, "%s: one of env and file must be given", key)
		ok = false
	}
	return s, ok
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

const configLong = `It reads the file of --config whole, says all that is wrong with it, and shows for each GROUP, or for each group in the file, what a command would
use and where each value comes from. A flag wins over its variable (--on-success: REBALANCER_ON_SUCCESS), that over the file, and the file over the default.
What a URL holds of secrets is not shown.

  store: postgres://app@db/rebalancer    # for every group and every command
  store-password: {file: /run/secrets/db} # or {env: VARIABLE}; or text, in a file that nobody else can read
  ttl: 20s
  groups:
    orders:                              # for one group, as in: rebalancer consume orders
      source: amqp://app@mq/shop
      resource: [orders.0, orders.1]
      on-failure: move:orders.dead
    mail:
      source: {env: MAIL_URL}
      discover: mail.*
  commands:                              # for one command; may stand in a group too
    describe: {output: json}
    resources add: {weight: 2}

A key is the name of a flag. Directly in the file or in a group stand the flags of consume; store, source, output, ttl, barrier, registered, max-active,
fail-back, max-moving and max-moving-per-node hold for every other command that has them too, but for the source of describe. The flags of other commands stand in commands, by the
command's name. store and source may be kept in a variable or a file, and so may source-password and store-password, which have no flag. A path is taken
from the folder of the configuration file. What stands nearer wins: a command in a group, the group, a command, the file. Flags that may be given several
times are lists. Values are of their kind: text, durations such as 30s, whole numbers, true or false. A key that is not known, stands twice or has a value
of the wrong kind is an error, wherever in the file it stands and whatever the command. Anchors and aliases are not supported, and --execute and --confirm
belong on the command line.`

func configCommand() command {
	return command{
		name: "config", args: "[GROUP…]", short: "check a configuration file and show what it comes to", long: configLong, max: -1,
		setup: func(f *flags) action {
			var name, output string
			f.StringVar(&name, "command", "consume", "the command to show it for")
			f.explain("command", "NAME")
			f.StringVar(&output, "output", "text", "how to write it")
			f.explain("output", "text|json")
			f.short("o", "output")
			return func(_ context.Context, p *program, groups, _ []string) error {
				if output != "text" && output != "json" {
					return usagef("--output is %q: it must be text or json", output)
				}
				c, left := p.find(strings.Fields(name))
				if c == nil || len(left) > 0 {
					return usagef("--command: there is no command %q", name)
				}
				if p.config == nil && len(groups) == 0 {
					return usagef("--config FILE, REBALANCER_CONFIG or a GROUP is missing")
				}
				if p.config != nil && len(groups) == 0 {
					groups = slices.Sorted(maps.Keys(p.config.groups))
				}
				return p.showConfigs(c, groups, output)
			}
		},
	}
}

// shownConfig is what a command would use. Its JSON is part of the command line's contract.
type shownConfig struct {
	Group    string         `json:"group,omitempty"`
	Settings []shownSetting `json:"settings"`
}

type shownSetting struct {
	Key   string `json:"key"`
	Value any    `json:"value"` // text, or a list
	From  string `json:"from"`
}

// showConfigs shows what the command would use for each of the groups, without any flag.
func (p *program) showConfigs(c *command, groups []string, output string) error {
	if len(groups) == 0 {
		groups = []string{""}
	}
	var all []shownConfig
	var errs []error
	for _, g := range groups {
		f, _ := flagsOf(c)
		_, _, err := f.parse(nil, p.lookup)
		var settings map[string]setting
		if p.config != nil {
			settings = p.config.settings(c.name, g)
			err = errors.Join(err, f.configure(p.config, settings, p.lookup))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", orDash(g), err))
		}
		all = append(all, p.effective(f, g, settings))
	}
	return errors.Join(append(errs, writeConfigs(p.stdout, all, output))...)
}

// printConfig shows what a call uses.
func (p *program) printConfig(f *flags, group string) error {
	var settings map[string]setting
	if p.config != nil {
		settings = p.config.settings(f.cmd.name, group)
	}
	return writeConfigs(p.stdout, []shownConfig{p.effective(f, group, settings)}, "text")
}

// effective is what the flags have come to, and where from.
func (p *program) effective(f *flags, group string, settings map[string]setting) shownConfig {
	out := shownConfig{Group: group, Settings: []shownSetting{}}
	for _, key := range f.order {
		if hasNoKey(key) {
			continue
		}
		fl := f.Lookup(key)
		s := shownSetting{Key: key, From: orElse(f.origin[key], "default")}
		if l, ok := fl.Value.(*list); ok {
			s.Value = append([]string{}, *l...)
		} else {
			s.Value = redacted(key, fl.Value.String())
		}
		out.Settings = append(out.Settings, s)
	}
	for _, key := range secretKeys() {
		if f.Lookup(strings.TrimSuffix(key, "-password")) == nil {
			continue
		}
		if s, ok := p.shownSecret(key, settings); ok {
			out.Settings = append(out.Settings, s)
		}
	}
	return out
}

// shownSecret says where a secret comes from, and nothing of it.
func (p *program) shownSecret(key string, settings map[string]setting) (shownSetting, bool) {
	for _, name := range []string{variable(key), variable(key) + "_FILE"} {
		if v, ok := p.lookup(name); ok && v != "" {
			return shownSetting{key, hidden, name}, true
		}
	}
	s, ok := settings[key]
	if !ok {
		return shownSetting{}, false
	}
	from := p.config.at(s)
	if s.env != "" {
		from += ", the variable " + s.env
	} else if s.file != "" {
		from += ", the file " + s.file
	}
	return shownSetting{key, hidden, from}, true
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func writeConfigs(out io.Writer, all []shownConfig, output string) error {
	if output == "json" {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, c := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if c.Group != "" {
			fmt.Fprintf(w, "Group %s\n", quoteIfOdd(c.Group))
		}
		for _, s := range c.Settings {
			value := fmt.Sprint(s.Value)
			if l, ok := s.Value.([]string); ok {
				quoted := make([]string, len(l))
				for i, v := range l {
					quoted[i] = quoteIfOdd(v)
				}
				value = strings.Join(quoted, ", ")
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", s.Key, orDash(oneLine(value)), s.From)
		}
	}
	return w.Flush()
}

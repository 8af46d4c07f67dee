package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// flags reads the flags of one command from the command line and from the environment, and explains them.
type flags struct {
	*flag.FlagSet
	cmd   *command
	order []string
	alias map[string]string // short name → name
	value map[string]string // what stands for the value in the help
	// origin is where a flag was set: on the command line, in a variable or in a file. One that is missing has its default.
	origin map[string]string
	config string // --config
}

func newFlags(c *command) *flags {
	f := &flags{FlagSet: flag.NewFlagSet(c.name, flag.ContinueOnError), cmd: c, alias: map[string]string{}, value: map[string]string{}, origin: map[string]string{}}
	f.SetOutput(io.Discard) // errors are printed in one place
	f.Usage = func() {}
	return f
}

// explain notes the order of the help and what stands for the value there.
func (f *flags) explain(name, value string) {
	f.order = append(f.order, name)
	f.value[name] = value
}

// list is a flag that may be given several times. In the environment its values are separated by commas.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(v string) error { *l = append(*l, v); return nil }
func (l *list) setAll(v string)    { *l = strings.Split(v, ",") }
func (l *list) IsBoolFlag() bool   { return false }

// duration is a flag's value whose error says what it wants.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

func (d *duration) Set(v string) error {
	got, err := time.ParseDuration(v)
	if err != nil {
		return errors.New("a number with its unit is wanted, as in 30s or 1m30s")
	}
	*d = duration(got)
	return nil
}

// DurationVar is that of flag.FlagSet, with a better error.
func (f *flags) DurationVar(to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	f.Var((*duration)(to), name, usage)
}

// short makes a second, shorter name for a flag.
func (f *flags) short(short, name string) {
	f.Var(f.Lookup(name).Value, short, "the same as --"+name)
	f.alias[short] = name
}

// parse returns the arguments that are no flags, which may stand anywhere, and what follows "--".
func (f *flags) parse(args []string, lookup func(string) (string, bool)) (pos, rest []string, err error) {
	if i := slices.Index(args, "--"); i >= 0 {
		args, rest = args[:i], append([]string{}, args[i+1:]...)
	}
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, nil, err
			}
			return nil, nil, usagef("%v", err)
		}
		if args = f.Args(); len(args) > 0 {
			pos, args = append(pos, args[0]), args[1:]
		}
	}
	return pos, rest, f.environment(lookup)
}

// environment sets the flags that were not given from their variables. An empty variable is as good as none.
func (f *flags) environment(lookup func(string) (string, bool)) error {
	f.Visit(func(fl *flag.Flag) {
		name := fl.Name
		if full := f.alias[name]; full != "" {
			name = full
		}
		f.origin[name] = "--" + name
	})
	var errs []error
	f.VisitAll(func(fl *flag.Flag) {
		name := fl.Name
		v, ok := lookup(variable(name))
		if full, short := f.alias[name]; short {
			name = full
		}
		if !ok || v == "" || f.origin[name] != "" {
			return
		}
		f.origin[name] = variable(fl.Name)
		if l, ok := fl.Value.(*list); ok {
			l.setAll(v)
		} else if err := f.Set(fl.Name, v); err != nil {
			errs = append(errs, usagef("invalid value %q in %s: %v", v, variable(fl.Name), err))
		}
	})
	return errors.Join(errs...)
}

func variable(flag string) string {
	return "REBALANCER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// help prints how the command is used.
func (f *flags) help(w io.Writer) error {
	var b strings.Builder
	flagsWord := ""
	if len(f.order) > 0 {
		flagsWord = " [FLAGS]"
	}
	fmt.Fprintf(&b, "Usage: rebalancer %s %s%s", f.cmd.name, f.cmd.args, flagsWord)
	if f.cmd.rest {
		b.WriteString(" [-- CMD ARG…]")
	}
	fmt.Fprintf(&b, "\n\n%s\n", strings.TrimSpace(f.cmd.short+"\n\n"+f.cmd.long))
	if len(f.order) > 0 {
		b.WriteString("\nFlags:\n")
	}
	for _, name := range f.order {
		fl := f.Lookup(name)
		head := "--" + name
		for short, full := range f.alias {
			if full == name {
				head = "-" + short + ", " + head
			}
		}
		if v := f.value[name]; v != "" {
			head += " " + v
		}
		text := fl.Usage
		if d := fl.DefValue; d != "" && d != "0" && d != "0s" && d != "false" {
			text += " (default " + d + ")"
		}
		fmt.Fprintf(&b, "  %s\n        %s\n", head, strings.ReplaceAll(text, "\n", "\n        "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

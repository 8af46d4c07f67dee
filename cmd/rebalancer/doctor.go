package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rebalancer-go/rebalancer/backends"
)

const doctorLong = `It tries the store of --store, the source of --source, or both, and says of each thing that is not as it should be what to do. Without either it tries the
store in your state directory.

Of a store: can it be reached, how long does it take, are the rights there (a session of a group of its own is opened, an entry that vanishes with it is
written, read and renewed), do hints come, how far is its clock from this machine's, what of its set-up makes durability or failover weaker, and is its
version one that the tests run on. Of a source: can it be reached, can its resources be listed (--discover), do they exist (--resource), how many messages
wait, which policies of the server or of the URL lose or hold up messages, and which rights can be seen to be missing. No message is taken, and nothing of
the source is changed, but with --try-writes, which makes and removes a hidden file or object in each resource of file:// and s3://.

The code is 1 when something does not work, and 0 when there are only warnings.`

const (
	doctorTTL     = 30 * time.Second
	doctorTimeout = 15 * time.Second // of one step
	// clockTolerance is how far the clocks of store and machine may be apart without a word: nothing depends on it but how people read times.
	clockTolerance = 5 * time.Second
)

// doctorFlags are the flags of doctor.
type doctorFlags struct {
	store, source, discover, output string
	resources                       list
	tryWrites                       bool
}

func doctorCommand() command {
	return command{
		name: "doctor", short: "try a store and a source and say what is wrong with them", long: doctorLong,
		setup: func(f *flags) action {
			c := &doctorFlags{}
			operatorStore(f, &c.store)
			f.StringVar(&c.source, "source", "", "the source, as for consume")
			f.explain("source", "URL")
			f.Var(&c.resources, "resource", "a resource that must be there; give it once for each. In the environment: separated by commas.")
			f.explain("resource", "NAME")
			f.StringVar(&c.discover, "discover", "", "a pattern, as for consume: what it finds is looked at like --resource")
			f.explain("discover", "PATTERN")
			f.BoolVar(&c.tryWrites, "try-writes", false, "also make and remove a hidden file or object in each resource")
			f.explain("try-writes", "")
			f.StringVar(&c.output, "output", "text", "how to write it; in json a time is in seconds")
			f.explain("output", "text|json")
			f.short("o", "output")
			return func(ctx context.Context, p *program, _, _ []string) error { return c.run(ctx, p) }
		},
	}
}

func (c *doctorFlags) run(ctx context.Context, p *program) error {
	switch {
	case c.output != "text" && c.output != "json":
		return usagef("--output is %q: it must be text or json", c.output)
	case c.source == "" && (len(c.resources) > 0 || c.discover != "" || c.tryWrites):
		return usagef("--resource, --discover and --try-writes need --source")
	}
	d := &doctor{}
	if c.store != "" || c.source == "" {
		d.about = "store"
		if err := c.examineStore(ctx, p, d); err != nil {
			return err
		}
	}
	if c.source != "" {
		d.about = "source"
		if err := c.examineSource(ctx, p, d); err != nil {
			return err
		}
	}
	write := d.text
	if c.output == "json" {
		write = d.json
	}
	return errors.Join(d.err(), write(p.stdout))
}

// examineStore returns an error only for wrong usage: a store that cannot be opened is a finding.
func (c *doctorFlags) examineStore(ctx context.Context, p *program, d *doctor) error {
	s, err := p.openStoreOrDefault(ctx, c.store, true)
	if errors.Is(err, errUsage) || errors.Is(err, errNotFound) {
		return err
	}
	if err != nil {
		d.failed("open", err)
		return nil
	}
	defer s.Close()
	d.store = s
	d.examine(ctx)
	if u, err := parseURL("--store", c.store); c.store != "" && err == nil {
		d.alone(u)
	}
	return nil
}

func (c *doctorFlags) examineSource(ctx context.Context, p *program, d *doctor) error {
	src, err := p.openSource(ctx, c.source, sourceOptions{logger: slog.New(slog.DiscardHandler), list: c.discover != ""})
	if errors.Is(err, errUsage) {
		return err
	}
	if err != nil {
		d.failed("open", err)
		return nil
	}
	defer src.close()
	return d.examineSource(ctx, src, c)
}

// The states of findings. Only failures make the code 1.
const (
	stateOK      = "ok"
	stateNote    = "note"
	stateWarning = "warning"
	stateFailed  = "failed"
)

// finding is one thing that was looked at. Its JSON is part of the command line's contract.
type finding struct {
	State string  `json:"state"`
	About string  `json:"about"` // store or source
	Check string  `json:"check"`
	Text  string  `json:"text,omitempty"`
	Took  float64 `json:"took,omitempty"`
	Do    string  `json:"do,omitempty"` // what a person should do
}

// doctor examines a store and a source and gathers what it finds.
type doctor struct {
	about    string
	findings []finding
	errs     []error

	store   backends.Store
	session backends.Session
	off     time.Duration // of the clocks
}

func (d *doctor) find(state, check, do, format string, args ...any) {
	d.findings = append(d.findings, finding{State: state, About: d.about, Check: check, Text: oneLine(fmt.Sprintf(format, args...)), Do: do})
}

// failed notes an error, and what may heal it.
func (d *doctor) failed(check string, err error) {
	d.find(stateFailed, check, advice(d.about, err), "%v", err)
	d.errs = append(d.errs, fmt.Errorf("%s: %w", check, err))
}

// step does one thing and says how it went.
func (d *doctor) step(ctx context.Context, check string, do func(ctx context.Context) (string, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	began := time.Now()
	more, err := do(ctx)
	if err != nil {
		d.failed(check, err)
		return false
	}
	d.find(stateOK, check, "", "%s", more)
	d.findings[len(d.findings)-1].Took = time.Since(began).Seconds()
	return true
}

func (d *doctor) err() error { return errors.Join(d.errs...) }

// text writes a line for each finding, and below it what to do.
func (d *doctor) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	about := ""
	for _, f := range d.findings {
		if f.About != about {
			about = f.About
			fmt.Fprintf(w, "%s\n", strings.ToUpper(about[:1])+about[1:])
		}
		state, took := f.State, ""
		if state == stateWarning || state == stateFailed {
			state = strings.ToUpper(state)
		}
		if f.Took > 0 {
			took = time.Duration(f.Took * float64(time.Second)).Round(10 * time.Microsecond).String()
			if f.Text != "" {
				took += "; "
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", state, f.Check, took, f.Text)
		if f.Do != "" {
			fmt.Fprintf(w, "\t\tto do: %s\n", f.Do)
		}
	}
	return w.Flush()
}

func (d *doctor) json(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	}{len(d.errs) == 0, append([]finding{}, d.findings...)})
}

// try is step for what is of use but not needed: that it fails is a warning.
func (d *doctor) try(ctx context.Context, check, do string, what func(ctx context.Context) (string, error)) bool {
	n := len(d.errs)
	if d.step(ctx, check, what) {
		return true
	}
	d.errs = d.errs[:n]
	f := &d.findings[len(d.findings)-1]
	f.State, f.Do = stateWarning, do
	return false
}

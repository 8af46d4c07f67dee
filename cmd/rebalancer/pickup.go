package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// pickupParameters are the parameters of a --source of files or objects, for the help.
const pickupParameters = "stable_for, min_age, interval, idle_interval (like 10s), ignore (patterns), done_file (*.done), checksum_file\n" +
	"(*.sha256), trigger_file, set (*.xml,*.pdf), empty (deliver, wait or reject), order (name or time),\n" +
	"strict_order and claim_by_rename (true)"

// pickupPolicy makes a policy of the parameters of a URL and of the flags. It returns the parameters that it does not know, for their source.
func pickupPolicy(query url.Values, o sourceOptions) (p pickup.Policy, rest url.Values, err error) {
	p = pickup.Policy{OnSuccess: pickupAction(o.success), OnFailure: pickupAction(o.failure), Logger: o.logger}
	if p.OnSuccess.Kind() == pickup.None {
		p.OnSuccess = pickup.Delete()
	}
	rest = url.Values{}
	known := pickupSetters(&p)
	var errs []error
	for _, name := range sortedNames(query) {
		values := query[name]
		set := known[name]
		switch {
		case set == nil:
			rest[name] = values
		case len(values) > 1 || values[0] == "":
			errs = append(errs, usagef("--source: %s must be given once, with a value", name))
		default:
			if err := set(values[0]); err != nil {
				errs = append(errs, usagef("--source: the parameter %s: %v", name, err))
			}
		}
	}
	return p, rest, errors.Join(errs...)
}

func sortedNames(query url.Values) []string {
	var names []string
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func pickupSetters(p *pickup.Policy) map[string]func(string) error {
	return map[string]func(string) error{
		"stable_for": func(v string) error {
			err := setDuration(&p.StableFor)(v)
			if p.StableFor == 0 { // none
				p.StableFor = -1
			}
			return err
		},
		"min_age":         setDuration(&p.MinAge),
		"interval":        setDuration(&p.Interval),
		"idle_interval":   setDuration(&p.IdleInterval),
		"ignore":          func(v string) error { p.Ignore = strings.Split(v, ","); return nil },
		"set":             func(v string) error { p.Set = strings.Split(v, ","); return nil },
		"done_file":       func(v string) error { p.DoneFile = v; return nil },
		"checksum_file":   func(v string) error { p.ChecksumFile = v; return nil },
		"trigger_file":    func(v string) error { p.TriggerFile = v; return nil },
		"strict_order":    setTruth(&p.StrictOrder),
		"claim_by_rename": setTruth(&p.ClaimByRename),
		"empty": oneOf(&p.Empty, map[string]pickup.Empty{
			"deliver": pickup.EmptyDeliver, "wait": pickup.EmptyWait, "reject": pickup.EmptyReject,
		}),
		"order": oneOf(&p.Order, map[string]pickup.Order{"name": pickup.ByName, "time": pickup.ByTime}),
	}
}

func setDuration(d *time.Duration) func(string) error {
	return func(v string) (err error) {
		if *d, err = time.ParseDuration(v); err != nil || *d < 0 {
			return errors.New("it must be a duration like 10s or 500ms")
		}
		return nil
	}
}

func setTruth(b *bool) func(string) error {
	return func(v string) (err error) {
		if *b, err = strconv.ParseBool(v); err != nil {
			return errors.New("it must be true or false")
		}
		return nil
	}
}

func oneOf[T any](to *T, words map[string]T) func(string) error {
	return func(v string) error {
		x, ok := words[v]
		if !ok {
			var all []string
			for w := range words {
				all = append(all, w)
			}
			slices.Sort(all)
			return fmt.Errorf("it must be one of %s", strings.Join(all, ", "))
		}
		*to = x
		return nil
	}
}

// pickupAction is what --on-success or --on-failure says.
func pickupAction(s settle) pickup.Action {
	switch s.action {
	case "delete":
		return pickup.Delete()
	case "move":
		return pickup.MoveTo(s.folder)
	case "keep":
		return pickup.Keep()
	case "tag":
		key, value, _ := strings.Cut(s.folder, "=")
		return pickup.Tag(key, value)
	}
	return pickup.Action{}
}

// unknownParameters refuses what no one knows.
func unknownParameters(rest url.Values) error {
	if len(rest) == 0 {
		return nil
	}
	return usagef("--source: the parameter %s is not known; there are %s", strings.Join(sortedNames(rest), ", "),
		strings.ReplaceAll(pickupParameters, "\n", " "))
}

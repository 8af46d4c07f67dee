package sqs

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

const fifoSuffix = ".fifo"

var (
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	regionPattern = regexp.MustCompile(`^(?:.*\.)?sqs(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-[0-9]+)\.|^([a-z]{2}(?:-[a-z]+)+-[0-9]+)\.queue\.amazonaws\.com`)
)

// Names returns the canonical names of queues: the plain name ("orders", "orders.fifo") for those of Config.Account, and
// account/name for those of another. A queue may be given by its name, as account/name, by its URL or by its ARN. A list in which
// one queue stands twice is refused, and so is a queue of another region.
func (s *Source) Names(resources []string) ([]string, error) {
	var errs []error
	out := make([]string, len(resources))
	first := map[string]string{}
	for i, in := range resources {
		name, err := s.canonical(in)
		if err != nil {
			errs = append(errs, fmt.Errorf("sqs: queue %q: %w", in, err))
			continue
		}
		if other, twice := first[name]; twice {
			errs = append(errs, fmt.Errorf("sqs: %q and %q are one queue", other, in))
		}
		first[name], out[i] = in, name
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// canonical is the one name of a queue.
func (s *Source) canonical(in string) (string, error) {
	account, region, name, err := parseQueue(in)
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		return "", err
	}
	if s.cfg.Redrive && isFIFO(name) {
		return "", errors.New("Config.Redrive is not for FIFO queues: giving a message back would burn the receives of those behind it")
	}
	if region != "" && region != s.cfg.Region {
		if s.cfg.Region == "" {
			return "", fmt.Errorf("it names the region %s: set Config.Region to that of the client", region)
		}
		return "", fmt.Errorf("it is in the region %s, the client in %s: a source works the queues of one region", region, s.cfg.Region)
	}
	switch {
	case account == "" || account == s.cfg.Account:
		return name, nil
	case s.cfg.Account == "":
		return "", fmt.Errorf("it names the account %s: set Config.Account to the account of the client, so that it is known which names mean the same queue", account)
	}
	return account + "/" + name, nil
}

// parseQueue takes a spelling apart; what it does not say is empty.
func parseQueue(in string) (account, region, name string, err error) {
	switch {
	case strings.HasPrefix(in, "arn:"):
		parts := strings.Split(in, ":")
		if len(parts) != 6 || parts[2] != "sqs" || parts[3] == "" || !accountPattern.MatchString(parts[4]) {
			return "", "", "", errors.New("an ARN of a queue has the form arn:aws:sqs:REGION:ACCOUNT:NAME")
		}
		return parts[4], parts[3], parts[5], nil
	case strings.Contains(in, "://"):
		return parseQueueURL(in)
	}
	if before, after, ok := strings.Cut(in, "/"); ok {
		if !accountPattern.MatchString(before) {
			return "", "", "", errors.New("in front of the name stands an account, of 12 digits")
		}
		return before, "", after, nil
	}
	return "", "", in, nil
}

func parseQueueURL(in string) (account, region, name string, err error) {
	u, err := url.Parse(in)
	if err != nil {
		return "", "", "", errors.New("it is no URL")
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/"), "/")
	if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || len(parts) != 2 || !accountPattern.MatchString(parts[0]) ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", "", "", errors.New("a URL of a queue has the form https://sqs.REGION.amazonaws.com/ACCOUNT/NAME")
	}
	if m := regionPattern.FindStringSubmatch(u.Hostname() + "."); m != nil {
		region = m[1] + m[2]
	} else if u.Hostname() == "queue.amazonaws.com" {
		region = "us-east-1"
	}
	return parts[0], region, parts[1], nil
}

func checkName(name string) error {
	if !namePattern.MatchString(strings.TrimSuffix(name, fifoSuffix)) || len(name) > 80 {
		return errors.New("a queue's name has 1 to 80 letters, digits, - and _, and .fifo behind them for a FIFO queue")
	}
	return nil
}

func isFIFO(name string) bool { return strings.HasSuffix(name, fifoSuffix) }

// split takes a canonical name apart.
func split(canonical string) (account, name string) {
	if before, after, ok := strings.Cut(canonical, "/"); ok {
		return before, after
	}
	return "", canonical
}

func checkDeadLetter(pattern string) error {
	if strings.Count(pattern, "*") > 1 {
		return errors.New("only one * is allowed")
	}
	if pattern == "*" || pattern == "*"+fifoSuffix {
		return errors.New("messages would come back to their own queue")
	}
	return checkName(strings.Replace(pattern, "*", "q", 1))
}

// deadLetterOf is the name of the dead-letter queue of a queue, "" for none.
func (c *Config) deadLetterOf(name string) string {
	if c.DeadLetter == "" {
		return ""
	}
	to := strings.Replace(strings.TrimSuffix(c.DeadLetter, fifoSuffix), "*", strings.TrimSuffix(name, fifoSuffix), 1)
	if isFIFO(name) {
		to += fifoSuffix
	}
	return to
}

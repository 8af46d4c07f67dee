package sqs

import (
	"context"
	"fmt"
)

// checkAccount finds a Config.Account that is not the client's. Names are made with it before anything is asked, so that a node where it is wrong would
// have a queue under another name than the others have, and both would work it. arn is what the queue says of itself; a server may have none.
func (s *Source) checkAccount(ctx context.Context, q queue, arn string) error {
	named, name := split(q.name)
	if actual, _, _, err := parseQueue(arn); err == nil && actual != "" {
		switch {
		case named == "" && s.cfg.Account != "" && actual != s.cfg.Account:
			return fmt.Errorf("it is in the account %s, and Config.Account is %s: set it to the account of the client", actual, s.cfg.Account)
		case named != "" && actual != named:
			return fmt.Errorf("the server gave the queue of that name in the account %s", actual)
		}
	}
	if named == "" {
		return nil
	}
	// What the client calls by its plain name is of its own account.
	switch own, err := s.url(ctx, name); {
	case err == nil && own == q.url:
		return fmt.Errorf("%s is the client's own account, and Config.Account is %s: set it to the account of the client", named, s.cfg.Account)
	case err != nil && !answered(err):
		return fmt.Errorf("whether it is of the client's own account: %w", err)
	}
	return nil
}

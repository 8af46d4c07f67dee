package sqs

import (
	"errors"
	"fmt"
	"time"
)

// mostTroubles are told in one error.
const mostTroubles = 16

// trouble is what a Fetch is to return, for the group to report.
type trouble struct {
	about string // a later one about the same takes its place
	err   error
}

// What troubles are about; some with an id behind it.
const (
	aboutReceive   = "receive"
	aboutExtension = "extension"
	aboutSilence   = "silence"
	aboutPayload   = "payload "
	aboutLane      = "lane "
)

// report keeps an error for the next Fetch. Some are not met again, and each is told.
func (r *reader) report(about string, err error) {
	defer signal(r.wake)
	for i := range r.troubles {
		if r.troubles[i].about == about {
			r.troubles[i].err = err
			return
		}
	}
	r.troubles = append(r.troubles, trouble{about, err})
}

// tell is what is to be reported, nil when there is nothing.
func (r *reader) tell() error {
	if len(r.troubles) == 0 {
		return nil
	}
	var errs []error
	for _, t := range r.troubles[:min(len(r.troubles), mostTroubles)] {
		errs = append(errs, t.err)
	}
	if more := len(r.troubles) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more of the kind", more))
	}
	r.troubles, r.told = nil, time.Now()
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

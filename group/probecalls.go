package group

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/coord"
)

// told tells the probes of a call that the machine asked for.
func (c *storeCalls) told(what string, began time.Time, answer coord.Event, late bool) {
	if what == "" || !c.tell.on() {
		return
	}
	code, err := endOf(answer)
	call := StoreCall{Call: what, Began: began, Outcome: outcomeName(code), Err: err}
	if late {
		call.Outcome, call.Err = "timeout", cmp.Or(err, context.DeadlineExceeded)
	}
	if done, ok := answer.(coord.Committed); ok {
		call.Claims, call.Refused = c.claims(done)
	}
	c.tell.storeCall(call)
}

// endOf is how an answer says that a call ended.
func endOf(answer coord.Event) (coord.Code, error) {
	switch a := answer.(type) {
	case coord.Opened:
		return a.Code, a.Err
	case coord.Renewed:
		return a.Code, a.Err
	case coord.Superseded:
		return a.Code, a.Err
	case coord.ReadDone:
		return a.Code, a.Err
	case coord.Committed:
		return a.Code, a.Err
	}
	return coord.OK, nil
}

// outcomeName is a code in one word.
func outcomeName(c coord.Code) string { return strings.ReplaceAll(c.String(), " ", "_") }

// asked notes which transactions of a commit are claims, for probes.
func (c *storeCalls) asked(a coord.Commit) {
	if !c.tell.on() {
		return
	}
	claims := make([]bool, len(a.Txns))
	any := false
	for i, t := range a.Txns {
		claims[i] = len(t.Puts) == 1 && strings.HasPrefix(t.Puts[0].Key, coord.ClaimPrefix)
		any = any || claims[i]
	}
	if any {
		c.claiming.Store(a.Req, claims)
	}
}

// claims counts those of a commit that was answered.
func (c *storeCalls) claims(done coord.Committed) (claims, refused int) {
	v, ok := c.claiming.LoadAndDelete(done.Req)
	if !ok {
		return 0, 0
	}
	for i, claim := range v.([]bool) {
		if !claim {
			continue
		}
		claims++
		if done.Code == coord.OK && i < len(done.Results) && done.Results[i].Code == coord.Conflict {
			refused++
		}
	}
	return claims, refused
}

// checkpoint tells of a call for a checkpoint.
func (p *probes) checkpoint(what string, began time.Time, err error) {
	if !p.on() {
		return
	}
	p.storeCall(StoreCall{Call: what, Began: began, Outcome: outcomeName(codeOf(err, coord.Unknown)), Err: err})
}

package sim

import (
	"testing"

	"github.com/rebalancer-go/rebalancer/coord"
)

// TestScheduleMustFit: a schedule that waits for a message that the machines do not send is an error, not a pass.
func TestScheduleMustFit(t *testing.T) {
	t.Parallel()
	for _, play := range []func(*director){
		func(d *director) { d.deliverOne("nothing", nothing) },
		func(d *director) { d.until("nothing", never) },
		func(d *director) { d.answerLater("nothing", nothing) },
	} {
		s := Schedule{Name: "unfit", Mode: coord.ResourceBarrier, play: func(d *director) { d.start(lead); play(d) }}
		if v, err := s.Play(0, 0); v != nil || err == nil {
			t.Errorf("passes: %v, %v", v, err)
		}
	}
}

func nothing(message) bool { return false }

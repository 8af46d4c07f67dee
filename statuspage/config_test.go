package statuspage

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rebalancer-go/rebalancer/backends/memory"
)

func TestNewSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Token: "short", Every: time.Millisecond, Timeout: -time.Second, Groups: []string{"a/b", "c", "c"}})
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"Store is missing", "Token has 5 bytes", "Every is 1ms", "Timeout is -1s", `"a/b"`, `"c" twice`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "short") {
		t.Errorf("the error shows the token: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	h := mustNew(t, Config{Store: memory.New()})
	defer h.Close()
	if h.cfg.Every != DefaultEvery || h.cfg.Timeout != DefaultTimeout || h.cfg.Logger == nil {
		t.Errorf("%+v", h.cfg)
	}
}

func TestRedaction(t *testing.T) {
	t.Parallel()
	c := Config{Token: testToken, Secrets: []string{"hunter2", "abc"}}
	for in, want := range map[string]string{
		"dial postgres://u:s3cret@h:5432/d failed":      "dial postgres://u:•••@h:5432/d failed",
		`amqps://u:a%2Fb@h and redis://:pw@h`:           `amqps://u:•••@h and redis://:•••@h`,
		"host=h user=u password=s3cret sslmode=disable": "host=h user=u password=••• sslmode=disable",
		`{"password": "s3cret", "n": 1}`:                `{"password": •••, "n": 1}`,
		"with " + testToken + " in it":                  "with ••• in it",
		"it said hunter2!":                              "it said •••!",
		"abc is too short to be a secret":               "abc is too short to be a secret",
		"http://host/path: no password was given":       "http://host/path: no password was given",
	} {
		if got := c.redact(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

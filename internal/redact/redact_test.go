package redact

import "testing"

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"dial amqp://u:p:w@h/v: refused":   "dial amqp://u:•••@h/v: refused",
		`password = "a b" of token:xyz, x`: `password = ••• of token:•••, x`,
		"http://host:80/path is as it was": "http://host:80/path is as it was",
		"":                                 "",
	} {
		if got := Text(in); got != want || Text(got) != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

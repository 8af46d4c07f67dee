package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/sources/pickup"
)

// configFileOf writes a configuration file and returns its path.
func configFileOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// yamlOf is a value that a flag may be set to, in YAML, and the text of the flag that it gives.
func yamlOf(fl *flag.Flag) (yaml, text string) {
	switch kindOf(fl) {
	case kindDuration:
		return "7s", "7s"
	case kindNumber:
		return "7", "7"
	case kindTruth:
		return "true", "true"
	case kindList:
		return `[a, "b, c"]`, "a,b, c"
	}
	return `"x: y"`, "x: y"
}

// TestEveryFlagHasAKey, but those that have none on purpose; and each key is that of a flag, but for the secrets.
func TestEveryFlagHasAKey(t *testing.T) {
	t.Parallel()
	p := newWorld(t).program(nil, nil)
	s := p.configSchema()
	seen := 0
	for _, c := range p.commands() {
		f, _ := flagsOf(&c)
		f.VisitAll(func(fl *flag.Flag) {
			if f.alias[fl.Name] != "" || hasNoKey(fl.Name) {
				return
			}
			seen++
			yaml, text := yamlOf(fl)
			places := map[string]string{"a command": fmt.Sprintf("commands: {%s: {%s: %s}}", c.name, fl.Name, yaml)}
			if holdsFor(c.name, fl.Name) {
				places["the file"] = fmt.Sprintf("%s: %s", fl.Name, yaml)
				places["a group"] = fmt.Sprintf("groups: {g: {%s: %s}}", fl.Name, yaml)
			}
			for place, doc := range places {
				file, err := parseConfig("c.yaml", []byte(doc), p.configSchema())
				if err != nil {
					t.Errorf("%s: %s: %v", c.name, doc, err)
					continue
				}
				g, _ := flagsOf(&c)
				if err := g.configure(file, file.settings(c.name, "g"), nil); err != nil || g.Lookup(fl.Name).Value.String() != text {
					t.Errorf("%s: --%s set in %s: %v, %v", c.name, fl.Name, place, g.Lookup(fl.Name).Value, err)
				}
			}
		})
	}
	keys := 0
	for _, of := range s.commands {
		keys += len(of)
	}
	if keys != seen || seen < 50 {
		t.Errorf("%d keys, %d flags", keys, seen)
	}
	for key := range s.plain {
		if s.commands["consume"][key] == nil && !everywhere(key) {
			t.Errorf("%s holds for no command", key)
		}
		if key == keyGroups || key == keyCommands || strings.HasSuffix(key, "-password") {
			t.Errorf("the flag --%s has the name of a part of the file", key)
		}
		if everywhere(key) && !strings.Contains(configLong, key) {
			t.Errorf("the help does not say that %s holds for every command", key)
		}
	}
}

// TestPrecedence: flag, variable, the command in the group, the group, the command, the file, the default.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["REBALANCER_CONFIG"] = configFileOf(t, `
ttl: 1s
drain: 1s
priority: 1
weight: 1
attempts: 1
count: 1
commands: {consume: {drain: 2s, priority: 2, weight: 2, attempts: 2, count: 2}}
groups:
  g: {priority: 3, weight: 3, attempts: 3, count: 3, resource: [in], commands: {consume: {weight: 4, attempts: 4, count: 4}}}
`)
	w.env["REBALANCER_ATTEMPTS"], w.env["REBALANCER_COUNT"] = "5", "5"
	r := w.want(codeDone, "", "", "consume", "g", "--print-config", "--source", "file://"+w.dir, "--count", "6", "--", "true")
	fields := map[string]string{}
	for line := range strings.SplitSeq(r.out, "\n") {
		if f := strings.Fields(line); len(f) == 3 {
			fields[f[0]] = f[1] + " " + filepath.Base(f[2])
		}
	}
	for key, want := range map[string]string{
		"ttl": "1s c.yaml:2", "drain": "2s c.yaml:8", "priority": "3 c.yaml:10", "weight": "4 c.yaml:10", "attempts": "5 REBALANCER_ATTEMPTS",
		"count": "6 --count", "concurrency": "1 default", "resource": "in c.yaml:10", "store": "test: REBALANCER_STORE",
	} {
		if key != "store" && fields[key] != want {
			t.Errorf("%s is %q, want %q", key, fields[key], want)
		}
	}
	// Another group is not concerned, and a file given by a flag wins over the variable.
	w.want(codeUsage, "  priority             2", "--resource NAME", "consume", "other", "--print-config", "--source", "file://"+w.dir, "--", "true")
	w.want(codeUsage, "  priority             8", "--resource NAME", "consume", "g", "--print-config", "--config", configFileOf(t, "priority: 8"), "--source", "file://"+w.dir, "--", "true")
}

// TestConfigOfOtherCommands: what the group's nodes agree on holds for create, but what is called like a flag of consume and means another thing does not.
func TestConfigOfOtherCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["REBALANCER_CONFIG"] = configFileOf(t, "ttl: 7s\noutput: json\ngroups: {g: {registered: true, weight: 9}}\ncommands: {resources add: {prefer: [a=b]}}")
	w.want(codeDone, "", "", "create", "g")
	w.want(codeDone, "", "a registered", "resources", "add", "g", "a")
	r := w.want(codeDone, `"ttl": 7`, "", "describe", "g")
	if !strings.Contains(r.out, `"a=b"`) || strings.Contains(r.out, `"weight": 9`) {
		t.Errorf("%s", r.out)
	}
}

// TestConfigWrong: all that is wrong is said at once, with its line, whatever the command, and no value is shown.
func TestConfigWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := configFileOf(t, `stor: secret
on_success: secret
ttl: 30
ttl: secret
drain: secret
concurrency: "secret"
registered: yes
resource: secret
store: {file: secret, env: secret}
source: {path: secret}
node:
priority: 1.5
static: [true]
groups:
  orders:
    resource: [a, 1]
    store-password: 77
    groups: {}
  orders: {}
  mail: secret
commands:
  consum: {}
  describe: {ttl: 1s}
  nodes list: {config: g}
attempts: 99999999999999999999
barrier: *secret
label: &secret [a=b]
<<: {count: 1}
`)
	// An alias of an anchor that is not there is no YAML at all.
	w.want(codeUsage, "", `c.yaml:1: this is no YAML: unknown anchor`, "groups", "--config", name)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	name = configFileOf(t, strings.Replace(string(text), "barrier: *secret\n", "", 1)+"barrier: *secret\n")
	r := w.want(codeUsage, "", "", "groups", "--config", name)
	for _, want := range []string{
		`:1: the key "stor" is not known: there are attempts, `, ":2: the key \"on_success\" is not known: write on-success", ":3: ttl must be a number with its unit",
		":4: ttl stands in line 3 already", ":5: drain: a number with its unit", ":6: concurrency must be a whole number", ":7: registered must be true or false",
		":8: resource must be a list", ":9: store: one of env and file", `:10: source: the key "path" is not known`, ":11: node must be text", ":12: priority must be a whole number",
		":13: static must be true or false", ":16: resource: what stands in the list must be text", ":17: store-password must be text", `:18: the key "groups" is not known`,
		":19: orders stands in line 15 already", ":20: a group must be keys with values", `:22: there is no command "consum"`, `:23: the key "ttl" is not known: there are `,
		`:24: the key "config" is not known`, ":25: attempts", ":26: label: anchors", ":27: <<: anchors", ":28: barrier: anchors",
	} {
		if !strings.Contains(r.err, want) {
			t.Errorf("nothing begins with %q", want)
		}
	}
	if lines := strings.Count(r.err, "c.yaml:"); lines < 25 || strings.Contains(strings.ReplaceAll(r.err, name, ""), "secret") {
		t.Errorf("%d lines, or a secret:\n%s", lines, r.err)
	}
	for text, want := range map[string]string{
		"a: b: c": "c.yaml:1: this is no YAML", "ttl: 1s\n---\nttl: 2s": "c.yaml:2: a second document", "[a]": "c.yaml:1: the file must be keys", "{[a]: b}": "a key must be a word",
		"ttl: 1s\n\tx": "this is no YAML", strings.Repeat("#", maxConfig+1): "longer than", "groups: {g: {commands: {groups: 1}}}": "the command groups must be keys",
	} {
		w.want(codeUsage, "", want, "groups", "--config", configFileOf(t, text))
	}
	w.want(codeUsage, "", "no such file", "groups", "--config", name+"x")
	for _, empty := range []string{"", "# nothing\n", "---\n", "null"} {
		w.want(codeDone, "", "", "groups", "--config", configFileOf(t, empty))
	}
}

// TestSecretsOfTheFile come from files and variables, lose against the environment, and are never shown.
func TestSecretsOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := configFileOf(t, "store-password: {file: pw}\nsource: {env: THE_SOURCE}\nsource-password: geheim\ngroups: {g: {store-password: {env: THE_PASSWORD}}, h: {}}")
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "pw"), []byte("from a file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env["REBALANCER_CONFIG"] = name
	find := func(args ...string) *program {
		p := w.program(nil, nil)
		c, pos := p.find(args)
		f, _ := flagsOf(c)
		pos, _, err := f.parse(pos, p.lookup)
		if err != nil {
			t.Fatal(err)
		}
		q, err := p.configured(c, f, pos)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	password := func(p *program, flag string) string {
		u, err := p.withPassword(flag, &url.URL{Scheme: "redis", Host: "h"})
		if err != nil {
			return err.Error()
		}
		pw, _ := u.User.Password()
		return pw
	}
	if got := password(find("describe", "h"), "--store"); got != "from a file" {
		t.Errorf("got %q", got)
	}
	if got := password(find("describe", "g"), "--store"); !strings.HasSuffix(got, "c.yaml:4: store-password: the environment variable THE_PASSWORD is not set") {
		t.Errorf("got %q", got)
	}
	w.env["THE_PASSWORD"] = "geheim too"
	if got := password(find("describe", "g"), "--store"); got != "geheim too" {
		t.Errorf("got %q", got)
	}
	w.want(codeNotFound, "", "no such group", "describe", "g") // which does not open the source, unless it is asked to
	w.want(codeUsage, "", "c.yaml:2: source: the environment variable THE_SOURCE is not set", "consume", "g", "--resource", "in", "--", "true")
	w.env["THE_SOURCE"] = "amqp://u:geheim@h/v"
	if got := password(find("consume", "g"), "--source"); got != "geheim" {
		t.Errorf("got %q", got)
	}
	delete(w.env, "REBALANCER_STORE")
	for _, o := range []string{"text", "json"} {
		r := w.want(codeDone, "amqp://u:xxxxx@h/v", "", "config", "-o", o)
		if strings.Contains(r.out+r.err, "geheim") || !strings.Contains(r.out, "c.yaml:4, the variable THE_PASSWORD") || !strings.Contains(r.out, "pw") {
			t.Errorf("%s", r.out)
		}
	}
	w.env["REBALANCER_STORE_PASSWORD"] = "of the environment"
	if got := password(find("describe", "g"), "--store"); got != "of the environment" {
		t.Errorf("got %q", got)
	}
	w.want(codeDone, "REBALANCER_STORE_PASSWORD", "", "config", "g")
}

func TestConfigCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want(codeUsage, "", "--config FILE", "config")
	w.want(codeUsage, "", "text or json", "config", "g", "-o", "xml")
	w.want(codeUsage, "", `no command "x"`, "config", "g", "--command", "x")
	w.want(codeDone, "default", "", "config", "g")
	name := configFileOf(t, "groups: {b: {}, a: {}}\ncommands: {describe: {output: json}}")
	if r := w.want(codeDone, "Group a\n", "", "config", "--config", name); strings.Index(r.out, "Group a") > strings.Index(r.out, "Group b") {
		t.Errorf("%s", r.out)
	}
	if r := w.want(codeDone, "json", "", "config", "--config", name, "--command", "describe", "a"); strings.Contains(r.out, "Group b") {
		t.Errorf("%s", r.out)
	}
	if r := w.want(codeDone, "  ttl ", "", "config", "--config", configFileOf(t, "ttl: 3s")); strings.Contains(r.out, "Group") {
		t.Errorf("%s", r.out)
	}
}

func TestRedacted(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"store", "", ""},
		{"node", "secret", "secret"},
		{"token", "secret", hidden},
		{"token-file", "/x", "/x"},
		{"store", "postgres://u:secret@h/d?sslmode=require&sslpassword=secret#secret", "postgres://u:xxxxx@h/d?sslmode=require&sslpassword=xxxxx#%E2%80%A6"},
		{"store", "redis://:secret@h", "redis://:xxxxx@h"},
		{"source", "amqp://u:12/secret@h", "amqp://u/%E2%80%A6"},
		{"source", "amqp://h1,h2/v?management=http://u:secret@m&heartbeat=5s", "amqp://h1,h2/v?heartbeat=5s&management=xxxxx"},
		{"source", "amqp://u:pa/secret@h", "(not shown: it is no URL as expected)"},
		{"source", "amqp:secret", "(not shown: it is no URL as expected)"},
		{"source", "secret", "(not shown: it is no URL as expected)"},
		{"source", "file:///srv/in?done_file=*.done", "file:///srv/in?done_file=%2A.done"},
	} {
		if got := redacted(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s, want %s", c[0], got, c[2])
		}
	}
	// What a source takes may be seen, as far as it is known to be no secret.
	for name := range pickupSetters(&pickup.Policy{}) {
		if !openParameter(name) {
			t.Errorf("the value of %s would be hidden", name)
		}
	}
}

// FuzzConfig: no text ends the program, and what is accepted can be used.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"", "ttl: 1s", "groups: {g: {store: {env: X}}}", "commands: {resources add: {weight: 2}}", "a: &b [*b]", "? [x]\n: y", "%YAML 1.1\n---\n", "- - -", "ttl: !!binary x", "!!map x", "\x00",
		"&a a: b", "groups: {[a, b]: {}}", "<<: *x",
	} {
		f.Add(seed)
	}
	p := &program{}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parseConfig("c.yaml", []byte(text), p.configSchema())
		if err != nil {
			return
		}
		for _, c := range p.commands() {
			fs, _ := flagsOf(&c)
			if err := fs.configure(file, file.settings(c.name, "g"), func(string) (string, bool) { return "", false }); err != nil && !strings.Contains(text, "env") && !strings.Contains(text, "file") {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

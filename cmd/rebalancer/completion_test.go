package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shells is a directory with a program "rebalancer" for shells to call, and an environment that names a store with the groups orders and mail.
func shells(t *testing.T) (dir string, env []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rebalancer"), []byte("#!/bin/sh\nexec '"+self+"' \"$@\"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	w := newWorld(t)
	url := "sqlite://" + filepath.Join(dir, "store.db")
	w.env["REBALANCER_STORE"] = url
	for _, args := range [][]string{{"create", "orders", "--registered"}, {"create", "mail"}, {"resources", "add", "orders", "eu", "us"}} {
		if r := w.runOn(t.Context(), storeDrivers(), args); r.code != codeDone {
			t.Fatalf("%q: %s", args, r.err)
		}
	}
	return dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "REBALANCER_STORE="+url, "REBALANCER_CONFIG=", "HOME="+dir)
}

const bashTry = `
source <(rebalancer completion bash)
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
while IFS= read -r COMP_LINE; do
	COMP_POINT=${#COMP_LINE}
	read -ra COMP_WORDS <<<"$COMP_LINE"
	[[ $COMP_LINE != *' ' ]] || COMP_WORDS+=("")
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_rebalancer
	echo "${COMPREPLY[*]}"
done`

// TestCompletionInBash asks bash itself: commands, flags, values, names from the store.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	dir, env := shells(t)
	tries := [][2]string{
		{"rebalancer desc", "describe"},
		{"rebalancer resources a", "add"},
		{"rebalancer rabbitmq ", "partitions"},
		{"rebalancer rabbitmq partitions s", "show shrink"},
		{"rebalancer help no", "nodes"},
		{"rebalancer nonsense ", ""},
		{"rebalancer describe ", "mail orders"},
		{"rebalancer describe o", "orders"},
		{"rebalancer describe orders ", ""},
		{"rebalancer describe --output json or", "orders"},
		{"rebalancer resources remove orders ", "eu us"},
		{"rebalancer resources remove orders eu u", "us"},
		{"rebalancer resources pin orders eu --t", "--to"},
		{"rebalancer consume orders --on-s", "--on-success"},
		{"rebalancer consume orders --on-success ", "delete keep move: tag:"},
		{"rebalancer consume orders --on-success m", "move:"},
		{"rebalancer consume orders --on-success move:", ""},
		{"rebalancer consume orders --barrier=g", "global"},
		{"rebalancer consume orders -- ", strings.Join(ls(t, dir), " ")},
		{"rebalancer describe orders -o ", "json text"},
		{"rebalancer describe orders --config " + dir + "/sto", dir + "/store.db"},
		{"rebalancer completion ", "bash fish zsh"},
		{"rebalancer describe --store sqlite://" + dir + "/none.db ", ""},
		{"rebalancer describe --store x: ", ""},
		{"rebalancer describe 'or", "orders"},
	}
	var in strings.Builder
	for _, c := range tries {
		in.WriteString(c[0] + "\n")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", bashTry)
	cmd.Env, cmd.Dir, cmd.Stdin = env, dir, strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(got) != len(tries) {
		t.Fatalf("%d answers for %d lines: %q", len(got), len(tries), got)
	}
	for i, c := range tries {
		want, is := strings.Fields(c[1]), strings.Fields(got[i])
		slices.Sort(is)
		if slices.Sort(want); !slices.Equal(is, want) {
			t.Errorf("%s: %q, want %q", c[0], got[i], c[1])
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
}

func ls(t *testing.T, dir string) (names []string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		names = append(names, e.Name())
	}
	return names
}

// TestCompletionKnowsEverything: each command can be reached word by word, and each of its flags is offered.
func TestCompletionKnowsEverything(t *testing.T) {
	t.Parallel()
	p := newWorld(t).program(nil, nil)
	for _, c := range p.commands() {
		parts := strings.Fields(c.name)
		for i, part := range parts {
			if got := p.complete(t.Context(), append(slices.Clone(parts[:i]), part[:1])); !slices.Contains(got.words, part) {
				t.Errorf("%s: %q does not lead to %q: %q", c.name, parts[:i], part, got.words)
			}
		}
		f, _ := flagsOf(&c)
		offered := p.complete(t.Context(), append(slices.Clone(parts), "--")).words
		f.VisitAll(func(fl *flag.Flag) {
			if f.alias[fl.Name] == "" && !slices.Contains(offered, "--"+fl.Name) {
				t.Errorf("%s: --%s is not offered", c.name, fl.Name)
			}
		})
	}
}

func TestCompletionOfGroupsInTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := configFileOf(t, "groups: {orders: {}, mail: {}}")
	for _, line := range []string{"config --config " + name + " ", "consume --config " + name + " "} {
		if r := w.want(codeDone, "", "", completeMode, "bash", "rebalancer "+line, " :="); r.out != "words\nmail\norders\n" {
			t.Errorf("%s: %q", line, r.out)
		}
	}
	w.want(codeDone, "compdef", "", "completion", "zsh")
	w.want(codeDone, "complete -c rebalancer", "", "completion", "fish")
	w.want(codeUsage, "", "no script for", "completion", "tcsh")
	w.want(codeUsage, "", "a script of", completeMode)
}

func TestSplitLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"":                   {""},
		"a":                  {"a"},
		"a ":                 {"a", ""},
		"a  b":               {"a", "b"},
		`a 'b c' "d \" e" f`: {"a", "b c", `d " e`, "f"},
		`a b\ c`:             {"a", "b c"},
		`a ''`:               {"a", ""},
		`a 'b c`:             {"a", "b c"},
	} {
		if got := splitLine(line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

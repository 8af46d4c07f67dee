package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// completeMode is the hidden first argument by which the scripts of the shells ask what a word may become.
const completeMode = "__complete"

const completionLong = `It prints a script that completes commands, flags, their values, and the names of groups, nodes and resources, as far as the store that the line, the
environment or the configuration names answers within a second. The script asks this program, so it need not be made again with a new version.

  bash:  rebalancer completion bash >/etc/bash_completion.d/rebalancer        or in ~/.bashrc: source <(rebalancer completion bash)
  zsh:   rebalancer completion zsh >"${fpath[1]}/_rebalancer"
  fish:  rebalancer completion fish >~/.config/fish/completions/rebalancer.fish`

func completionCommand() command {
	return command{
		name: "completion", args: "bash|zsh|fish", short: "print a script that completes the words of a command line", long: completionLong, min: 1, max: 1,
		setup: func(*flags) action {
			return func(_ context.Context, p *program, args, _ []string) error {
				script, ok := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[args[0]]
				if !ok {
					return usagef("there is no script for %q: one of bash, zsh, fish", args[0])
				}
				_, err := io.WriteString(p.stdout, script)
				return err
			}
		},
	}
}

// The answer is one candidate a line, behind a line that is "words", "open" (a word goes on: no space after it) or "files" (the shell's own file names).
// bash splits words at : and = too: there the whole line is asked for, and what stands before its last such character is left out of the answers.

const bashScript = `# Completion of rebalancer for bash.
_rebalancer() {
	local answer kind word
	COMPREPLY=()
	answer=$("${COMP_WORDS[0]}" ` + completeMode + ` bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null) || return 0
	{
		IFS= read -r kind
		while IFS= read -r word; do COMPREPLY+=("$word"); done
	} <<<"$answer"
	case $kind in
	open) compopt -o nospace 2>/dev/null ;;
	files)
		compopt -o filenames 2>/dev/null
		while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
		;;
	esac
	return 0
}
complete -F _rebalancer rebalancer
`

const zshScript = `#compdef rebalancer
# Completion of rebalancer for zsh.
_rebalancer() {
	local -a answer
	answer=("${(@f)$("${words[1]}" ` + completeMode + ` zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	case ${answer[1]} in
	files) _files ;;
	open) compadd -S '' -- "${(@)answer[2,-1]}" ;;
	words) (( ${#answer} > 1 )) && compadd -- "${(@)answer[2,-1]}" ;;
	esac
}
if [ "$funcstack[1]" = _rebalancer ]; then _rebalancer "$@"; else compdef _rebalancer rebalancer; fi
`

const fishScript = `# Completion of rebalancer for fish.
function __rebalancer_complete
	set -l words (commandline -opc)
	set -l answer ($words[1] ` + completeMode + ` fish $words[2..-1] (commandline -ct) 2>/dev/null)
	if test "$answer[1]" = files
		__fish_complete_path (commandline -ct)
	else if test (count $answer) -gt 1
		printf '%s\n' $answer[2..-1]
	end
end
complete -c rebalancer -f -a '(__rebalancer_complete)'
`

// candidates are what a word may become.
type candidates struct {
	kind  string
	words []string
}

const (
	kindWords = "words"
	kindFiles = "files"
	kindOpen  = "open"
)

// completions answers a script: args are the shell and what it knows of the line.
func (p *program) completions(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return usagef("a script of `rebalancer completion` calls this")
	}
	words, cut := args[1:], ""
	if args[0] == "bash" {
		words = splitLine(args[1])[1:]
		if len(words) == 0 {
			return nil
		}
		last := words[len(words)-1]
		breaks := ":="
		if len(args) > 2 {
			breaks = keep(args[2], ":=")
		}
		cut = last[:strings.LastIndexAny(last, breaks)+1]
	}
	c := p.complete(ctx, words)
	var b strings.Builder
	fmt.Fprintln(&b, c.kind)
	for _, w := range c.words {
		if !strings.ContainsAny(w, "\n\r") {
			fmt.Fprintln(&b, strings.TrimPrefix(w, cut))
		}
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}

// keep is what of s stands in set too.
func keep(s, set string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(set, r) {
			return r
		}
		return -1
	}, s)
}

// complete says what the last word may become.
func (p *program) complete(ctx context.Context, words []string) candidates {
	before, last := words[:len(words)-1], words[len(words)-1]
	if slices.Contains(before, "--") {
		return candidates{kind: kindFiles} // of the command that is run for each message
	}
	help := len(before) > 0 && before[0] == "help"
	if help {
		before = before[1:]
	}
	c, rest := p.find(before)
	if c == nil || help {
		return p.commandWords(before, last, help)
	}
	out := p.inCommand(ctx, c, rest, last)
	if len(rest) == 0 && !strings.HasPrefix(last, "-") { // "resources" is the beginning of longer names, but "nodes" may be a command itself one day
		out.words = append(out.words, p.commandWords(before, last, false).words...)
	}
	return out
}

// commandWords are the words by which the names of commands go on.
func (p *program) commandWords(before []string, last string, help bool) candidates {
	names := p.names()
	if !help {
		names = append(names, "help")
	}
	var words []string
	for _, name := range names {
		parts := strings.Fields(name)
		if len(parts) > len(before) && slices.Equal(parts[:len(before)], before) {
			words = append(words, parts[len(before)])
		}
	}
	return matching(kindWords, words, last)
}

// matching are the words that begin with a prefix, sorted, each once.
func matching(kind string, words []string, prefix string) candidates {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return candidates{kind, slices.Compact(out)}
}

// inCommand completes a flag, its value or an argument of a command.
func (p *program) inCommand(ctx context.Context, c *command, rest []string, last string) candidates {
	f, _ := flagsOf(c)
	if len(rest) > 0 {
		if name := strings.TrimLeft(rest[len(rest)-1], "-"); strings.HasPrefix(rest[len(rest)-1], "-") && f.takesValue(name) {
			return f.values(name, "", last)
		}
	}
	if strings.HasPrefix(last, "-") {
		if head, value, ok := strings.Cut(last, "="); ok {
			return f.values(strings.TrimLeft(head, "-"), head+"=", value)
		}
		words := []string{"--help"}
		for _, name := range f.order {
			words = append(words, "--"+name)
		}
		if c.rest {
			words = append(words, "--")
		}
		return matching(kindWords, words, last)
	}
	pos, _, err := f.parse(rest, p.lookup)
	if err != nil {
		return candidates{kind: kindWords}
	}
	return matching(kindWords, p.arguments(ctx, c, f, pos), last)
}

// takesValue tells whether the word behind a flag is its value.
func (f *flags) takesValue(name string) bool {
	fl := f.Lookup(name)
	if fl == nil {
		return false
	}
	b, ok := fl.Value.(interface{ IsBoolFlag() bool })
	return !ok || !b.IsBoolFlag()
}

// values are those of a flag that the help names: text|json, or delete|move:DIR.
func (f *flags) values(name, head, prefix string) candidates {
	if full := f.alias[name]; full != "" {
		name = full
	}
	form := f.value[name]
	if form == "FILE" {
		return candidates{kind: kindFiles}
	}
	if !strings.Contains(form, "|") {
		return candidates{kind: kindWords}
	}
	kind := kindWords
	var words []string
	for word := range strings.SplitSeq(form, "|") {
		if open := strings.IndexByte(word, ':'); open >= 0 { // move:DIR
			word = word[:open+1]
		}
		words = append(words, head+word)
	}
	out := matching(kind, words, head+prefix)
	if len(out.words) == 1 && strings.HasSuffix(out.words[0], ":") {
		out.kind = kindOpen
	}
	return out
}

// splitLine splits a line into words as a shell does, the last one unfinished, perhaps empty. The first is the program.
func splitLine(line string) []string {
	words := []string{""}
	inWord, quote := false, rune(0)
	escaped := false
	for _, r := range line {
		last := &words[len(words)-1]
		switch {
		case escaped:
			*last, escaped = *last+string(r), false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			*last += string(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words, inWord = append(words, ""), false
			}
		default:
			*last, inWord = *last+string(r), true
		}
	}
	return words
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rebalancer-go/rebalancer/admin"
)

// minInterval is the shortest time between two looks of describe --watch.
const minInterval = 100 * time.Millisecond

// watcher shows a group again and again: drawn anew where a person watches a terminal, else by what changed.
type watcher struct {
	every  time.Duration
	json   bool
	out    *os.File
	errs   io.Writer
	look   func(context.Context) (admin.Description, error)
	screen func() (columns, lines int, ok bool) // of the terminal; not ok: it is none
	now    func() time.Time

	last  admin.Description
	known bool  // last is one
	wrong error // of the last look
}

// run goes on until ctx ends, which is no error. What is wrong with the store is shown, and it looks again; but a group that is not there at the first
// look, or a name that cannot be one, ends it.
func (w *watcher) run(ctx context.Context) error {
	_, _, drawn := w.screen()
	if drawn && !w.json {
		if _, err := io.WriteString(w.out, enterScreen); err != nil {
			return err
		}
		defer w.leave()
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for first := true; ; first = false {
		d, err := w.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case first && (errors.Is(err, admin.ErrNotFound) || errors.Is(err, admin.ErrInvalid)):
			return err
		case drawn && !w.json:
			err = w.draw(d, err)
		default:
			err = w.append(d, err)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// once looks, for no longer than a few intervals.
func (w *watcher) once(ctx context.Context) (admin.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, max(3*w.every, 5*time.Second))
	defer cancel()
	return w.look(ctx)
}

// What a terminal is told: another screen without a cursor, and back; the first line; the rest of a line, and of the screen, empty.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// draw shows the group as it stands; when the store does not answer, as it stood last, with the reason below.
func (w *watcher) draw(d admin.Description, err error) error {
	if err == nil {
		w.last, w.known = d, true
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Every %v: %s  (Ctrl-C ends)\n", w.every, w.now().Format(time.TimeOnly))
	if err != nil {
		fmt.Fprintf(&b, "ERROR        %s\n", oneLine(err.Error()))
	}
	if w.known {
		if err := describeText(&b, w.last); err != nil {
			return err
		}
	}
	columns, lines, _ := w.screen()
	_, err = io.WriteString(w.out, home+fit(b.String(), columns, lines)+clearRest)
	return err
}

// fit cuts a text to a screen: what goes beyond it is only counted.
func fit(text string, columns, lines int) string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines > 1 && len(all) > lines {
		all = append(all[:lines-1], fmt.Sprintf("… %d lines more", len(all)-lines+1))
	}
	for i, l := range all {
		if runes := []rune(l); columns > 0 && len(runes) > columns {
			l = string(runes[:columns])
		}
		all[i] = l + clearLine
	}
	return strings.Join(all, "\r\n")
}

// leave brings the terminal's own screen back, and leaves the last picture there, whole.
func (w *watcher) leave() {
	_, _ = io.WriteString(w.out, leaveScreen)
	if w.known {
		_ = describeText(w.out, w.last)
	}
}

// append writes how the group stands, and then each change, a line for each; in JSON the whole group in one line whenever something changed. What is wrong
// goes to standard error, once.
func (w *watcher) append(d admin.Description, wrong error) error {
	if wrong != nil {
		if w.wrong == nil || w.wrong.Error() != wrong.Error() {
			fmt.Fprintf(w.errs, "rebalancer describe: %s: %s\n", stamp(w.now()), oneLine(wrong.Error()))
		}
		w.wrong = wrong
		return nil
	}
	if w.wrong != nil {
		fmt.Fprintf(w.errs, "rebalancer describe: %s: the store answers again\n", stamp(w.now()))
	}
	before, known := w.last, w.known
	w.last, w.known, w.wrong = d, true, nil
	changes := changesOf(before, d)
	switch {
	case known && len(changes) == 0:
		return nil
	case w.json:
		return w.line(d)
	case !known:
		return describeText(w.out, d)
	}
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s  %s\n", stamp(w.now()), c)
	}
	_, err := io.WriteString(w.out, b.String())
	return err
}

func (w *watcher) line(d admin.Description) error {
	var whole, line bytes.Buffer
	if err := describeJSON(&whole, d); err != nil {
		return err
	}
	if err := json.Compact(&line, whole.Bytes()); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := w.out.Write(line.Bytes())
	return err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

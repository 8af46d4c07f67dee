package main

import (
	"context"
	"fmt"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

const pauseLong = `Their node finishes what is in hand and gives them up; nobody works them until they are resumed, whatever nodes come and go. With
--keep it keeps the claim, so that they resume at once. Pausing again with or without --keep changes that. With --all the whole group is paused,
also resources that come later; those that are paused by themselves stay so when it is resumed.`

func resourcesPauseCommand() command {
	return pauseCommand("pause", "stop the work on resources, or on all of a group", pauseLong, true)
}

func resourcesResumeCommand() command {
	return pauseCommand("resume", "let paused resources be worked again",
		"Resources stand still on while the whole group is paused: --all resumes that, and not those that are paused by themselves.", false)
}

func pauseCommand(verb, short, long string, pause bool) command {
	return command{
		name: "resources " + verb, args: "GROUP NAME… | --all", short: short, long: long, min: 1, max: -1,
		setup: func(f *flags) action {
			var o operatorFlags
			var all, keep bool
			o.define(f)
			f.BoolVar(&all, "all", false, "the whole group")
			f.explain("all", "")
			did, not := "resumed", "was not paused"
			if pause {
				f.BoolVar(&keep, "keep", false, "their nodes keep the claims")
				f.explain("keep", "")
				did, not = "paused", "was paused so already"
			}
			return func(ctx context.Context, p *program, args, _ []string) error {
				group, names := args[0], args[1:]
				switch {
				case all && len(names) > 0:
					return usagef("--all and names of resources exclude each other")
				case !all && len(names) == 0:
					return usagef("NAME or --all is missing")
				case all:
					names = []string{fmt.Sprintf("group %s", quoteIfOdd(group))}
				}
				return p.changed(ctx, o, names, did, not, func(s backends.Store) ([]string, error) {
					switch {
					case all && pause:
						return namesIf(names)(admin.PauseGroup(ctx, s, group, keep))
					case all:
						return namesIf(names)(admin.ResumeGroup(ctx, s, group))
					case pause:
						return admin.Pause(ctx, s, group, keep, names...)
					}
					return admin.Resume(ctx, s, group, names...)
				})
			}
		},
	}
}

// namesIf gives the names when something changed.
func namesIf(names []string) func(bool, error) ([]string, error) {
	return func(changed bool, err error) ([]string, error) {
		if !changed {
			return nil, err
		}
		return names, err
	}
}

package main

import (
	"context"
	"io"
	"strings"
)

func schemaCommand() command {
	return command{
		name: "schema", short: "print what a store must be given before it can be used",
		long: `It prints statements for an administrator: tables and rights of a database, the user of a Redis. It reaches no server and changes nothing.`,
		setup: func(f *flags) action {
			var store string
			operatorStore(f, &store)
			return func(_ context.Context, p *program, _, _ []string) error {
				u, err := parseURL("--store", store)
				if err != nil {
					return err
				}
				for _, d := range p.stores {
					if d.scheme != u.Scheme {
						continue
					}
					text := "-- A store of this kind needs no preparation: it makes what it needs.\n"
					if d.schema != nil {
						if text, err = d.schema(u); err != nil {
							return err
						}
					}
					_, err = io.WriteString(p.stdout, strings.TrimRight(text, "\n")+"\n")
					return err
				}
				return p.unknownStore(u)
			}
		},
	}
}

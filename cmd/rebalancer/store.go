package main

import (
	"context"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
)

// storeFlag defines --store.
func storeFlag(f *flags, p *program, to *string) {
	var forms []string
	for _, d := range p.stores {
		if d.form != "" {
			forms = append(forms, d.form)
		}
	}
	f.StringVar(to, "store", "", "where the group keeps its metadata: "+strings.Join(forms, ", ")+".\n"+
		"It may be left out for file: sources on a local disk: then it is a file in your state directory.")
	f.explain("store", "URL")
}

func (p *program) openStoreOrDefault(ctx context.Context, url string, existing bool) (backends.Store, error) {
	if url == "" {
		var err error
		if url, err = p.defaultStore(existing); err != nil {
			return nil, err
		}
	}
	return p.openStore(ctx, url, existing)
}

// withStore opens the store for one action of an operator.
func (p *program) withStore(ctx context.Context, url string, existing bool, f func(backends.Store) error) error {
	s, err := p.openStoreOrDefault(ctx, url, existing)
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}

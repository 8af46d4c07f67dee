package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/rebalancer-go/rebalancer/backends"
	"github.com/rebalancer-go/rebalancer/statuspage"
)

const serveLong = `It serves a page that shows who holds what and since when, what does not get on and why, and the last changes, of each GROUP, or of all groups
of the store, and follows them. Whoever reaches the page may read it. With a token it changes things too: the token is taken from --token-file or
from REBALANCER_SERVE_TOKEN, and must be typed into the page. Let a proxy add TLS and a login where the page is to be reached from elsewhere.`

type serveOptions struct {
	store, source, listen, tokenFile string
	hosts                            list
}

func serveCommand() command {
	return command{
		name: "serve", args: "[GROUP…]", short: "show groups on a page for browsers", long: serveLong, max: -1,
		setup: func(f *flags) action {
			var o serveOptions
			operatorStore(f, &o.store)
			f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "where to listen; :8080 is every address of this machine")
			f.explain("listen", "HOST:PORT")
			f.StringVar(&o.tokenFile, "token-file", "", fmt.Sprintf("a file with the token that lets somebody change things, of %d bytes or more. Defaults to\nREBALANCER_SERVE_TOKEN; without either nothing can be changed.", statuspage.MinToken))
			f.explain("token-file", "FILE")
			f.Var(&o.hosts, "host", "a name by which browsers reach the page, besides localhost, the machine's own and addresses; give it once for each")
			f.explain("host", "NAME")
			f.StringVar(&o.source, "source", "", "the groups' source, as for consume, to show how many messages wait. Defaults to none.")
			f.explain("source", "URL")
			return func(ctx context.Context, p *program, args, _ []string) error { return p.serve(ctx, o, args) }
		},
	}
}

func (p *program) serve(ctx context.Context, o serveOptions, groups []string) error {
	token, err := p.serveToken(o.tokenFile)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(p.stderr, nil))
	return p.withStore(ctx, o.store, true, func(s backends.Store) error {
		cfg := statuspage.Config{Store: s, Groups: groups, Token: token, Hosts: ownNames(o.hosts), Secrets: p.passwords(o), Logger: logger}
		if o.source != "" {
			lagger, done, err := p.lagger(ctx, o.source, logger)
			if err != nil {
				return err
			}
			defer done()
			cfg.Lag = statuspage.LagOf(lagger)
		}
		return p.servePage(ctx, cfg, o.listen)
	})
}

func (p *program) servePage(ctx context.Context, cfg statuspage.Config, listen string) error {
	page, err := statuspage.New(cfg)
	if err != nil {
		return &kindError{errUsage, err.Error()}
	}
	defer page.Close()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	may := "read-only"
	if cfg.Token != "" {
		may = "changes with the token"
	}
	fmt.Fprintf(p.stderr, "serves http://%s/ (%s)\n", l.Addr(), may)
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintln(p.stderr, "other machines can reach it: what it shows, and a token on its way, can be read there unless a proxy adds TLS and a login")
	}
	return statuspage.Serve(ctx, l, page)
}

// serveToken is the token, without the line end of its file; "" for none.
func (p *program) serveToken(file string) (string, error) {
	token, set := p.lookup("REBALANCER_SERVE_TOKEN")
	switch {
	case file == "":
	case set && token != "":
		return "", usagef("--token-file and REBALANCER_SERVE_TOKEN exclude each other")
	default:
		b, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		token = strings.TrimRight(string(b), "\r\n")
		if token == "" {
			return "", usagef("--token-file: %s is empty", file)
		}
	}
	if token != "" && len(token) < statuspage.MinToken {
		return "", usagef("the token has %d bytes: it must have at least %d; make one with `head -c 24 /dev/urandom | base64`", len(token), statuspage.MinToken)
	}
	return token, nil
}

// ownNames are the names by which the page may be reached.
func ownNames(given []string) []string {
	names := append([]string{}, given...)
	if own, err := os.Hostname(); err == nil {
		names = append(names, own)
	}
	return names
}

// passwords are those of the URLs, so that no error shows them.
func (p *program) passwords(o serveOptions) []string {
	var all []string
	for _, f := range [][2]string{{"--store", o.store}, {"--source", o.source}} {
		u, err := url.Parse(f[1])
		if err != nil || f[1] == "" {
			continue // whoever opens it says what is wrong
		}
		if u, err = p.withPassword(f[0], u); err != nil {
			continue
		}
		if password, has := u.User.Password(); has {
			all = append(all, password)
		}
	}
	return all
}

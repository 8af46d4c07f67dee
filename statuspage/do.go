package statuspage

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"

	"github.com/rebalancer-go/rebalancer/admin"
	"github.com/rebalancer-go/rebalancer/backends"
)

// maxBody bounds a request for a change, in bytes: some thousand names.
const maxBody = 4 << 20

// change is what the page asks for.
type change struct {
	Group string   `json:"group"`
	Do    string   `json:"do"`
	Names []string `json:"names"` // of resources or nodes
	Node  string   `json:"node"`  // of pin and move
}

// doer carries a change out and returns the names of what was not so before.
type doer func(ctx context.Context, s backends.Store, c change) ([]string, error)

// doers are all the changes that there are.
func doers() map[string]doer {
	onNames := func(f func(context.Context, backends.Store, string, ...string) ([]string, error)) doer {
		return func(ctx context.Context, s backends.Store, c change) ([]string, error) {
			return f(ctx, s, c.Group, c.Names...)
		}
	}
	toNode := func(f func(context.Context, backends.Store, string, string, ...string) ([]string, error)) doer {
		return func(ctx context.Context, s backends.Store, c change) ([]string, error) {
			return f(ctx, s, c.Group, c.Node, c.Names...)
		}
	}
	pause := func(keep bool) doer {
		return func(ctx context.Context, s backends.Store, c change) ([]string, error) {
			return admin.Pause(ctx, s, c.Group, keep, c.Names...)
		}
	}
	return map[string]doer{
		"pause": pause(false), "pause-keep": pause(true), "resume": onNames(admin.Resume),
		"drain": onNames(admin.Drain), "undrain": onNames(admin.Undrain),
		"pin": toNode(admin.Pin), "unpin": onNames(admin.Unpin), "move": toNode(admin.Move),
		"pause-group": onGroup(func(ctx context.Context, s backends.Store, group string) (bool, error) {
			return admin.PauseGroup(ctx, s, group, false)
		}),
		"resume-group": onGroup(admin.ResumeGroup),
		"step-down": func(ctx context.Context, s backends.Store, c change) ([]string, error) {
			node, err := admin.StepDown(ctx, s, c.Group)
			if err != nil || node == "" {
				return nil, err
			}
			return []string{node}, nil
		},
	}
}

func onGroup(f func(context.Context, backends.Store, string) (bool, error)) doer {
	return func(ctx context.Context, s backends.Store, c change) ([]string, error) {
		changed, err := f(ctx, s, c.Group)
		if err != nil || !changed {
			return nil, err
		}
		return []string{c.Group}, nil
	}
}

// serveDo changes something. Whoever asks must show the token in a header, which no other site can make a browser send.
func (h *Handler) serveDo(w http.ResponseWriter, r *http.Request) {
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case h.cfg.Token == "":
		fail(w, http.StatusForbidden, "nothing can be changed here: the page was started without a token")
		return
	case !h.mayChange(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		fail(w, http.StatusUnauthorized, "the token is missing or wrong")
		return
	case kind != "application/json":
		fail(w, http.StatusUnsupportedMediaType, "the request must be application/json")
		return
	}
	var c change
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		fail(w, http.StatusBadRequest, "the request cannot be read")
		return
	}
	h.carryOut(w, r, c)
}

func (h *Handler) carryOut(w http.ResponseWriter, r *http.Request, c change) {
	do := doers()[c.Do]
	if do == nil {
		fail(w, http.StatusBadRequest, "no such change")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Timeout)
	defer cancel()
	shown, err := h.shows(ctx, c.Group)
	if err == nil && !shown {
		err = admin.ErrNotFound
	}
	var changed []string
	if err == nil {
		changed, err = do(ctx, admin.As(h.cfg.Store, "status page", "asked for from "+r.RemoteAddr), c)
	}
	if err != nil {
		text := h.cfg.redact(err.Error())
		h.cfg.Logger.Warn("status page: change failed", "group", c.Group, "do", c.Do, "names", len(c.Names), "node", c.Node, "from", r.RemoteAddr, "error", text)
		fail(w, statusOf(err), text)
		return
	}
	h.cfg.Logger.Info("status page: changed", "group", c.Group, "do", c.Do, "names", changed, "node", c.Node, "from", r.RemoteAddr)
	h.watch(c.Group).soon()
	reply(w, http.StatusOK, map[string][]string{"changed": append([]string{}, changed...)})
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, admin.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, admin.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, admin.ErrRefused):
		return http.StatusConflict
	}
	return http.StatusBadGateway
}

// either is a context that ends with the first of two.
func either(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

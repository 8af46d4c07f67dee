package statuspage

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// groupsReply is what the page asks for first.
type groupsReply struct {
	Groups   []string `json:"groups"`
	Writable bool     `json:"writable"` // with the token
	Error    string   `json:"error,omitempty"`
}

func (h *Handler) serveGroups(w http.ResponseWriter, r *http.Request) {
	list, err := h.groups(r.Context())
	if err != nil {
		fail(w, http.StatusBadGateway, "groups: "+h.cfg.redact(err.Error()))
		return
	}
	reply(w, http.StatusOK, groupsReply{Groups: append([]string{}, list...), Writable: h.cfg.Token != ""})
}

// serveState answers once there is another version of a group than the one that the page has, else after a while with status 204.
func (h *Handler) serveState(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	group := q.Get("group")
	ok, err := h.shows(r.Context(), group)
	switch {
	case err != nil:
		fail(w, http.StatusBadGateway, "groups: "+h.cfg.redact(err.Error()))
		return
	case !ok:
		fail(w, http.StatusNotFound, "no such group in this store")
		return
	}
	ctx, cancel := either(r.Context(), h.ctx)
	defer cancel()
	a := h.watch(group).await(ctx, q.Get("have"), hold)
	head := w.Header()
	// Both by one clock, that of this process: the page reckons with their difference.
	head.Set("Rebalancer-Now", millis(time.Now()))
	head.Set("Rebalancer-Read", millis(a.readAt))
	if a.body == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	head.Set("Content-Type", "application/json; charset=utf-8")
	send(w, r, a.plain, a.zipped)
}

func millis(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// send writes what was zipped before to those who can read it.
func send(w http.ResponseWriter, r *http.Request, plain, zipped []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	out := plain
	if zipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		out = zipped
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(out) // who has gone needs no answer
	}
}

func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if coding == "gzip" {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(q), "q="), "0.") != "" || q == ""
		}
	}
	return false
}

// zipped is nil when that would save nothing.
func zipped(plain []byte) []byte {
	if len(plain) < 1000 {
		return nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(plain) // into memory
	_ = z.Close()
	return b.Bytes()
}

func reply(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		code, b = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b) // who has gone needs no answer
}

// fail answers with an error that the page can show.
func fail(w http.ResponseWriter, code int, text string) {
	reply(w, code, map[string]string{"error": text})
}

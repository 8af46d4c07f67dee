// Package health answers the probes of Kubernetes, and of whatever else asks over HTTP whether a process is well: /livez with 200 while nothing in it needs a
// restart, /readyz with 200 while its nodes are members that trust what they hold. Else the answer is 503. The body says why, for each group.
//
//	http.ListenAndServe(":8080", health.Handler(g))
//
// What to use for what:
//
//   - livenessProbe /livez: handlers that are stuck, a resource that stands still (Retry.Exhausted is group.Stop), a loop that does not turn. A restart is what
//     helps against these. A store that is away is none of them: restarting every node then would make things worse.
//   - readinessProbe /readyz, for rolling updates: joining, no assignment yet, draining, or the store did not answer for so long that the claims are not trusted any more.
//     An outage of the store that is shorter than that trust does not show. Nodes that consume from a source get no traffic from a Service, so all that
//     readiness decides is when the next pod is replaced.
//
// A process that has just started, and one whose Consume has returned, is live and not ready. Answers ask neither store nor source, and tell no names but those of groups, nodes and resources.
package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/rebalancer-go/rebalancer/group"
)

// Node is a node that can tell whether it is well; a *group.Group is one.
type Node interface {
	// Live is nil unless a restart is needed; it does not block.
	Live() error
	// Ready is nil when the node does its part; it does not block.
	Ready() error
	// Status is a snapshot; of it Group, Node and State are used.
	Status() group.Status
}

// Report is the body of an answer as JSON, which is sent when the request accepts application/json. Else it is text: "ok", or a line for each node
// that is not.
type Report struct {
	OK    bool         `json:"ok"`
	Nodes []NodeReport `json:"nodes"`
}

// NodeReport is one node in a Report.
type NodeReport struct {
	Group string `json:"group"`
	Node  string `json:"node"`
	// State is one of those of group.Status.
	State string `json:"state"`
	OK    bool   `json:"ok"`
	// Reason says why the node is not OK; "" when it is.
	Reason string `json:"reason,omitempty"`
}

// Handler serves Live of the nodes at paths that end in /livez, Ready at those in /readyz, and 404 elsewhere.
func Handler(nodes ...Node) http.Handler {
	live, ready := Live(nodes...), Ready(nodes...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/livez"):
			live.ServeHTTP(w, r)
		case strings.HasSuffix(r.URL.Path, "/readyz"):
			ready.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// Live answers 200 when every node is live, else 503, at whatever path. It is for GET and HEAD. Without nodes it answers 200.
func Live(nodes ...Node) http.Handler { return handler{nodes, Node.Live} }

// Ready answers 200 when every node is ready, else 503, at whatever path. It is for GET and HEAD. Without nodes it answers 200.
func Ready(nodes ...Node) http.Handler { return handler{nodes, Node.Ready} }

type handler struct {
	nodes []Node
	ask   func(Node) error
}

// ServeHTTP answers one request.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	report := h.report()
	body, kind := report.text(), "text/plain; charset=utf-8"
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		kind = "application/json"
		body, _ = json.Marshal(report) // strings and truths: it cannot fail
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !report.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // who asked may have gone
	}
}

func (h handler) report() Report {
	report := Report{OK: true, Nodes: []NodeReport{}}
	for _, n := range h.nodes {
		s := n.Status()
		one := NodeReport{Group: s.Group, Node: s.Node, State: s.State, OK: true}
		if err := h.ask(n); err != nil {
			one.OK, one.Reason, report.OK = false, err.Error(), false
		}
		report.Nodes = append(report.Nodes, one)
	}
	return report
}

func (r Report) text() []byte {
	if r.OK {
		return []byte("ok\n")
	}
	var b strings.Builder
	for _, n := range r.Nodes {
		if !n.OK {
			fmt.Fprintf(&b, "group %s, node %s (%s): %s\n", n.Group, n.Node, n.State, strings.ReplaceAll(n.Reason, "\n", "; "))
		}
	}
	return []byte(b.String())
}

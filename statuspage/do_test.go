package statuspage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/rebalancer-go/rebalancer/admin"
)

func withToken(token string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
	}
}

func header(key, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(key, value) }
}

// bodies are requests for all changes.
func bodies() []string {
	var all []string
	for do := range doers() { // each by itself
		all = append(all, fmt.Sprintf(`{"group":"g","do":%q,"names":["a"],"node":"n1"}`, do))
	}
	return all
}

func TestNothingChangesWithoutTheToken(t *testing.T) {
	t.Parallel()
	type attempt struct {
		name   string
		change []func(*http.Request)
	}
	attempts := []attempt{
		{"no header", nil},
		{"another token", []func(*http.Request){withToken(testToken + "x")}},
		{"a part of it", []func(*http.Request){withToken(testToken[:8])}},
		{"an empty one", []func(*http.Request){withToken("")}},
		{"not as bearer", []func(*http.Request){withToken(""), header("Authorization", testToken)}},
		{"as basic", []func(*http.Request){withToken(""), func(r *http.Request) { r.SetBasicAuth("", testToken) }}},
		{"as a cookie", []func(*http.Request){header("Cookie", "token="+testToken), header("Content-Type", "application/json")}},
		{"in the address", []func(*http.Request){func(r *http.Request) { r.URL.RawQuery += "&token=" + testToken }}},
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "POSTT"}
	inWorld(t, func(c *Config) { c.Token = testToken }, func(w *world) {
		w.add("a")
		stop := w.node("n1")
		defer stop()
		settle()
		w.state("") // the page is looked at already
		before := w.entries()
		for _, r := range w.page.routes() {
			path := strings.ReplaceAll(r.path, "{$}", "")
			if path == "/api/state" {
				path += "?group=g"
			}
			for _, method := range methods {
				for _, body := range bodies() {
					for _, a := range attempts {
						rec := w.ask(method, path, body, a.change...)
						if path == "/api/do" && rec.Code < 400 {
							t.Errorf("%s %s with %s: %d", method, path, a.name, rec.Code)
						}
					}
				}
			}
		}
		if after := w.entries(); !reflect.DeepEqual(before, after) {
			t.Errorf("the store has changed:\n%v\n%v", before, after)
		}
	})
}

func TestNothingChangesByOtherSitesOrForms(t *testing.T) {
	t.Parallel()
	inWorld(t, func(c *Config) { c.Token = testToken }, func(w *world) {
		w.add("a")
		before := w.entries()
		for _, c := range []struct {
			code   int
			method string
			change func(*http.Request)
		}{
			{403, "POST", header("Sec-Fetch-Site", "cross-site")},
			{403, "POST", header("Sec-Fetch-Site", "same-site")},
			{403, "POST", header("Origin", "https://elsewhere.example")},
			{415, "POST", header("Content-Type", "application/x-www-form-urlencoded")},
			{415, "POST", header("Content-Type", "text/plain")},
			{405, "GET", header("X", "")},
			{405, "PUT", header("X", "")},
		} {
			for _, body := range bodies() {
				if rec := w.ask(c.method, "/api/do", body, withToken(testToken), c.change); rec.Code != c.code {
					t.Errorf("%+v: %d %s", c, rec.Code, rec.Body)
				}
			}
		}
		for _, body := range []string{"", "{", `{"group":"g","do":"pause","names":["a"],"more":1}`, `{"group":"g","do":"delete","names":["a"]}`, `{"do":7}`} {
			if rec := w.ask("POST", "/api/do", body, withToken(testToken)); rec.Code != 400 {
				t.Errorf("%q: %d %s", body, rec.Code, rec.Body)
			}
		}
		if after := w.entries(); !reflect.DeepEqual(before, after) {
			t.Errorf("the store has changed:\n%v\n%v", before, after)
		}
	})
}

func TestAPageWithoutATokenChangesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		before := w.entries()
		for _, token := range []string{"", testToken} {
			for _, body := range bodies() {
				if rec := w.ask("POST", "/api/do", body, withToken(token)); rec.Code != http.StatusForbidden {
					t.Errorf("%d %s", rec.Code, rec.Body)
				}
			}
		}
		if after := w.entries(); !reflect.DeepEqual(before, after) {
			t.Errorf("the store has changed:\n%v\n%v", before, after)
		}
	})
}

func TestChangesWithTheToken(t *testing.T) {
	t.Parallel()
	inWorld(t, func(c *Config) { c.Token = testToken }, func(w *world) {
		w.add("a", "b")
		stop, stop2 := w.node("n1"), w.node("n2")
		defer stop()
		defer stop2()
		settle()
		other := map[string]string{"n1": "n2", "n2": "n1"}[resourceOf(w.state("").Resources, "a").Owner]
		for _, c := range []struct {
			do, names, node string
			seen            func(shownState) bool
		}{
			{"pause", `"a"`, "", func(s shownState) bool { return resourceOf(s.Resources, "a").State == admin.StatePaused }},
			{"pause-keep", `"a"`, "", func(s shownState) bool { return resourceOf(s.Resources, "a").Paused == admin.PausedKept }},
			{"resume", `"a"`, "", func(s shownState) bool { return resourceOf(s.Resources, "a").Paused == "" }},
			{"pin", `"a"`, other, func(s shownState) bool { return resourceOf(s.Resources, "a").Pinned == other }},
			{"unpin", `"a"`, "", func(s shownState) bool { return resourceOf(s.Resources, "a").Pinned == "" }},
			{"move", `"a"`, "n1", func(s shownState) bool { return resourceOf(s.Resources, "a").Owner == "n1" }},
			{"drain", `"n1"`, "", func(s shownState) bool { return resourceOf(s.Resources, "a").Owner == "n2" }},
			{"undrain", `"n1"`, "", func(s shownState) bool { return !s.Nodes[0].Drained }},
			{"pause-group", ``, "", func(s shownState) bool { return s.Head.Paused == admin.PausedReleased }},
			{"resume-group", ``, "", func(s shownState) bool { return s.Head.Paused == "" }},
			{"step-down", ``, "", func(s shownState) bool { return strings.Contains(kinds(s.History), admin.KindStepDown) }},
		} {
			rec := w.ask("POST", "/api/do", fmt.Sprintf(`{"group":"g","do":%q,"names":[%s],"node":%q}`, c.do, c.names, c.node), withToken(testToken))
			var got struct{ Changed []string }
			if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != 200 || len(got.Changed) != 1 && c.do != "move" {
				t.Errorf("%s: %d %s", c.do, rec.Code, rec.Body)
			}
			settle()
			if s := w.state(""); !c.seen(s) {
				t.Errorf("after %s: %+v", c.do, s)
			}
		}
		if h := w.state("").History; !strings.Contains(actors(h), "status page") {
			t.Errorf("the history does not tell who: %+v", h)
		}
	})
}

func actors(h []past) string {
	var all []string
	for _, p := range h {
		all = append(all, p.Actor)
	}
	return strings.Join(all, "|")
}

func kinds(h []past) string {
	var all []string
	for _, p := range h {
		all = append(all, p.Kind)
	}
	return strings.Join(all, "|")
}

func resourceOf(list []resource, name string) resource {
	for _, r := range list {
		if r.Name == name {
			return r
		}
	}
	return resource{}
}

func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	inWorld(t, func(c *Config) { c.Token = testToken }, func(w *world) {
		for body, code := range map[string]int{
			`{"group":"other","do":"drain","names":["n"]}`:          http.StatusNotFound,
			`{"group":"g","do":"drain","names":["a/b"]}`:            http.StatusBadRequest,
			`{"group":"g","do":"drain"}`:                            http.StatusBadRequest,
			`{"group":"g","do":"move","names":["a"],"node":"nope"}`: http.StatusConflict,
		} {
			if rec := w.ask("POST", "/api/do", body, withToken(testToken)); rec.Code != code || !strings.Contains(rec.Body.String(), "error") {
				t.Errorf("%s: %d %s, want %d", body, rec.Code, rec.Body, code)
			}
		}
	})
}

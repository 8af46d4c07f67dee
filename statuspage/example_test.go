package statuspage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/rebalancer-go/rebalancer/backends/memory"
	"github.com/rebalancer-go/rebalancer/statuspage"
)

// A service shows its groups below a path of its own.
func Example() {
	store := memory.New() // that of the service's groups
	page, err := statuspage.New(statuspage.Config{Store: store})
	if err != nil {
		panic(err)
	}
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/groups/", http.StripPrefix("/groups", page))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/groups/", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

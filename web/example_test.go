package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/web"
)

// A server of your own serves the dashboard through the API: httpapi.New(httpapi.Options{Dashboard: web.Handler()}).
func ExampleHandler() {
	w := httptest.NewRecorder()
	web.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/runs/run_1", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

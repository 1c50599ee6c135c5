package client

import (
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/wire"
)

// TestNoKeysAcceptNoItems verifies that only AcceptAllItems sends a request that accepts all items.
func TestNoKeysAcceptNoItems(t *testing.T) {
	var body string
	c := dial(t, "http://holdfast.invalid", Options{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		body = r.URL.Path + " " + string(b)
		return answer(200, "application/json", `{"accepted":3}`), err
	})}})
	for want, call := range map[string]func() (wire.Accepted, error){
		`{"items":["x","y"]}`: func() (wire.Accepted, error) { return c.AcceptItems(t.Context(), "b", []string{"x", "y"}) },
		`{"items":[]}`:        func() (wire.Accepted, error) { return c.AcceptItems(t.Context(), "b", nil) },
		`{}`:                  func() (wire.Accepted, error) { return c.AcceptAllItems(t.Context(), "b") },
	} {
		if got, err := call(); err != nil || got.Accepted != 3 || body != "/api/v1/batches/b/finalize "+want+"\n" {
			t.Errorf("sent %q and got %+v, %v, want the body %s", body, got, err, want)
		}
	}
}

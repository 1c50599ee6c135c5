package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
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

// TestNoStreamsAreNotAllStreams verifies that a repair of an empty list of streams is refused. If the list were not sent, the repair would
// select all streams.
func TestNoStreamsAreNotAllStreams(t *testing.T) {
	c := dial(t, serve(t, httpapi.Options{NoKeys: true}).url, Options{})
	for name, repair := range map[string]func(context.Context, string, wire.Repair, ...Option) (wire.Repaired, error){
		"unblock": c.UnblockReactions, "reset": c.ResetReactions, "skip": c.SkipReactions,
	} {
		if done, err := repair(t.Context(), "*", wire.Repair{Streams: []string{}}); !errors.Is(err, fault.Of(fault.Validation)) {
			t.Errorf("%s of no streams: got %+v, %v, want VALIDATION_ERROR", name, done, err)
		}
		if _, err := repair(t.Context(), "*", wire.Repair{}); err != nil {
			t.Errorf("%s of all streams: got %v", name, err)
		}
	}
}

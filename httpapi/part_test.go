package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/testkit"
)

// TestAnAPIIsAPart verifies that an API without an engine refuses requests, that it belongs to one engine, and that APIs of
// one engine have the same keys: otherwise one of them could not decrypt the secrets of the other.
func TestAnAPIIsAPart(t *testing.T) {
	api, second := httpapi.New(elsewhere), httpapi.New(elsewhereWithKeys)
	if got := statusOf(api); got != http.StatusServiceUnavailable {
		t.Errorf("without an engine: got status %d, want 503", got)
	}
	holdfasttest.Open(t, api, second)
	if got := statusOf(api); got != http.StatusOK {
		t.Errorf("got status %d, want 200", got)
	}
	open := func(parts ...holdfast.Part) error {
		e, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, parts...)
		if err == nil {
			t.Cleanup(func() { _ = e.Close() })
		}
		return err
	}
	testkit.WantCode(t, open(api), fault.Conflict)
	testkit.WantCode(t, open(httpapi.New(elsewhere), httpapi.New(httpapi.Options{})), fault.Validation)
}

func statusOf(api *httpapi.API) int {
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/healthz", nil))
	return w.Code
}

package idem_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCrashOfAHandler verifies that a user can test a handler behind the middleware against crashes: Settle moves the clock
// to the end of the lease on a key that a crash left behind, and the repeated request appends once.
func TestCrashOfAHandler(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			h := idem.Middleware(hf, idem.Options{SharedKeys: true})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				err := idem.Commit(r.Context(), func(ctx context.Context, tx holdfast.Tx) error {
					_, err := stream.Append(ctx, tx, "s", stream.Any, stream.Event{Name: "a"})
					return err
				})
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
				}
			}))
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/pay", nil)
			r.Header.Set("Idempotency-Key", "k")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= http.StatusBadRequest {
				return fmt.Errorf("status %d: %s", w.Code, w.Body)
			}
			return nil
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0))
			if err != nil || len(all) != 1 {
				return fmt.Errorf("%d events, want one: %w", len(all), err)
			}
			return nil
		},
	})
}

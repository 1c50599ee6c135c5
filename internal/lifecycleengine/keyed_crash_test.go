package lifecycleengine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/store"
)

// fxKeyed is a client that sends a request under a key until it has a response, to a user's
// handler that fires a step, with a crash at any point.
type fxKeyed struct{ fxCrash }

// pay is the user's handler.
func (c *fxKeyed) pay(hf *holdfast.Engine) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := registryOf(engine.Of(hf)).boundTo("crash").fire(r.Context(), "x", "close", "admin", FireOptions{})
		if f, ok := errors.AsType[*fault.Error](err); ok {
			outcome, _ := f.Fields["outcome"].(string)
			w.Header().Set("Outcome", outcome)
			http.Error(w, string(f.Code), f.Code.Status())
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s %d", e.Status, e.Version)
	})
}

// send sends the request once. A refusal of the step is not a response to the only client that
// requested it: an earlier execution must have come first.
func (c *fxKeyed) send(ctx context.Context, hf *holdfast.Engine) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("no response: %v", p) // as from a server
		}
	}()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/pay", nil).WithContext(ctx)
	r.Header.Set("Idempotency-Key", "k")
	idem.Middleware(hf, idem.Options{SharedKeys: true})(c.pay(hf)).ServeHTTP(w, r)
	body := strings.TrimSpace(w.Body.String())
	switch {
	case w.Code == http.StatusOK && strings.HasPrefix(body, "closed "):
		return nil
	case body == string(fault.InvalidTransition) || body == string(fault.ClaimFailed) || body == string(fault.Concurrency):
		c.note(ctx, "wrong", "request was refused because of its own step: "+body)
		return nil
	case w.Header().Get("Outcome") == "uncertain" && !c.person:
		return nil
	}
	return fmt.Errorf("got status %d, body %s", w.Code, body)
}

// do runs the client; between its attempts the leases expire and the background loops run.
func (c *fxKeyed) do(ctx context.Context, hf *holdfast.Engine) error {
	if _, err := entities.Get(ctx, engine.Of(hf), "crash", "x"); fault.CodeOf(err) == fault.NotFound {
		if _, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "crash", ID: "x", Status: "open", Data: []byte(`{}`)}); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	err := c.send(ctx, hf)
	if err == nil {
		return nil
	}
	if failed := store.Shift(ctx, engine.Of(hf), time.Minute); failed != nil { // the lease of the request
		return errors.Join(err, failed)
	}
	return errors.Join(err, c.settle(ctx, hf))
}

// check sends the request once more: it gets a response, and nothing is executed again.
func (c *fxKeyed) check(ctx context.Context, hf *holdfast.Engine) error {
	before := len(c.Keys(ctx, "began"))
	err := c.do(ctx, hf)
	if err != nil { // its response was not recorded, and its lease has expired by now
		err = c.do(ctx, hf)
	}
	if err == nil && len(c.Keys(ctx, "began")) != before {
		err = errors.New("a request with a stored response began another operation")
	}
	return errors.Join(err, c.fxCrash.check(ctx, hf))
}

const fxUnclaimedConfig = `{
  "workflow": "crash", "owning_module": "fx", "initial_status": "open", "status_types": ["open", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", "action": "Close"}]
}`

// TestCrashOfAKeyedStep verifies, at every point and for every fault, that a request under a
// key to a handler that fires a step is completed: the step is executed once, with its body's
// commits, and the repeated request returns its result and is never refused. No effect is called
// twice unless its policy is to retry, and then under the same key.
func TestCrashOfAKeyedStep(t *testing.T) {
	for name, c := range map[string]*fxKeyed{
		"transactional": {fxCrash{safety: lifecycleconfig.Transactional, ends: []string{"closed free"}, body: fxOK}},
		"unclaimed":     {fxCrash{config: fxUnclaimedConfig, safety: lifecycleconfig.Transactional, ends: []string{"closed free"}, body: fxOK}},
		"probe":         {fxCrash{safety: lifecycleconfig.Journaled, ends: []string{"closed free"}, body: fxProbe}},
		"retry":         {fxCrash{safety: lifecycleconfig.Journaled, repeats: true, ends: []string{"closed free"}, body: fxRetry}},
		"hold":          {fxCrash{safety: lifecycleconfig.Journaled, ends: []string{"closed free", "closing uncertain"}, body: fxHold}},
		"opaque":        {fxCrash{safety: lifecycleconfig.Opaque, ends: []string{"closed free", "closing uncertain"}, body: fxOpaque}},
		"resolved":      {fxCrash{safety: lifecycleconfig.Journaled, person: true, ends: []string{"closed free"}, body: fxHold}},
	} {
		c.anew = true
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Parts: c.parts, Do: c.do, Recover: c.settle, Check: c.check, Pairs: true})
	}
}

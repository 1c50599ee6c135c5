package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// parcels is a published lifecycle whose handlers run elsewhere.
const parcels = `{
  "workflow": "parcel", "owning_module": "shipping", "initial_status": "packed", "status_types": ["packed", "sending", "sent", "lost"], "janitor": {"stuck_after": "5m"},
  "steps": [
    {"step_id": 1, "step_key": "send", "status": "packed", "successful_claim_state": ["sending", "packed"], "successful_state": "sent",
     "action": "Send", "validation": "MaySend", "success_after_effect": "Tell"},
    {"step_id": 2, "step_key": "lose", "status": "sent", "successful_state": "lost"}
  ]
}`

// remoteHandlers answers calls of handlers that run elsewhere.
type remoteHandlers struct {
	mu        sync.Mutex
	calls     []lifecycleengine.RemoteCall
	answer    map[string]func(lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error)
	delivered chan string
}

func newRemoteHandlers() *remoteHandlers {
	return &remoteHandlers{answer: map[string]func(lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error){}, delivered: make(chan string, 100)}
}

func (f *remoteHandlers) call(ctx context.Context, c lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error) {
	f.mu.Lock()
	f.calls = append(f.calls, c)
	answer := f.answer[c.To.Name]
	f.mu.Unlock()
	if c.Kind == "afterEffect" {
		f.delivered <- c.Entity.ID
	}
	if answer == nil {
		return lifecycleengine.RemoteAnswer{}, nil
	}
	return answer(c)
}

func (f *remoteHandlers) count(handler string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.To.Name == handler {
			n++
		}
	}
	return n
}

func (f *remoteHandlers) set(handler string, answer func(lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer[handler] = answer
}

func declare(t *testing.T, ctx context.Context, e *holdfast.Engine, safety string, names ...string) {
	t.Helper()
	for _, name := range names {
		err := e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := remotehandler.Put(ctx, store.TxOf(tx), remotehandler.Handler{Name: name, Kind: "http", URL: "https://example.com/" + name, Safety: safety, OnUnknown: "hold"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// eachPublished runs a test with an engine that publishes lifecycles, on both databases; other opens
// another node on the same database.
func eachPublished(t *testing.T, f func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, other func() *holdfast.Engine)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) {
		there := newRemoteHandlers()
		open := func() *holdfast.Engine {
			return holdfasttest.OpenOn(t, databaseAt(db), lifecycle.Published(there.call))
		}
		f(t, open(), there, open)
	})
}

func put(t *testing.T, ctx context.Context, e *holdfast.Engine, config string) lifecycleengine.Put {
	t.Helper()
	p, err := lifecycleengine.PutConfig(ctx, engine.Of(e), "parcel", []byte(config), false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func parcelsOf(t *testing.T, ctx context.Context, e *holdfast.Engine) *lifecycleengine.Lifecycle {
	t.Helper()
	l, err := lifecycleengine.Named(ctx, engine.Of(e), "parcel")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Verifies that a published lifecycle works like one of a program: the remote handlers are called, the result
// of the action is merged into the data, and the after-effect is delivered, on any node.
func TestALifecycleThatIsPut(t *testing.T) {
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, other func() *holdfast.Engine) {
		ctx := holdfast.InWorkspace(t.Context(), "acme")
		declare(t, ctx, e, "transactional", "Send", "MaySend", "Tell")
		if p := put(t, ctx, e, parcels); !p.Created || p.Revision == 0 {
			t.Errorf("put returned %+v, want created with a revision", p)
		}
		if p := put(t, ctx, e, parcels); p.Created {
			t.Errorf("second put returned %+v, want not created", p)
		}
		far.set("Send", func(c lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error) {
			if c.Operation == "" || c.Requester != "admin" || c.StepKey != "send" || string(c.Input) != `{"by":"van"}` || c.Entity.Status != "sending" {
				t.Errorf("got call %+v", c)
			}
			return lifecycleengine.RemoteAnswer{State: []byte(`{"label":"L1","grams":null}`)}, nil
		})
		node := other()
		l := parcelsOf(t, ctx, node)
		if _, err := l.CreateAt(ctx, engine.Of(node), "p1", "", []byte(`{"grams":9007199254740993,"to":"x"}`), "me"); err != nil {
			t.Fatal(err)
		}
		got, err := l.Fire(ctx, engine.Of(node), "p1", "send", "admin", lifecycleengine.FireOptions{Input: []byte(`{"by":"van"}`)})
		if err != nil || got.Status != "sent" {
			t.Fatalf("fire returned %+v, %v, want status sent", got, err)
		}
		var data map[string]any
		if err := json.Unmarshal(got.Data, &data); err != nil || len(data) != 2 || data["label"] != "L1" || data["to"] != "x" {
			t.Errorf("got data %s", got.Data)
		}
		testkit.Run(t, e)
		if id := <-far.delivered; id != "p1" {
			t.Errorf("the after-effect got entity %s, want p1", id)
		}
		if far.count("MaySend") != 1 || far.count("Send") != 1 {
			t.Errorf("MaySend was called %d and Send %d times, want once each", far.count("MaySend"), far.count("Send"))
		}
	})
}

// Verifies that other workspaces know nothing of it, and that each may have its own
// under the same name.
func TestALifecycleThatIsPutIsOfItsWorkspace(t *testing.T) {
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, _ func() *holdfast.Engine) {
		a, b := holdfast.InWorkspace(t.Context(), "a"), holdfast.InWorkspace(t.Context(), "b")
		declare(t, a, e, "transactional", "Send", "MaySend", "Tell")
		put(t, a, e, parcels)
		if _, err := lifecycleengine.Named(b, engine.Of(e), "parcel"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("in another workspace: got %v, want ErrNotFound", err)
		}
		_, err := lifecycleengine.PutConfig(b, engine.Of(e), "parcel", []byte(parcels), false)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Validation || len(f.Violations) == 0 {
			t.Errorf("handlers of another workspace are accepted: %v", err)
		}
		declare(t, b, e, "transactional", "Send", "MaySend", "Tell")
		put(t, b, e, strings.Replace(parcels, `"sending"`, `"leaving"`, 2))
		if got := parcelsOf(t, b, e).Statuses(); got[1] != "leaving" {
			t.Errorf("workspace b has statuses %v", got)
		}
		if got := parcelsOf(t, a, e).Statuses(); got[1] != "sending" {
			t.Errorf("workspace a has statuses %v", got)
		}
		if names, err := lifecycleengine.Names(b, engine.Of(e)); err != nil || len(names) != 1 {
			t.Errorf("workspace b lists lifecycles %v, %v, want one", names, err)
		}
	})
}

// Verifies that a published config is checked against all rules at once, and that a dry run changes nothing.
func TestWhatIsPutIsJudged(t *testing.T) {
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, _ *remoteHandlers, _ func() *holdfast.Engine) {
		ctx := t.Context()
		bad := strings.NewReplacer(`"janitor": {"stuck_after": "5m"},`, ``, `"workflow": "parcel"`, `"workflow": "other"`).Replace(parcels)
		_, err := lifecycleengine.PutConfig(ctx, engine.Of(e), "parcel", []byte(bad), false)
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Fatal(err)
		}
		var rules []string
		for _, v := range f.Violations {
			rules = append(rules, v.Rule)
		}
		for _, want := range []string{"name", "coverage"} {
			if !strings.Contains(fmt.Sprint(rules), want) {
				t.Errorf("got rules %v, want %s among them", rules, want)
			}
		}
		if len(f.Violations) < 5 { // and three handlers that nobody declared
			t.Errorf("got violations %+v, want at least 5", f.Violations)
		}
		declare(t, ctx, e, "transactional", "Send", "MaySend", "Tell")
		if _, err := lifecycleengine.PutConfig(ctx, engine.Of(e), "parcel", []byte(parcels), true); err != nil {
			t.Errorf("validate only: %v", err)
		}
		if _, err := lifecycleengine.Named(ctx, engine.Of(e), "parcel"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("the validated config was stored: %v", err)
		}
		if _, err := lifecycleengine.PutConfig(ctx, engine.Of(e), "parcel", []byte(`{"workflow"`), false); fault.CodeOf(err) != fault.Validation {
			t.Errorf("truncated document: got %v, want a validation error", err)
		}
	})
}

// Verifies that a change of a config or of a handler counts on every node from its
// next write on, and that a config cannot strand anybody.
func TestAChangeOfWhatWasPutCountsEverywhere(t *testing.T) {
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, other func() *holdfast.Engine) {
		ctx := t.Context()
		node := other()
		declare(t, ctx, e, "transactional", "Send", "MaySend", "Tell", "Better")
		put(t, ctx, e, parcels)
		l := parcelsOf(t, ctx, node)
		for _, id := range []string{"p1", "p2", "p3"} {
			if _, err := l.CreateAt(ctx, engine.Of(node), id, "", []byte(`{}`), "me"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Fire(ctx, engine.Of(node), "p1", "send", "admin", lifecycleengine.FireOptions{}); err != nil {
			t.Fatal(err)
		}
		put(t, ctx, e, strings.Replace(parcels, `"action": "Send"`, `"action": "Better"`, 1))
		// This node may still use its cached config once: the write refreshes it.
		if _, err := parcelsOf(t, ctx, node).Fire(ctx, engine.Of(node), "p2", "send", "admin", lifecycleengine.FireOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := parcelsOf(t, ctx, node).Fire(ctx, engine.Of(node), "p3", "send", "admin", lifecycleengine.FireOptions{}); err != nil {
			t.Fatal(err)
		}
		if far.count("Better") == 0 {
			t.Error("the other node still uses the old config")
		}
		_, err := lifecycleengine.PutConfig(ctx, engine.Of(e), "parcel", []byte(strings.NewReplacer(`, "sent", "lost"]`, `, "gone"]`, `"successful_state": "sent"`, `"successful_state": "gone"`,
			`{"step_id": 2, "step_key": "lose", "status": "sent", "successful_state": "lost"}`, `{"step_id": 2, "step_key": "lose", "status": "packed", "successful_state": "gone"}`).Replace(parcels)), false)
		if fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), "does not fit") {
			t.Errorf("config that strands entities: got %v, want a validation error", err)
		}
	})
}

// Verifies that an answer that was not heard is not guessed: the claim of an opaque
// handler waits for a person, that of a transactional one goes back.
func TestAnAnswerThatIsNotHeard(t *testing.T) {
	for safety, want := range map[string]string{"opaque": "sending uncertain", "transactional": "packed", "": "packed"} {
		t.Run("safety "+safety, func(t *testing.T) {
			eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, _ func() *holdfast.Engine) {
				ctx := t.Context()
				declare(t, ctx, e, "transactional", "MaySend", "Tell")
				declare(t, ctx, e, safety, "Send")
				put(t, ctx, e, parcels)
				far.set("Send", func(lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error) {
					return lifecycleengine.RemoteAnswer{}, fmt.Errorf("cut off: %w", lifecycleengine.ErrNoResponse)
				})
				l := parcelsOf(t, ctx, e)
				if _, err := l.CreateAt(ctx, engine.Of(e), "p1", "", []byte(`{}`), "me"); err != nil {
					t.Fatal(err)
				}
				_, err := l.Fire(ctx, engine.Of(e), "p1", "send", "admin", lifecycleengine.FireOptions{})
				testkit.WantCode(t, err, fault.ActionFailed)
				now, err := l.Get(ctx, engine.Of(e), "p1")
				if err != nil {
					t.Fatal(err)
				}
				got := now.Status
				if now.Claimed != nil {
					got += " " + now.Claimed.Phase
				}
				if got != want {
					t.Errorf("got status %s, want %s", got, want)
				}
			})
		})
	}
}

// Verifies that a program and the API do not use each other's lifecycles.
func TestAProgramAndTheAPIKeepApart(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		there := newRemoteHandlers()
		own := lifecycle.MustParse[json.RawMessage]([]byte(parcels)).
			Action("Send", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil }, lifecycle.Transactional()).
			Validation("MaySend", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil }).
			AfterEffect("Tell", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil })
		program := holdfasttest.OpenOn(t, databaseAt(db), own, lifecycle.Published(there.call))
		server := holdfasttest.OpenOn(t, databaseAt(db), lifecycle.Published(there.call))
		for _, e := range []*holdfast.Engine{program, server} {
			declare(t, t.Context(), e, "transactional", "Send", "MaySend", "Tell")
			_, err := lifecycleengine.PutConfig(t.Context(), engine.Of(e), "parcel", []byte(parcels), false)
			testkit.WantCode(t, err, fault.Conflict)
		}
		if _, err := lifecycleengine.Named(t.Context(), engine.Of(server), "parcel"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("the server serves the program's lifecycle: %v", err)
		}
		ctx := holdfast.InWorkspace(t.Context(), "acme") // nor under the same name elsewhere
		declare(t, ctx, server, "transactional", "Send", "MaySend", "Tell")
		_, err := lifecycleengine.PutConfig(ctx, engine.Of(server), "parcel", []byte(parcels), false)
		testkit.WantCode(t, err, fault.Conflict)
		other := strings.Replace(parcels, `"workflow": "parcel"`, `"workflow": "letter"`, 1)
		if _, err := lifecycleengine.PutConfig(ctx, engine.Of(server), "letter", []byte(other), false); err != nil {
			t.Fatal(err)
		}
		late := lifecycle.MustParse[json.RawMessage]([]byte(other)).
			Action("Send", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil }, lifecycle.Transactional()).
			Validation("MaySend", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil }).
			AfterEffect("Tell", func(context.Context, *lifecycle.Act[json.RawMessage]) error { return nil })
		_, err = holdfast.Open(t.Context(), databaseAt(db), holdfast.Config{Log: slog.New(slog.DiscardHandler)}, late)
		testkit.WantCode(t, err, fault.Conflict)
	})
}

// Verifies that a step whose handler was taken away is refused, and nothing of it is
// taken for done.
func TestAStepWithoutItsHandlerIsRefused(t *testing.T) {
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, _ func() *holdfast.Engine) {
		ctx := t.Context()
		declare(t, ctx, e, "transactional", "Send", "MaySend", "Tell")
		put(t, ctx, e, parcels)
		l := parcelsOf(t, ctx, e)
		if _, err := l.CreateAt(ctx, engine.Of(e), "p1", "", []byte(`{}`), "me"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Send", "MaySend"} {
			err := e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := remotehandler.Delete(ctx, store.TxOf(tx), name)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parcelsOf(t, ctx, e).Fire(ctx, engine.Of(e), "p1", "send", "admin", lifecycleengine.FireOptions{}); err == nil {
				t.Errorf("fire without %s succeeded", name)
			}
			if now, err := l.Get(ctx, engine.Of(e), "p1"); err != nil || now.Status != "packed" || now.Claimed != nil {
				t.Errorf("without %s: got %+v, %v, want status packed, unclaimed", name, now, err)
			}
			if n := far.count("Send"); n != 0 {
				t.Errorf("the action was called %d times, want 0", n)
			}
			declare(t, ctx, e, "transactional", name)
		}
	})
}

// Verifies that an opaque handler which has acted, and answers what cannot be used, is
// not taken back.
func TestAnAnswerThatCannotBeUsed(t *testing.T) {
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, _ func() *holdfast.Engine) {
		ctx := t.Context()
		declare(t, ctx, e, "transactional", "MaySend", "Tell")
		declare(t, ctx, e, "opaque", "Send")
		put(t, ctx, e, parcels)
		far.set("Send", func(lifecycleengine.RemoteCall) (lifecycleengine.RemoteAnswer, error) {
			return lifecycleengine.RemoteAnswer{State: []byte(`5`)}, nil
		})
		l := parcelsOf(t, ctx, e)
		if _, err := l.CreateAt(ctx, engine.Of(e), "p1", "", []byte(`{}`), "me"); err != nil {
			t.Fatal(err)
		}
		_, err := l.Fire(ctx, engine.Of(e), "p1", "send", "admin", lifecycleengine.FireOptions{})
		testkit.WantCode(t, err, fault.ActionFailed)
		if now, err := l.Get(ctx, engine.Of(e), "p1"); err != nil || now.Claimed == nil || now.Claimed.Phase != "uncertain" {
			t.Errorf("got %+v, %v, want it uncertain", now, err)
		}
	})
}

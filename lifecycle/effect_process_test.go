package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

const (
	fxChildVar = "HOLDFAST_FX_CHILD" // what a child process does
	fxDBVar    = "HOLDFAST_FX_DB"
)

func fxDatabase(db string) holdfast.Database {
	if path, ok := strings.CutPrefix(db, "sqlite:"); ok {
		return sqlite.File(path)
	}
	return postgres.URL(db)
}

// TestFxChild is no test, but a process of its own, which the tests below kill. In
// any other process it does nothing.
func TestFxChild(t *testing.T) {
	what := os.Getenv(fxChildVar)
	if what == "" {
		return
	}
	fmt.Println("ended:", fxChild(t, what, fxDatabase(os.Getenv(fxDBVar))))
	os.Exit(0)
}

// fxStop prints a line and waits to be killed.
func fxStop(said ...any) {
	fmt.Println(said...)
	select {}
}

// fxChild fires the step of the entity "b" and stops after its effect or, depending on
// what, after the step is settled, or in its after-effect.
func fxChild(t *testing.T, what string, db holdfast.Database) error {
	ctx := context.Background()
	w := newFxWorld(t)
	p := newFxPost(w)
	w.does("b", func(ctx context.Context, _ *fxAct) error {
		key := ""
		_, err := holdfast.Effect(ctx, "card", func(_ context.Context, k string) (int, error) { key = k; return 7, nil }, w.policy(what, nil)...)
		fxStop("called", key, err)
		return err
	})
	e, err := holdfast.Open(ctx, db, holdfast.Config{Log: slog.New(slog.DiscardHandler)}, w.Lifecycle, p.l)
	if err != nil {
		return err
	}
	w.e = e
	switch what {
	case "settled", "after":
		if _, err := p.l.Create(ctx, e, "b", bill{}); err != nil {
			return err
		}
		if _, err := p.l.Fire(ctx, e, "b", "close", "admin"); err != nil {
			return err
		}
		if what == "settled" {
			fxStop("settled", p.operation("b"))
		}
		p.stop = func() { fxStop("in", p.operation("b")) }
		return e.Run(ctx)
	}
	if _, err := w.Create(ctx, e, "b", bill{}); err != nil {
		return err
	}
	_, err = w.Fire(ctx, e, "b", "charge", "admin")
	return err
}

// policy returns the options of a policy; a probe returns the result of asked.
func (w *fxWorld) policy(name string, asked func(key string) (int, bool, error)) []holdfast.EffectOption {
	switch name {
	case "retry":
		return []holdfast.EffectOption{holdfast.OnUnknownRetry()}
	case "probe":
		return []holdfast.EffectOption{holdfast.OnUnknownProbe(func(_ context.Context, key string) (int, bool, error) {
			w.call("asked " + key)
			return asked(key)
		})}
	case "recorded":
		return []holdfast.EffectOption{holdfast.RecordNow()}
	}
	return nil
}

// fxKilled starts a child process, waits for a line that begins with a given word, returns the rest of that
// line, and kills the process (SIGKILL).
func fxKilled(t *testing.T, db, what, word string) (rest string) {
	t.Helper()
	c := testkit.Start(t, testkit.Self("TestFxChild", fxChildVar+"="+what, fxDBVar+"="+db))
	for found := false; !found; {
		rest, found = strings.CutPrefix(c.Next(), word+" ")
	}
	c.Kill()
	return rest
}

// fxProcesses runs a test on both databases, which other processes may open.
func fxProcesses(t *testing.T, f func(*fxPost, string)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) {
		w := newFxWorld(t)
		p := newFxPost(w)
		w.open(fxDatabase(db), p.l)
		f(p, db)
	})
}

// TestKilledAfterTheEffect verifies the outcome of an effect whose process was killed between the call and
// the settle, for each policy. Under hold it is not called again, and the operation is uncertain. Under probe
// the remote system is asked, and the effect is not called again. Under retry it is called again with the
// same key. A recorded result is used.
func TestKilledAfterTheEffect(t *testing.T) {
	for policy, c := range map[string]struct {
		status, phase string
		calls         func(key string) []string
	}{
		"hold":     {"charging", "uncertain", func(string) []string { return nil }},
		"probe":    {"charged", "", func(key string) []string { return []string{"asked " + key} }},
		"retry":    {"charged", "", func(key string) []string { return []string{key} }},
		"recorded": {"charged", "", func(string) []string { return nil }},
	} {
		t.Run(policy, func(t *testing.T) {
			fxProcesses(t, func(p *fxPost, db string) {
				said := fxKilled(p.T, db, policy, "called")
				key, _, _ := strings.Cut(said, " ")
				p.does("b", func(ctx context.Context, _ *fxAct) error {
					r, err := holdfast.Effect(ctx, "card", func(_ context.Context, k string) (int, error) { p.call(k); return 7, nil },
						p.policy(policy, func(k string) (int, bool, error) { return 7, k == key, nil })...)
					if err == nil && r != 7 {
						p.Errorf("the effect returned %d, want 7", r)
					}
					return err
				})
				if err := p.fxWorld.fire(p.Context(), "b", "charge"); !errors.Is(err, holdfast.ErrClaimFailed) {
					p.Errorf("fire while the dead node holds the claim: got %v, want ErrClaimFailed", err)
				}
				holdfasttest.Advance(p, p.e, time.Hour)
				engine.Of(p.e).Round(p.Context())
				if o := p.is("b", "charging", "due"); key != o.ID+"/card/0" || o.Crashes != 1 {
					p.Errorf("got key %s, operation %+v", key, o)
				}
				p.resumed("b")
				p.is("b", c.status, lifecycle.Phase(c.phase))
				if calls := p.called(); !slices.Equal(calls, c.calls(key)) {
					p.Errorf("got calls %q, want %q", calls, c.calls(key))
				}
			})
		})
	}
}

// TestKilledBeforeTheAfterEffect verifies that, if a process is killed after it settled a step or while the
// after-effect ran, another node delivers the after-effect under the same operation, and its writes are
// applied once.
func TestKilledBeforeTheAfterEffect(t *testing.T) {
	for what, word := range map[string]string{"settled": "settled", "after": "in"} {
		t.Run(what, func(t *testing.T) {
			fxProcesses(t, func(p *fxPost, db string) {
				operation := fxKilled(p.T, db, what, word)
				holdfasttest.Advance(p, p.e, time.Hour)
				engine.Of(p.e).Round(p.Context())
				holdfasttest.Advance(p, p.e, time.Hour)
				p.waitFor(1)
				if got := p.got(); !slices.Equal(got, []string{"Mail close of b by admin: " + operation}) {
					p.Errorf("got deliveries %q, want operation %s", got, operation)
				}
				if credits := p.credits(); !slices.Equal(credits, []string{"b/Mail"}) {
					p.Errorf("got credits %q, want b/Mail", credits)
				}
			})
		})
	}
}

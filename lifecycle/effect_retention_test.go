package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// TestEffectsOfEndedOperationsAreDeleted verifies that effects are deleted after their retention, in every workspace. Those of an
// operation that has not ended stay, however old they are, and those of which a late call is not acknowledged.
func TestEffectsOfEndedOperationsAreDeleted(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		const keep = 2 * time.Hour
		prune := func(want int) {
			w.Helper()
			n, more, err := effects.Prune(w.Context(), engine.Of(w.e), keep, 1000)
			if n != want || more || err != nil {
				w.Fatalf("%d effects were deleted, more %t: %v, want %d", n, more, err, want)
			}
		}
		// A late call, and an operation that a person has resolved meanwhile.
		l := &late{fxWorld: w, inside: make(chan struct{}), goOn: make(chan struct{}), first: true}
		w.make("b", l.body)
		fired := make(chan error, 1)
		go func() { fired <- w.fire(context.Background(), "b", "charge") }()
		<-l.inside
		contradicted := w.get("b").Claimed.ID
		holdfasttest.Advance(w, w.e, time.Hour)
		engine.Of(w.e).Round(w.Context())
		l.resumed("b")
		l.resolve("card", false, lifecycle.Failure)
		close(l.goOn)
		<-fired

		operations := make(map[string]string)
		charge := func(failure error) fxBody {
			return func(ctx context.Context, a *fxAct) error {
				operations[a.Entity.ID] = a.Operation
				_, err := w.charge(ctx, "card", failure)
				return err
			}
		}
		w.make("ended", charge(nil))
		w.make("open", charge(errFx)) // the outcome is not known: a person decides
		if err := w.fire(w.Context(), "ended", "charge"); err != nil {
			t.Fatal(err)
		}
		if err := w.fire(w.Context(), "open", "charge"); err == nil {
			t.Fatal("a charge of unknown outcome succeeded")
		}
		other := holdfast.InWorkspace(w.Context(), "other")
		if _, err := w.Create(other, w.e, "ended", bill{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Fire(other, w.e, "ended", "charge", "admin"); err != nil {
			t.Fatal(err)
		}
		prune(0)
		holdfasttest.Advance(w, w.e, keep+time.Minute)
		prune(2) // of the ended ones in two workspaces
		prune(0)
		if got := fxStates(w.find(operations["open"])); len(got) != 1 || got[0] != "card/0 begun" {
			t.Errorf("the open operation has effects %v, want one that was begun", got)
		}
		all, err := holdfast.Collect(holdfast.ListContradictions(w.Context(), w.e, holdfast.ContradictionFilter{}))
		if err != nil || len(all) != 1 {
			t.Fatalf("contradictions %v: %v, want one", all, err)
		}
		if err := holdfast.AcknowledgeContradictions(w.Context(), w.e, contradicted, []string{all[0].ID}, holdfast.By("someone")); err != nil {
			t.Fatal(err)
		}
		prune(1)
	})
}

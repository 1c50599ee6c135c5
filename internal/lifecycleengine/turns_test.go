package lifecycleengine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// TestOperationsOfEachWorkspaceHaveTheirTurn verifies that due operations of one workspace are taken, even if another workspace has many that have been due for longer.
func TestOperationsOfEachWorkspaceHaveTheirTurn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		queue := entities.QueueOf("invoice")
		for _, w := range []string{"big", "small"} {
			ctx := store.InWorkspace(t.Context(), w)
			at, err := engine.Of(hf).Partition(ctx, store.Write)
			if err != nil {
				t.Fatal(err)
			}
			for i := range map[string]int{"big": 20, "small": 1}[w] {
				id := fmt.Sprint("i", i)
				if _, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "invoice", ID: id, Status: "open"}); err != nil {
					t.Fatal(err)
				}
				e, err := entities.Take(ctx, engine.Of(hf), entities.ClaimArgs{Lifecycle: "invoice", ID: id, Choices: map[string]entities.Choice{"open": {Into: "closing", Revert: "open"}},
					Operation: "op" + id, Step: "close", Requester: "api", Holder: "me", Lease: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := entities.Queue(ctx, engine.Of(hf), at, entities.QueueArgs{Ticket: e.Ticket(), Stage: "x", Claim: "closing"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		turns, err := new(lease.Round).Next(t.Context(), engine.Of(hf), entities.Turns, 0, []string{queue}, nil)
		if err != nil || !slices.Equal(turns, []lease.Turn{{Name: queue, Workspace: "big"}, {Name: queue, Workspace: "small"}}) {
			t.Fatalf("got turns %+v, error %v", turns, err)
		}
		some, err := entities.TakeDue(t.Context(), engine.Of(hf), 0, entities.ResumeArgs{Turns: turns[1:], Leases: map[string]time.Duration{queue: time.Minute}, Holder: "me", Limit: 5})
		if err != nil || len(some) != 1 || some[0].Workspace != "small" {
			t.Fatalf("took %+v, error %v, want one of workspace small", some, err)
		}
		turns, err = new(lease.Round).Next(t.Context(), engine.Of(hf), entities.Turns, 0, []string{queue}, []string{"big"})
		if err != nil || len(turns) != 0 {
			t.Errorf("got turns %+v, error %v, want none", turns, err)
		}
	})
}

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// TestAnOldNodePutsNobodyBack verifies that the janitor of a node that still has the old config does not
// revert an entity in a status that is no longer a claim status.
func TestAnOldNodePutsNobodyBack(t *testing.T) { oldNode(t, false) }

// TestAnOldNodePutsNoRowOfTheUsersOwnBack verifies the same for a user table.
func TestAnOldNodePutsNoRowOfTheUsersOwnBack(t *testing.T) { oldNode(t, true) }

func oldNode(t *testing.T, own bool) {
	onEach(t, func(t *testing.T, db string) {
		ctx := t.Context()
		w := unopened(t, db, invoices)
		pack := func(context.Context, *lifecycle.Act[bill]) error { return nil }
		of := func(plain bool) *lifecycle.Lifecycle[bill] {
			l := cratesOf(plain, pack)
			if !own {
				return l
			}
			l = lifecycle.MustParse[bill]([]byte(inOwn(string(lifecycle.Inner(l).Source()))))
			if !plain {
				l.Action("Pack", pack, lifecycle.Journaled())
			}
			return l
		}
		if own {
			w.prepare(ownTable, `INSERT INTO bills (nr, state) VALUES ('b1', 'open')`)
		}
		one := w.engine(of(false))
		now := of(true)
		two := w.engine(now) // the new config is in force; the old node still runs
		if !own {
			if _, err := now.Create(ctx, two, "b1", bill{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := now.Fire(ctx, two, "b1", "pack", "admin"); err != nil {
			t.Fatal(err)
		}
		engine.Of(one).Round(ctx)
		holdfasttest.Advance(t, two, 10*time.Minute)
		engine.Of(one).Round(ctx)
		if e, err := now.Get(ctx, two, "b1"); err != nil || e.Status != "packing" || e.Claimed != nil {
			t.Errorf("got status %q, claimed by %+v: %v; want packing, unclaimed", e.Status, e.Claimed, err)
		}
	})
}

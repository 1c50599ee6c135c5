package idem

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/requests"
)

// TestRenew verifies that a renewal extends the hold, and that a hold which a commit
// ended is not taken for lost, also while the commit is under way.
func TestRenew(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		q, mine, err := requests.Take(ctx, engine.Of(hf), requests.TakeArgs{Key: "k", Fingerprint: "f", Holder: "h", Lease: time.Minute})
		if err != nil || !mine {
			t.Fatal(err)
		}
		f := &flight{engine: engine.Of(hf), lease: time.Minute, workspace: "default", Flight: &requests.Flight{Key: "k"}, epoch: q.Epoch}
		for range 3 {
			holdfasttest.Advance(t, hf, 40*time.Second)
			if err := f.renew(ctx); err != nil {
				t.Fatal(err)
			}
		}
		renewed := make(chan error)
		err = Commit(within(ctx, f), func(context.Context, holdfast.Tx) error {
			go func() { renewed <- f.renew(ctx) }()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := <-renewed; err != nil {
			t.Errorf("during the commit: %v", err)
		}
		if err := f.renew(ctx); err != nil {
			t.Errorf("after the commit: %v", err)
		}
		lost := &flight{engine: engine.Of(hf), lease: time.Minute, workspace: "default", Flight: f.Flight, epoch: q.Epoch + 1}
		if err := lost.renew(ctx); fault.CodeOf(err) != fault.LeaseLost {
			t.Errorf("another's: %v", err)
		}
	})
}

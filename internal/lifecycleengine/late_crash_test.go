package lifecycleengine

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
)

// TestCrashOfALateHolder verifies, at every point and for every fault, that the call of a holder that learns of
// its lost lease is stored once: it calls while its lease expires, another attempt resumes the operation, and an
// operator reports that nothing happened. The call of a process that crashed before it learned of the loss stays
// unknown.
func TestCrashOfALateHolder(t *testing.T) {
	type world struct {
		hf       *holdfast.Engine
		called   int
		notified bool // the late holder learned of its lost lease
	}
	worlds := make(map[*fxCase]*world)
	c := &fxCrash{safety: lifecycleconfig.Journaled}
	at := func(ctx context.Context) *world {
		k := c.of(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		if worlds[k] == nil {
			worlds[k] = new(world)
		}
		return worlds[k]
	}
	c.body = func(ctx context.Context, _ *Act, _ *fxCase) error {
		w := at(ctx)
		_, err := holdfast.Effect(ctx, "card", func(_ context.Context, _ string) (int, error) {
			if w.called++; w.called == 1 {
				free := context.WithoutCancel(ctx)
				if _, err := holdfasttest.Settle(free, w.hf); err == nil {
					_, _ = c.resolve(free, w.hf) // no call is known yet
				}
			}
			return 7, nil
		})
		return err
	}
	holdfasttest.Crash(t, holdfasttest.Scenario{Parts: c.parts, Recover: c.settle, Pairs: true,
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			w := at(ctx)
			w.hf = hf
			err := c.do(ctx, hf)
			if fault.CodeOf(err) != fault.LeaseLost {
				return err
			}
			if _, err := holdfast.Collect(holdfast.ListContradictions(ctx, hf, holdfast.ContradictionFilter{})); err != nil { // the process may have crashed
				return err
			}
			w.notified = true
			return nil
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			w := at(ctx)
			all, err := holdfast.Collect(holdfast.ListContradictions(ctx, hf, holdfast.ContradictionFilter{}))
			if err != nil {
				return err
			}
			if len(all) > 1 || w.notified && len(all) != 1 {
				return fmt.Errorf("after %d calls, late holder notified %v: got contradictions %+v", w.called, w.notified, all)
			}
			return c.nothingAnnounced(ctx, hf)
		}})
}

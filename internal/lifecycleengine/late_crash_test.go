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
	type engineKey struct{}
	c := &fxCrash{safety: lifecycleconfig.Journaled}
	c.body = func(ctx context.Context, _ *Act, _ *fxCrash) error {
		_, err := holdfast.Effect(ctx, "card", func(_ context.Context, key string) (int, error) {
			if err := c.Call(ctx, "late", key); err != nil {
				return 0, err
			}
			if hf, ok := ctx.Value(engineKey{}).(*holdfast.Engine); ok && c.Count(ctx, "late") == 1 {
				free := context.WithoutCancel(ctx)
				if _, err := holdfasttest.Settle(free, hf); err == nil {
					_, _ = c.resolve(free, hf) // it knows of no call
				}
			}
			return 7, nil
		})
		return err
	}
	holdfasttest.Crash(t, holdfasttest.Scenario{Parts: c.parts, Recover: c.settle, Pairs: true,
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			err := c.do(context.WithValue(ctx, engineKey{}, hf), hf)
			if fault.CodeOf(err) != fault.LeaseLost {
				return err
			}
			if _, err := holdfast.Collect(holdfast.ListContradictions(ctx, hf, holdfast.ContradictionFilter{})); err != nil { // the process may have crashed
				return err
			}
			c.note(ctx, "notified", "")
			return nil
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			all, err := holdfast.Collect(holdfast.ListContradictions(ctx, hf, holdfast.ContradictionFilter{}))
			if err != nil {
				return err
			}
			if notified := c.Count(ctx, "notified"); len(all) > 1 || notified > 0 && len(all) != 1 {
				return fmt.Errorf("after %d calls, late holder notified %d times: got contradictions %+v", c.Count(ctx, "late"), notified, all)
			}
			return c.nothingAnnounced(ctx, hf)
		}})
}

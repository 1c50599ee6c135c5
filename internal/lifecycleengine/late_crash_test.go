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

// Verifies, at every point and for every fault, that a holder which is told that its lease was lost has its
// call stored once: it calls while its claim runs out, is resumed by another, and a person says that
// nothing happened. What a process did that died before it was told is not known to anybody.
func TestCrashOfALateHolder(t *testing.T) {
	type world struct {
		hf     *holdfast.Engine
		called int
		told   bool // the late holder was
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
				if err := c.comeRound(free, w.hf); err == nil {
					_, _ = c.resolve(free, w.hf) // nothing was called yet, as far as anybody knows
				}
			}
			return 7, nil
		})
		return err
	}
	holdfasttest.Crash(t, holdfasttest.Scenario{Parts: c.parts, Recover: c.recover, Pairs: true,
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			w := at(ctx)
			w.hf = hf
			err := c.do(ctx, hf)
			if fault.CodeOf(err) != fault.LeaseLost {
				return err
			}
			if _, err := hf.Contradictions(ctx, "", 1); err != nil { // it may be dead
				return err
			}
			w.told = true
			return nil
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			w := at(ctx)
			all, err := hf.Contradictions(ctx, "", 10)
			if err != nil {
				return err
			}
			if len(all) > 1 || w.told && len(all) != 1 {
				return fmt.Errorf("after %d calls, and the late holder was told: %v, the contradictions are %+v", w.called, w.told, all)
			}
			return c.nothingAnnounced(ctx, hf)
		}})
}

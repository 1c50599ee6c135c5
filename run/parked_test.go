package run_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
)

// Verifies that an end which has a step wait for a person gives the same answer when it is told again, as
// any other end does, and another end does not.
func TestAnEndThatParksIsToldAgain(t *testing.T) {
	ends := map[string]func(b *bench, l *runengine.ClaimedStep, message string) (runengine.ClaimedStep, error){
		"fail": func(b *bench, l *runengine.ClaimedStep, message string) (runengine.ClaimedStep, error) {
			return b.executor().Fail(b.ctx, engine.Of(b.e), l, runengine.Failure{Message: message, Final: true})
		},
		"park": func(b *bench, l *runengine.ClaimedStep, message string) (runengine.ClaimedStep, error) {
			return b.executor().Park(b.ctx, engine.Of(b.e), l, message, nil)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
				b := newBench(t, e, run.Define("one", "1", run.Remote("first", "w")))
				l := b.take()
				_, err := l.Book(engine.Of(e)).Begin(b.ctx, "charge", 0, effects.Hold, nil)
				b.ok(err)
				for range 2 {
					mine := *l
					_, err := end(b, &mine, "no")
					b.ok(err)
					b.uncertain("RUNNING")
				}
				mine := *l
				if _, err := end(b, &mine, "another"); !errors.Is(err, holdfast.ErrLeaseLost) {
					t.Errorf("second end: got %v, want ErrLeaseLost", err)
				}
			})
		})
	}
}

// Verifies on both databases that a step of a run that is to be cancelled is not stopped over a transition that
// was fired after the plan was made: to plan and to move are two transactions.
func TestATransitionFiredAfterThePlanIsSeen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, run.Define("one", "1", run.Remote("first", "w", run.Idempotent())))
		b.take()
		b.ok(b.do(runengine.Cancel))
		l := b.live()
		d := &between{engine.Of(e), func() { b.ok(runengine.Point(b.ctx, engine.Of(e), &l, "op")) }}
		_, err := b.executor().Pass(b.ctx, d, &l, time.Second, nil)
		b.ok(err)
		if now := b.live(); now.Step.Fired != "op" || now.Step.Status != "WAITING" {
			t.Errorf("got step %s with fired operation %q, want WAITING with op", now.Step.Status, now.Step.Fired)
		}
	})
}

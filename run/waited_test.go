package run_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
)

// Verifies that a signal wakes the step that began to wait for it while the signal itself waited
// for the run's row: when the signal's statement began, there was no such step.
func TestASignalThatWaitedWakesANewStep(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	def := run.Define("one", "1", run.Remote("first", "w", run.Idempotent()), run.Signal("told", "news", run.Timeout(time.Hour)))
	b := newBench(t, holdfasttest.OpenOn(t, holdfasttest.At(url), def), def)
	l := b.take()
	b.ok(errors.Join(storetest.Queue(t, url, `SELECT FROM holdfast.run WHERE id = $1 FOR UPDATE`, []any{b.id}, nil,
		func() error {
			_, err := b.executor().Complete(b.ctx, engine.Of(b.e), l, runengine.Ended{Output: []byte(`1`)})
			return err
		},
		func() error { return run.Send(b.ctx, b.e, b.id, "news", "n", run.SignalID("1")) })...))
	b.tick()
	b.is("COMPLETED", "told", "COMPLETED")
}

// Verifies that a dead holder's effect, which was begun in time but committed while the janitor
// waited for the step, is not overlooked: a person is asked before the run is cancelled.
func TestAnEffectBegunBesideTheJanitorIsSeen(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	def := run.Define("one", "1", run.Remote("first", "w"))
	b := newBench(t, holdfasttest.OpenOn(t, holdfasttest.At(url), def), def)
	l := b.take()
	b.ok(b.do(runengine.Cancel))
	holdfasttest.Advance(t, b.e, 2*time.Minute)
	begin := `WITH x AS (INSERT INTO holdfast.effect (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
			SELECT shard, workspace, $2, 'charge', 0, epoch, 'begun', 'hold', clock_timestamp() FROM holdfast.step WHERE run = $1)
		UPDATE holdfast.step SET begun = begun + 1 WHERE run = $1`
	b.ok(errors.Join(storetest.Queue(t, url, begin, []any{b.id, l.Operation()}, nil, func() error { b.expire(); return nil })...))
	b.expire()
	b.uncertain("RUNNING")
	b.resolve("charge", false)
	b.is("CANCELLED", "first", "CANCELLED")
}

// Verifies that a step which its worker ends while another call of the worker begins an effect
// does not end with an effect of which nothing is known.
func TestAnEffectBegunBesideTheEndIsSeen(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bench, l *runengine.ClaimedStep) error{
		"complete": func(b *bench, l *runengine.ClaimedStep) error {
			_, err := b.executor().Complete(b.ctx, engine.Of(b.e), l, runengine.Ended{Output: []byte(`1`), Whole: true})
			if !errors.Is(err, effects.ErrOpen) {
				return fmt.Errorf("complete: got %w, want an open effect", err)
			}
			_, err = b.executor().Park(b.ctx, engine.Of(b.e), l, "open", nil)
			return err
		},
		"fail": func(b *bench, l *runengine.ClaimedStep) error {
			_, err := b.executor().Fail(b.ctx, engine.Of(b.e), l, runengine.Failure{Message: "no", Final: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := holdfasttest.PostgreSQL(t)
			def := run.Define("one", "1", run.Remote("first", "w"))
			b := newBench(t, holdfasttest.OpenOn(t, holdfasttest.At(url), def), def)
			l := b.take()
			begin := func() {
				_, err := l.Book(engine.Of(b.e)).Begin(b.ctx, "charge", 0, effects.Hold, nil)
				b.ok(err)
			}
			b.ok(errors.Join(storetest.Queue(t, url, `SELECT FROM holdfast.run WHERE id = $1 FOR UPDATE`, []any{b.id}, begin,
				func() error { return end(b, l) })...))
			b.uncertain("RUNNING")
			b.resolve("charge", true)
		})
	}
}

// TestALeaseThatExpiresDuringAWaitIsLost verifies that a holder that waits for the run when it ends its step, and whose
// lease expires meanwhile, has lost the lease.
func TestALeaseThatExpiresDuringAWaitIsLost(t *testing.T) {
	t.Parallel()
	for name, safety := range map[string]run.StepOption{"idempotent": run.Idempotent(), "opaque": run.Opaque()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := holdfasttest.PostgreSQL(t)
			def := run.Define("one", "1", run.Remote("first", "w", safety))
			b := newBench(t, holdfasttest.OpenOn(t, holdfasttest.At(url), def), def)
			l := b.take()
			conn, err := pgx.Connect(t.Context(), url)
			b.ok(err)
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			_, err = conn.Exec(t.Context(), `UPDATE holdfast.step SET until = clock_timestamp() + interval '300 ms'`)
			b.ok(err)
			expired := func() (yes bool) {
				b.ok(conn.QueryRow(t.Context(), `SELECT until < clock_timestamp() FROM holdfast.step`).Scan(&yes))
				return yes
			}
			errs := storetest.Queue(t, url, `SELECT FROM holdfast.run WHERE id = $1 FOR UPDATE`, []any{b.id}, func() { testkit.Eventually(t, "the lease has expired", expired) }, func() error {
				_, err := b.executor().Complete(b.ctx, engine.Of(b.e), l, runengine.Ended{Output: []byte(`1`)})
				return err
			})
			if err := errors.Join(errs...); !errors.Is(err, holdfast.ErrLeaseLost) {
				t.Errorf("got %v, want a lost lease", err)
			}
		})
	}
}

// between is an engine on which something happens before a run is moved for the first time.
type between struct {
	store.Doer
	f func()
}

func (b *between) Do(ctx context.Context, c store.Command) error {
	if f := b.f; f != nil && c.Decl().Name == "runs.apply_plan" {
		b.f = nil
		f()
	}
	return b.Doer.Do(ctx, c)
}

// Verifies on both databases that a plan is not put into force over an effect that was begun
// after the plan was made: to plan and to move are two transactions.
func TestAnEffectBegunAfterThePlanIsSeen(t *testing.T) {
	ends := map[string]func(b *bench, d store.Doer, l *runengine.ClaimedStep) error{
		"complete": func(b *bench, d store.Doer, l *runengine.ClaimedStep) error {
			_, err := b.executor().Complete(b.ctx, d, l, runengine.Ended{Output: []byte(`1`), Whole: true})
			if !errors.Is(err, effects.ErrOpen) {
				return fmt.Errorf("complete: got %v, want an open effect", err)
			}
			_, err = b.executor().Park(b.ctx, d, l, "open", nil)
			return err
		},
		"fail": func(b *bench, d store.Doer, l *runengine.ClaimedStep) error {
			_, err := b.executor().Fail(b.ctx, d, l, runengine.Failure{Message: "no", Final: true})
			return err
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
				b := newBench(t, e, run.Define("one", "1", run.Remote("first", "w")))
				l := b.take()
				d := &between{engine.Of(e), func() {
					_, err := l.Book(engine.Of(e)).Begin(b.ctx, "charge", 0, effects.Hold, nil)
					b.ok(err)
				}}
				b.ok(end(b, d, l))
				b.uncertain("RUNNING")
				b.resolve("charge", true)
			})
		})
	}
}

// Verifies on both databases that a step of a run that is to be cancelled, which is given back
// while another call of its holder fires its transition, is not cancelled over what was fired.
func TestWhatIsFiredAfterThePlanIsSeen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, firing())
		l := b.takeFire()
		b.ok(b.do(runengine.Cancel))
		l = new(b.live())
		d := &between{engine.Of(e), func() { b.ok(runengine.Point(b.ctx, engine.Of(e), l, "op1")) }}
		_, err := b.executor().Release(b.ctx, d, l, false, nil)
		b.ok(err)
		b.is("RUNNING", "f", "RUNNING")
		if l := b.takeFire(); l.Step.Fired != "op1" || !l.Run.CancelRequested {
			t.Errorf("got fired operation %q; cancel requested: %v", l.Step.Fired, l.Run.CancelRequested)
		}
	})
}

// Verifies that a step whose last attempt fails while its effect is reported done is not parked:
// all is known.
func TestAnEffectEndedAfterThePlanIsSeen(t *testing.T) {
	fails := func(b *bench, l *runengine.ClaimedStep, d store.Doer) error {
		_, err := b.executor().Fail(b.ctx, d, l, runengine.Failure{Message: "no", Final: true})
		return err
	}
	begun := func(b *bench) (l *runengine.ClaimedStep, end func()) {
		l = b.take()
		book := l.Book(engine.Of(b.e))
		_, err := book.Begin(b.ctx, "charge", 0, effects.Hold, nil)
		b.ok(err)
		return l, func() {
			_, _, err := book.End(b.ctx, "charge", 0, effects.Done, []byte(`1`), false)
			b.ok(err)
		}
	}
	def := run.Define("one", "1", run.Remote("first", "w"))
	t.Run("between", func(t *testing.T) {
		storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
			b := newBench(t, e, def)
			l, end := begun(b)
			b.ok(fails(b, l, &between{engine.Of(e), end}))
			b.is("FAILED", "first", "FAILED")
		})
	})
	t.Run("queued", func(t *testing.T) {
		t.Parallel()
		url := holdfasttest.PostgreSQL(t)
		b := newBench(t, holdfasttest.OpenOn(t, holdfasttest.At(url), def), def)
		l, end := begun(b)
		b.ok(errors.Join(storetest.Queue(t, url, `SELECT FROM holdfast.run WHERE id = $1 FOR UPDATE`, []any{b.id}, end,
			func() error { return fails(b, l, engine.Of(b.e)) })...))
		b.is("FAILED", "first", "FAILED")
	})
}

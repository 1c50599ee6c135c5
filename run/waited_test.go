package run_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
)

// Verifies that a signal wakes the step that began to wait for it while the signal itself waited
// for the run's row: when the signal's statement began, there was no such step.
func TestASignalThatWaitedWakesANewStep(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	def := run.Define("one", "1", run.Remote("first", "w", run.Idempotent()), run.Signal("told", "news", time.Hour))
	b := newBench(t, holdfasttest.OpenOn(t, database(url), run.Serve(def)), def)
	l := b.take()
	b.ok(errors.Join(storetest.Queue(t, url, `SELECT FROM holdfast.run WHERE id = $1 FOR UPDATE`, []any{b.id},
		func() error {
			_, err := b.desk().Complete(b.ctx, b.e, l, runs.Ended{Output: []byte(`1`)})
			return err
		},
		func() error { return run.Send(b.ctx, b.e, b.id, "news", "1", "n") })...))
	b.tick()
	b.is("COMPLETED", "told", "COMPLETED")
}

package run_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
)

// Verifies that a run which went on and was over once more while its deletion waited for it leaves no
// step behind: when the deletion began, that step was not there.
func TestARunThatWentOnIsDroppedWhole(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	def := run.Define("one", "1", run.Remote("first", "w", run.Idempotent()))
	b := newBench(t, holdfasttest.OpenOn(t, holdfasttest.At(url), run.Retention(time.Hour), def), def)
	b.ok(b.do(runengine.Cancel))
	holdfasttest.Advance(t, b.e, 2*time.Hour)
	at, err := engine.Of(b.e).Partition(b.ctx, store.Read)
	b.ok(err)
	goesOn := `WITH x AS (INSERT INTO holdfast.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, epoch, deaths, timeout, begun, uncertain, safety, unknown, created_at)
			SELECT shard, workspace, run, name, visit + 1, n + 1, type, handler, 'CANCELLED', input, 0, 0, 0, 0, timeout, 0, false, safety, unknown, created_at FROM holdfast.step WHERE run = $1)
		UPDATE holdfast.run SET version = version + 2, visit = visit + 1 WHERE id = $1`
	prune := func() error { _, _, err := new(runengine.Executor).Prune(b.ctx, engine.Of(b.e), at, 500); return err }
	b.ok(errors.Join(storetest.Queue(t, url, goesOn, []any{b.id}, nil, prune)...))
	b.ok(prune())
	conn, err := pgx.Connect(b.ctx, url)
	b.ok(err)
	defer conn.Close(b.ctx)
	var left int
	b.ok(conn.QueryRow(b.ctx, `SELECT (SELECT count(*) FROM holdfast.step) + (SELECT count(*) FROM holdfast.run)`).Scan(&left))
	if left != 0 {
		t.Errorf("%d rows are left, want 0", left)
	}
}

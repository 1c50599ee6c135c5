package scope_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/scope"
)

// createExpiring creates n scopes, half of which expire, and deletes the others.
func (e *env) createExpiring(n int) {
	e.Helper()
	for i := range n {
		s := e.raw(fmt.Sprint("gone-", i), scope.TTL(time.Minute))
		if i%2 > 0 {
			s = e.raw(fmt.Sprint("gone-", i))
		}
		for range 3 {
			_, err := s.Inc(e.ctx, "n", 1)
			e.ok(err)
		}
		if i%2 > 0 {
			_, err := s.Delete(e.ctx)
			e.ok(err)
		}
	}
}

// TestNothingIsLeftOfWhatEnded verifies that of scopes that have ended or were deleted no row
// is left in a database, and no event where histories are pruned; that what is alive stays;
// and that the database breaks no invariant on the way.
func TestNothingIsLeftOfWhatEnded(t *testing.T) {
	each(t, func(e *env) {
		hf, err := holdfast.Open(e.ctx, database(e.where), holdfast.Config{Log: slog.New(slog.DiscardHandler), HistoryRetention: time.Hour})
		e.ok(err)
		e.hf = hf
		defer hf.Close()
		e.createExpiring(40)
		_, err = e.raw("alive").Inc(e.ctx, "n", 1)
		e.ok(err)
		for _, c := range []struct {
			wait           time.Duration
			scopes, events string
		}{{0, "41", "141"}, {2 * time.Minute, "41", "161"}, {25 * time.Hour, "1", "1"}} {
			holdfasttest.Advance(e.T, hf, c.wait)
			for range 3 {
				engine.Of(hf).Round(e.ctx)
			}
			e.equal(fmt.Sprint("scopes after ", c.wait), e.count("scope"), c.scopes)
			e.equal(fmt.Sprint("events after ", c.wait), e.count("history"), c.events)
			e.wantClean()
		}
		e.equal("floors", e.count("scope_floor"), 1)
		e.is("alive", `{"n":1}`, 0)
		e.createExpiring(40) // the same names
		e.wantClean()
	}, "sqlite", "postgres")
}

// count is how many rows of the workspace a table has; of histories, those of scopes.
func (e *env) count(table string) (n int) {
	e.Helper()
	e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
		where := ` WHERE workspace LIKE 'case-%'`
		if table == "history" {
			where += ` AND stream LIKE '$scope/%'`
		}
		counts, err := storetest.Column[int](ctx, tx, `SELECT count(*) FROM holdfast_`+table+where)
		if err == nil {
			n = counts[0]
		}
		return err
	}))
	return n
}

// TestNoFileIsLeftOfWhatEnded verifies the same of a store of files: nothing is left but the
// locks and the floors of a kind, whose number is bounded, and the folders.
func TestNoFileIsLeftOfWhatEnded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := scope.FileStore(dir)
		e := &env{T: t, ctx: freshWorkspace(), own: store}
		e.ok(err)
		e.createExpiring(100)
		_, err = e.raw("alive").Inc(e.ctx, "n", 1)
		e.ok(err)
		e.equal("files before", len(e.files(dir, false)), 51)
		n, err := store.Sweep(e.ctx)
		e.ok(err)
		e.equal("swept too early", n, 0)
		<-time.After(2 * time.Minute)
		n, err = store.Sweep(e.ctx)
		e.ok(err)
		e.equal("swept", n, 50)
		e.equal("files after", len(e.files(dir, false)), 1)
		n, err = store.Sweep(e.ctx)
		e.ok(err)
		e.equal("swept again", n, 0)
		for range 3 {
			e.createExpiring(100)
		}
		if n := len(e.files(dir, true)); n > 128 {
			e.Errorf("got %d lock and floor files, want at most 128", n)
		}
	})
}

// files are those of scopes, whole or not, or those that are hidden.
func (e *env) files(dir string, hidden bool) (names []string) {
	e.Helper()
	e.ok(filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		within, _ := filepath.Rel(dir, name)
		if err == nil && !d.IsDir() && hidden == (strings.HasPrefix(within, ".") || strings.HasPrefix(d.Name(), ".")) {
			names = append(names, name)
		}
		return err
	}))
	return names
}

// TestMemoryForgets verifies that a store in memory does not keep what has ended: it would
// grow for ever otherwise.
func TestMemoryForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &env{T: t, ctx: freshWorkspace(), own: memory(t)}
		for round := range 10 {
			for i := range 1000 {
				_, err := e.raw(fmt.Sprintf("%d-%d", round, i), scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
				e.ok(err)
			}
			<-time.After(2 * time.Minute)
		}
		if n := scope.Kept(e.own); n > 4000 {
			t.Errorf("%d of 10,000 scopes are still in memory, want at most 4000", n)
		}
	})
}

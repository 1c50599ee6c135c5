package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/postgres"
)

// TestConformance runs every case on every kind of access to both databases: SQLite by its path and
// by a pool of the program, PostgreSQL by the fast form of its statements and by the general form
// alone, and without prepared statements.
func TestConformance(t *testing.T) {
	if n := len(Cases()); n < 60 {
		t.Fatalf("got %d cases, want at least 60", n)
	}
	for name, backend := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "sqlite" && name != "postgres" {
				backend.Sample = 8
			}
			Run(t, backend)
		})
	}
}

// ways are all kinds of access to both databases.
var ways = map[string]Backend{
	"sqlite":          SQLite(),
	"sqlite-pool":     SQLitePool(),
	"postgres":        Postgres(),
	"postgres-plain":  PostgresPlain(),
	"postgres-pooled": Postgres(postgres.Pooled()),
}

// TestForgottenScopes verifies that tombstones of scopes are deleted after a day, that a scope that
// is then created again has a version that none of its kind has had, whichever verb creates it, and
// that of several concurrent sweeps one handles each tombstone.
func TestForgottenScopes(t *testing.T) {
	for name, backend := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := backend.New(t)
			e := &env{T: t, hf: holdfasttest.OpenOn(t, db), db: db, ctx: freshWorkspace(context.Background())}
			last := int64(-1)
			for i := range 30 {
				id := fmt.Sprint("u", i)
				for range 1 + i%4 {
					_, err := e.inc(e.hf, id, "n", 1)
					e.ok(err)
				}
				gone, err := scopestore.Delete(e.ctx, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: id})
				e.ok(err)
				last = max(last, gone.Version)
			}
			swept := func() (n int64) {
				var sum atomic.Int64
				_, lost := holdfasttest.Race(t, 3, func(int) error {
					n, err := scopestore.SweepAll(context.Background(), engine.Of(e.hf))
					sum.Add(int64(n))
					return err
				})
				e.equal("errors", lost, "[]")
				return sum.Load()
			}
			holdfasttest.Advance(t, e.hf, 23*time.Hour)
			e.equal("swept too early", swept(), 0)
			holdfasttest.Advance(t, e.hf, 2*time.Hour)
			e.equal("swept", swept(), 30)
			e.equal("swept again", swept(), 0)
			put, err := e.put(e.hf, "u0", none, `{}`)
			e.ok(err)
			made, err := e.inc(e.hf, "u1", "n", 1)
			e.ok(err)
			if put.Version <= last || made.Version <= last {
				t.Errorf("created again at versions %d and %d, want them after %d", put.Version, made.Version, last)
			}
			other, err := scopestore.Put(e.ctx, engine.Of(e.hf), scopestore.PutArgs{Kind: "org", ID: "u0", State: []byte(`{}`)})
			e.ok(err)
			e.equal("of another kind", other.Version, 0)
		})
	}
}

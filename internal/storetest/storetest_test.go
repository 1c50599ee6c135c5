package storetest

import (
	"testing"

	"github.com/holdfast-go/holdfast/postgres"
)

// TestConformance runs every case on every way in to both databases: SQLite by
// its path and by a pool of the program's own, PostgreSQL by the short form of
// its statements and by the general form alone, and without prepared
// statements.
func TestConformance(t *testing.T) {
	if n := len(Cases()); n < 60 {
		t.Fatalf("%d cases: the suite has lost some", n)
	}
	for name, backend := range map[string]Backend{
		"sqlite":          SQLite(),
		"sqlite-pool":     SQLitePool(),
		"postgres":        Postgres(),
		"postgres-plain":  Postgres(postgres.Plain()),
		"postgres-pooled": Postgres(postgres.Pooled()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Run(t, backend)
		})
	}
}

package sqlite

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/store"
)

// TestEveryStatementIsPrepared verifies that the database parses every statement: in a program each
// is prepared at its first use.
func TestEveryStatementIsPrepared(t *testing.T) {
	db := File(filepath.Join(t.TempDir(), "x.db"))
	s, _, err := db.open(t.Context(), store.Options{Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.prepareAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(s.writes.by) + len(s.reads.by); n < len(s.scripts) {
		t.Errorf("%d statements are prepared for %d scripts", n, len(s.scripts))
	}
}

// TestWhatAMigratedDatabaseHas verifies that a migrated database has the parts that opening relies
// on.
func TestWhatAMigratedDatabaseHas(t *testing.T) {
	db := File(filepath.Join(t.TempDir(), "x.db"))
	s, _, err := db.open(t.Context(), store.Options{Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	has, err := partsOf(t.Context(), s.read)
	if err != nil {
		t.Fatal(err)
	}
	if got := digest(has); got != migratedParts {
		t.Errorf("the migrations create a schema with digest %s: set migratedParts to it", got)
	}
}

// TestLimitsDoNotPrepareAnew verifies that no limit is a bare argument. SQLite plans by its value,
// and so prepares the statement again for each value, which takes several times as long as running
// it.
func TestLimitsDoNotPrepareAnew(t *testing.T) {
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	limits := 0
	for name, text := range all.texts {
		limits += strings.Count(text, "LIMIT +?")
		if strings.Contains(text, "LIMIT ?") {
			t.Errorf("%s: write LIMIT +?n", name)
		}
	}
	if limits == 0 {
		t.Error("no statement has a LIMIT")
	}
}

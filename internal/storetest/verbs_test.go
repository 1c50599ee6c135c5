package storetest

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/store"
	_ "github.com/holdfast-go/holdfast/internal/storetest/everyverb"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// TestEveryVerbHasItsSQL verifies that each verb of the program has SQL in both adapters, and that
// every SQL file belongs to a verb. Opening an engine checks that the databases parse all of it.
func TestEveryVerbHasItsSQL(t *testing.T) {
	lite, err := store.DatabaseOf(sqlite.File("")).Texts()
	if err != nil {
		t.Fatal(err)
	}
	pg, err := store.DatabaseOf(postgres.URL("")).Texts()
	if err != nil {
		t.Fatal(err)
	}
	for name, texts := range map[string]store.Texts{"sqlite": lite, "postgres": pg} {
		if err := texts.Missing(store.Decls()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := texts.Missing([]store.Decl{{Name: "planted.verb"}}); err == nil || !strings.Contains(err.Error(), "planted.verb") {
			t.Errorf("%s: a verb without SQL was not reported: %v", name, err)
		}
	}
	for name, read := range map[string]func() (store.SQLFiles, error){"sqlite": store.DatabaseOf(sqlite.File("")).Files, "postgres": store.DatabaseOf(postgres.URL("")).Files} {
		files, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if orphans := orphans(files); len(orphans) > 0 {
			t.Errorf("%s has SQL without a verb: %s", name, strings.Join(orphans, ", "))
		}
		for fragment := range files {
			if path, yes := strings.CutSuffix(fragment, ".fragment"); yes && !included(files, strings.Replace(path, ".", "/", 1)) {
				t.Errorf("%s: nothing includes %s", name, fragment)
			}
		}
		files["planted.text"] = "SELECT 1"
		if orphans := orphans(files); len(orphans) != 1 || orphans[0] != "planted.text" {
			t.Errorf("%s: SQL without a verb was not reported: %v", name, orphans)
		}
	}
}

// orphans returns the names of the files without a declared verb.
func orphans(files store.SQLFiles) (names []string) {
	declared := make(map[string]bool)
	for _, d := range store.Decls() {
		declared[d.Name] = true
	}
	for name := range files {
		if !strings.HasSuffix(name, ".fragment") && !strings.HasSuffix(name, ".has_work") && !declared[strings.TrimSuffix(name, ".fast")] {
			names = append(names, name)
		}
	}
	return names
}

// included reports whether a file includes a fragment.
func included(files store.SQLFiles, fragment string) bool {
	for _, text := range files {
		if strings.Contains(text, "{include "+fragment+"}") || strings.Contains(text, "{include "+fragment+" ") || strings.Contains(text, "{include "+fragment+"\n") {
			return true
		}
	}
	return false
}

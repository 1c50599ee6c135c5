package storetest

import (
	"strings"
	"testing"

	_ "github.com/holdfast-go/holdfast/internal/batches"
	_ "github.com/holdfast-go/holdfast/internal/keys" // it declares verbs too
	_ "github.com/holdfast-go/holdfast/internal/requests"
	_ "github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/store"
	_ "github.com/holdfast-go/holdfast/internal/tokens"
	_ "github.com/holdfast-go/holdfast/internal/wallets"
	_ "github.com/holdfast-go/holdfast/internal/webhooks"
	_ "github.com/holdfast-go/holdfast/lifecycle" // it declares verbs too
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// TestEveryVerbHasItsSQL verifies that each verb of the program has SQL in both
// adapters, and that there is no SQL that no verb runs. That the databases
// parse all of it is checked whenever an engine is opened.
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
		if orphans := texts.Orphans(store.Decls()); len(orphans) > 0 {
			t.Errorf("%s has SQL without a verb: %s", name, strings.Join(orphans, ", "))
		}
		if err := texts.Missing([]store.Decl{{Name: "planted.verb"}}); err == nil || !strings.Contains(err.Error(), "planted.verb") {
			t.Errorf("%s: a verb without SQL is not found: %v", name, err)
		}
		texts["planted.text"] = "SELECT 1"
		if orphans := texts.Orphans(store.Decls()); len(orphans) != 1 || orphans[0] != "planted.text" {
			t.Errorf("%s: SQL without a verb is not found: %v", name, orphans)
		}
	}
}

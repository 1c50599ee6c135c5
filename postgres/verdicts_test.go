package postgres_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
)

// verdict is a line of sql/VERDICTS.md.
type verdict struct{ statement, locks, decides, why string }

type table []verdict

// verdicts reads the table.
func verdicts(t *testing.T) (all table) {
	t.Helper()
	text, err := os.ReadFile("sql/VERDICTS.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, verdict{strings.Trim(cells[1], "`"), cells[2], cells[3], cells[4]})
	}
	return all
}

// TestEveryStatementHasAVerdict verifies that sql/VERDICTS.md explains for every statement that
// locks or writes anything why a wait cannot mislead it, and lists no other.
func TestEveryStatementHasAVerdict(t *testing.T) {
	texts, err := store.DatabaseOf(postgres.URL("")).Filled()
	if err != nil || len(texts) < 200 {
		t.Fatal(len(texts), err)
	}
	wanted := map[string]bool{"table.move": true} // of a table of the user's own
	for name, text := range texts {
		if postgres.Locks(text) {
			wanted[name] = true
		}
	}
	for _, v := range verdicts(t) {
		if !wanted[v.statement] {
			t.Errorf("statement does not exist, or has two verdicts: %s", v.statement)
		}
		if v.locks == "" || v.decides == "" || v.why == "" {
			t.Errorf("the verdict on %s lacks a reason", v.statement)
		}
		delete(wanted, v.statement)
	}
	for name := range wanted {
		t.Errorf("%s locks or writes rows: explain in sql/VERDICTS.md why a wait for a lock cannot mislead it (docs/decisions/022)", name)
	}
}

// apart are the statements at which no call of a scene waits, each with its reason.
var apart = map[string]string{
	"refusals.record":                    "it only inserts",
	"keys.record_uses":                   "it never waits",
	"audit.record":                       "it only inserts",
	"nodes.report":                       "one row each, of the node itself, as refusals.record; internal/nodes tests two processes under one name",
	"nodes.remove":                       "one row, of the node itself",
	"nodes.prune":                        "it never waits, and deletes rows that are no longer changed",
	"refusals.prune":                     "it deletes rows that are never changed",
	"effects.prune":                      "it deletes rows of operations that have ended, which are never changed",
	"streams.close_renew":                "it runs only during a long export; one row, as entities.renew",
	"effects.record_late_calls":          "it only inserts",
	"effects.acknowledge_contradictions": "no other statement reads or changes its rows",
	"feed.create_counter":                "it only inserts",
	"reactions.record_delivery":          "one row each, as reactions.renew; internal/reactions/delivered_test.go makes it wait",
	"reactions.update_options":           "one row",
	"events.void_command":                "it runs after a lost response; lostreply_test.go covers that",
	"history.void_command":               "it runs after a lost response; lostreply_test.go covers that",
	"history.write_commit_proof":         "it only inserts",
	"lifecycles.put":                     "its transaction has raised the registry before, and so is serialized",
	"lifecycles.delete":                  "its transaction has raised the registry before, and so is serialized",
	"meta.shift_clock":                   "it is for tests",
	"secrets.create":                     "its transaction has raised the registry before, and so is serialized",
	"secrets.delete":                     "its transaction has raised the registry before, and so is serialized",
	"secrets.rotate":                     "its transaction has raised the registry before, and so is serialized",
	"secrets.reseal":                     "one row, as keys.replace",
	"handlers.reseal":                    "one row, as keys.replace",
	"webhooks.reseal":                    "one row, as keys.replace",
	"webhooks.create":                    "it only inserts",
	"webhooks.remove":                    "one row, as keys.revoke",
	"webhooks.rotate":                    "one row, as keys.replace",
	"workspaces.assign_shard":            "an engine caches the result",
	"batches.lock_wallet":                "it only locks",
	"table.move":                         "one row; table_test.go",
}

// gated checks that every statement has waited at the gate, or has a reason.
func (all table) gated(t *testing.T, reached *sync.Map) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("sql/VERDICTS.md has no table")
	}
	for _, v := range all {
		name, fast := strings.CutSuffix(v.statement, ".fast")
		name += "."
		if fast {
			name += "fast"
		}
		_, yes := reached.Load(name)
		switch why := apart[v.statement]; {
		case yes && why != "":
			t.Errorf("%s waited at the gate: remove its exception", v.statement)
		case !yes && why == "":
			t.Errorf("%s has not waited at the gate: add a call that runs it to a scene", v.statement)
		}
	}
}

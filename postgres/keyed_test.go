package postgres_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
)

// TestEveryStatementGoesByItsKeys verifies that every statement in each of its forms accesses every
// table by complete keys, whatever the statistics of the table say: nothing, or that it was empty.
// A statement that reads a range has a case in planned, which shows that it reads few rows of many,
// or a reason in walks.
func TestEveryStatementGoesByItsKeys(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	conn, texts := planner(t, prepared(t)), statements(t)
	unknown(t, conn)
	prepare(t, conn, texts)
	byKeys(t, conn, texts, "of a table of which nothing is known")
	execute(t, conn, `VACUUM ANALYZE`)
	byKeys(t, conn, texts, "of a table that is known to be empty")
	for name := range walks {
		if texts[name] == "" {
			t.Errorf("walks lists %s, but no such statement exists", name)
		}
	}
}

// TestOwnTablesGoByTheirKeys verifies the same for the statements on users' own tables, with every
// type of id, with a workspace and without.
func TestOwnTablesGoByTheirKeys(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), planner(t, url)
	texts := store.Texts{}
	for i, id := range []string{"bigint", "numeric", "uuid", "text", "kind"} {
		name := "own" + strconv.Itoa(i)
		if id == "kind" {
			execute(t, conn, `CREATE TYPE kind AS ENUM ('a', 'b')`)
		}
		execute(t, conn, `CREATE TABLE `+name+` (id `+id+` PRIMARY KEY, status text, version bigint, total bigint) WITH (autovacuum_enabled = false)`, `CREATE INDEX ON `+name+` (status)`,
			`CREATE TABLE `+name+`w (tenant text, id `+id+`, status text, version bigint, total bigint, PRIMARY KEY (tenant, id)) WITH (autovacuum_enabled = false)`)
		want := orders
		want.Name, want.Write = name, []string{"total"}
		maps.Copy(texts, named(openTable(t, hf, want), name))
		want.Name, want.Workspace = name+"w", "tenant"
		maps.Copy(texts, named(openTable(t, hf, want), name+"w"))
	}
	prepare(t, conn, texts)
	byKeys(t, conn, texts, "of a table of which nothing is known")
	execute(t, conn, `VACUUM ANALYZE`)
	byKeys(t, conn, texts, "of a table that is known to be empty")
}

// named returns the statements of a table that look up one row.
func named(own store.UserTable, name string) store.Texts {
	texts := own.(interface{ Texts() store.Texts }).Texts()
	return store.Texts{name + ".read": texts["read"], name + ".move": texts["move"], name + ".write": texts["write"]}
}

// enough is the number of columns of an index that select few rows, if that is not all of them.
var enough = map[string]int{
	"approval_pending": 3, "approval_pkey": 3, "signal_inbox": 3, "signal_pkey": 3, "step_pkey": 3, // of one run
	"effect_pkey": 3, "late_call_pkey": 3, "late_call_unseen": 3, // of one operation
	"definition_pkey": 2, "handler_pkey": 2, "lifecycle_pkey": 2, "reaction_pkey": 2, "webhook_pkey": 2, "named_secret_pkey": 2, // declared by a person in one workspace
	"event_pkey": 2, "history_pkey": 2, // of one command
	"due_pkey":      4, // of one stream
	"snapshot_pkey": 3,
}

// few are the tables that stay small: those filled by people, and the one row of the clock.
var few = map[string]bool{"api_key": true, "clock": true, "migration": true}

// walks are the statements that read a growing part of a table, each with its reason.
var walks = map[string]string{
	"check.leases":                      "it counts what is held, in the indexes of that",
	"entities.count_queued":             "what is under way in a workspace, a thousand at the most, before a handler is deleted",
	"handlers.list_url_handlers":        "all handlers that are URLs, when a node starts or one changes",
	"lifecycles.list_outdated":          "all workspaces that have a lifecycle, when its config changes",
	"lifecycles.list_published":         "what changed since a moment, by the index of that",
	"lifecycles.find_workspace":         "all workspaces that have a lifecycle, when a program starts",
	"lifecycles.count_stranded":         "all entities of a lifecycle, when its config changes",
	"reactions.delete":                  "all rows of a reaction, when it is removed",
	"reactions.collect_due_of_reaction": "all due notices of a reaction, before it is rebuilt",
	"reactions.rebuild":                 "all rows of a reaction, which it changes",
	"reactions.delete_unfollowed":       "all rows of a reaction, which it changes",
	"meta.is_used":                      "one row of each shard, when the first server starts",
	"registry.sum_revisions":            "one row of each workspace that has a registry",
	"secrets.list_sealed":               "all encrypted values, when an operator changes the encryption key",
	"workspaces.list_shards":            "one row of each workspace, when a node starts",
}

// shape is a node of a plan: what it reads, and by which index.
type shape struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	Place    string `json:"TID Cond"`
	Plans    []shape
}

const remedy = `have it look rows up by a whole key, or give it a case in planned.
	In a join write x.shard = ANY (ARRAY[y.shard]), and before FOR UPDATE sort by y.shard, x.workspace, …; docs/decisions/030 has the other ways.`

// byKeys checks the plans of prepared statements.
func byKeys(t *testing.T, conn *pgx.Conn, texts store.Texts, when string) {
	t.Helper()
	measured := map[string]bool{}
	for _, p := range planned {
		measured[p.name] = true
	}
	keys := indexes(t, conn)
	for name := range texts {
		base := name
		for _, form := range []string{".unmarked", ".group", ".fast"} {
			base = strings.TrimSuffix(base, form)
		}
		if measured[base] || walks[base] != "" {
			continue
		}
		planOf[shape](t, conn, name, `COSTS OFF`, anyCall(t, conn, name)).each(func(n shape) {
			if !n.keyed(keys[n.Index]) {
				t.Errorf("%s: the plan %s reads %s by %s (%s) %s: %s", name, when, n.Relation, n.Type, n.Index, n.Cond, remedy)
			}
		})
	}
}

func (n shape) each(f func(shape)) {
	f(n)
	for _, p := range n.Plans {
		p.each(f)
	}
}

// keyed reports whether a node reads no table, a small one, or few rows of it by an index of these
// columns.
func (n shape) keyed(columns []string) bool {
	if n.Relation == "" || n.Type == "ModifyTable" || n.Place != "" || few[n.Relation] || strings.HasPrefix(n.Relation, "pg_") {
		return true
	}
	bound := 0
	for bound < len(columns) && strings.Contains(n.Cond, "("+columns[bound]+" = ") {
		bound++
	}
	wanted := enough[n.Index]
	if wanted == 0 {
		wanted = len(columns)
	}
	return bound > 0 && bound >= wanted
}

// indexes returns the columns of each index.
func indexes(t *testing.T, conn *pgx.Conn) map[string][]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT c.relname, pg_get_indexdef(c.oid, k, false)
	  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid, generate_series(1, i.indnkeyatts) k
	 WHERE c.relnamespace IN ('holdfast'::regnamespace, 'public'::regnamespace) ORDER BY c.relname, k`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	var name, column string
	if _, err := pgx.ForEachRow(rows, []any{&name, &column}, func() error {
		if strings.HasPrefix(column, "((") { // a plan shows an expression with one pair of parentheses less
			column = column[1 : len(column)-1]
		}
		all[name] = append(all[name], column)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

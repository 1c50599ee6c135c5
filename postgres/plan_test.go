package postgres_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
)

// planned are the statements that work on a few rows of what may be many, with
// arguments that concern a hundred.
var planned = []struct{ name, types, args string }{
	{"reactions.look", "smallint, text, text", `0, '', '["r"]'`},
	{"reactions.gather", "smallint, text, text, bigint", `0, '', '[["r", "", "", -1]]', 100`},
	{"reactions.take", "smallint, text, text, text, bigint, bigint, bigint", `0, '', '[["r", 10000, null, ""]]', 'h', 100, 1, 1`},
	{"reactions.events", "smallint, text, text, bigint", `0, '', '` + list(`["w", "s%d", -1, 10, null]`) + `', 100`},
	{"reactions.ack", "smallint, text, text", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0, "l": 1000}`) + `'`},
	{"reactions.deliver", "smallint, text, text", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0}`) + `'`},
	{"reactions.renew", "smallint, text, text", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0, "l": 1000}`) + `'`},
	{"reactions.free", "smallint, text, text", `0, '', '` + list(`{"w": "w", "r": "r", "s": "s%d", "e": 1, "v": 0, "l": 1000}`) + `'`},
	{"feed.sequence", "smallint, text, bigint, bigint", `0, 'w', 100, 200`},
	{"batches.ready", "smallint, text, text, bigint, text", `0, '', '["h"]', 16, ''`},
	{"batches.take", "smallint[], text[], uuid[], text[], text[], bigint[], bigint[], bigint[], bigint[], text[]", one + `, '{b}', '{me}', '{30000}', '{100}', '{1}', '{0}', '{NULL}'`},
	{"handlers.lost", "smallint, text, text, bigint", `0, 'w', '', 100`},
	{"batches.settle", "smallint[], text[], uuid[], text[], text[], text[], bigint[], text[], text[], bigint[], bigint[], text[]",
		one + `, '{b}', '{k10101}', '{done}', '{1}', '{1}', '{NULL}', '{0}', '{0}', '{NULL}'`},
	{"batches.giveup", "smallint[], text[], uuid[], text[], text[], text[], bigint[], text[], bigint[], text[]",
		one + `, '{b}', '{k10101}', '{fail}', '{1}', '{no}', '{0}', '{NULL}'`},
	{"batches.add", "smallint[], text[], uuid[], text[], text[], bigint[], text[]", one + `, '{o}', ARRAY['` + list(`["k%d", 1, {}]`) + `'], '{0}', '{NULL}'`},
	{"batches.renew", "smallint, text, text, text, bigint, bigint", `0, 'w', 'b', 'k10101', 1, 1000`},
	{"batches.expired", "smallint, text, bigint", `0, '', 100`},
	{"batches.pause", "smallint[], text[], uuid[], text[], bigint[], text[]", one + `, '{b}', '{0}', '{NULL}'`},
	{"batches.items", "smallint, text, text, bigint, text, bigint", `0, 'w', 'b', 5000, '', 100`},
	{"batches.sweep", "smallint, text, bigint, bigint, text, bigint", `0, '', 1000, 100, '[]', 1`},
	{"entities.overdue", "smallint, text, text, bigint, bigint", `0, '', '["n"]', 100, 900000`},
	{"runs.ready", "smallint, text, text, bigint, text", `0, '', '["", "h"]', 100, ''`},
	{"runs.load", "smallint, text, text, text, bigint", `0, 'w', 'run_10050', '', 0`},
	{"runs.expired", "smallint, text, bigint", `0, '', 100`},
	{"runs.renew", "smallint, text, text, text, bigint, bigint, bigint", `0, 'w', 'run_10050', 's', 1, 1, 1000`},
	{"runs.steps", "smallint, text, text, bigint, bigint", `0, 'w', 'run_10050', 0, 100`},
	{"runs.listlive", "smallint, text, text, text, text, bigint", `0, 'w', '', 'RUNNING', '', 100`},
	{"runs.list", "smallint, text, text, text, text, bigint", `0, 'w', '', '', '', 100`},
	{"runs.pending", "smallint, text, text, text, bigint, text, bigint", `0, 'w', '', '', 0, 'pending', 100`},
	{"runs.approvals", "smallint, text, text, text, bigint, text, bigint", `0, 'w', '', '', 0, '', 100`},
	{"runs.approval", "smallint, text, text, text, bigint", `0, 'w', 'run_10050', 's', 1`},
	{"runs.asked", "smallint, text, text, text, bigint, text, bigint", `0, 'w', 'run_10050', '', 0, '', 100`},
	{"runs.uncertain", "smallint, text, text, text, bigint", `0, 'w', '', '', 100`},
	{"runs.old", "smallint, text, bigint", `0, '', 100`},
	{"runs.drop", "smallint[], text[], uuid[], text[]", one + `, '{run_7}'`},
	{"runs.start", "smallint[], text[], uuid[], text[], text[], text[], text[], text[], bigint[], text[], bigint[], text[]",
		one + `, '{run_new}', '{d@1}', '{fresh}', '{1}', '{me}', '{30000}', ARRAY['` + aStart + `'], '{0}', '{NULL}'`},
	{"runs.move", "smallint[], text[], uuid[], text[], bigint[], text[], text[], bigint[], bigint[], text[], bigint[], text[], bigint[], text[]",
		one + `, '{run_10050}', '{1}', '{held}', '{s}', '{1}', '{1}', '{me}', '{30000}', ARRAY['` + aMove + `'], '{0}', '{NULL}'`},
	{"runs.signal", "smallint[], text[], uuid[], text[], text[], text[], text[], bigint[], text[]", one + `, '{run_10051}', '{new}', '{t}', '{1}', '{0}', '{NULL}'`},
	{"runs.unheard", "smallint, text, text, text, text, bigint, bigint", `0, '', '', '', '', 0, 100`},
	{"runs.decide", "smallint[], text[], uuid[], text[], text[], text[], bigint[], text[], text[], text[], text[], bigint[], text[]",
		one + `, '{apr_10052}', '{run_10052}', '{s}', '{1}', '{approved}', '{ann}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"runs.effectbegin", "smallint[], text[], uuid[], text[], text[], bigint[], bigint[], text[], bigint[], text[], text[]",
		one + `, '{run_10053}', '{s}', '{1}', '{1}', '{charge}', '{0}', '{hold}', '{[]}'`},
	{"runs.effectend", "smallint[], text[], uuid[], text[], text[], bigint[], bigint[], text[], bigint[], text[], text[], bigint[]",
		one + `, '{run_10053}', '{s}', '{1}', '{1}', '{charge}', '{0}', '{done}', '{1}', '{0}'`},
	{"scopes.get", "smallint, text, text, text", `0, 'w', 'user', 'u10050'`},
	{"scopes.edit", "smallint[], text[], uuid[], text[], text[], text[], text[], text[], text[], bigint[], bigint[], text[], text[], text[], bigint[], text[]",
		one + `, '{user}', '{u10050}', '{inc}', '{n}', '{NULL}', '{1}', '{3}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.edit", "smallint[], text[], uuid[], text[], text[], text[], text[], text[], text[], bigint[], bigint[], text[], text[], text[], bigint[], text[]",
		one + `, '{user}', '{new}', '{unset}', '{n}', '{k}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.put", "smallint[], text[], uuid[], text[], text[], bigint[], text[], bigint[], text[], text[], text[], bigint[], text[]",
		one + `, '{user}', '{u10050}', '{3}', '{"{}"}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.delete", "smallint[], text[], uuid[], text[], text[], bigint[], text[], text[], text[], bigint[], text[]",
		one + `, '{user}', '{u10050}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{0}', '{NULL}'`},
	{"scopes.old", "smallint, text, bigint", `0, '', 100`},
	{"scopes.expire", "smallint[], text[], uuid[], text[], text[], bigint[], bigint[], text[]", one + `, '{user}', '{u7}', '{3}', '{0}', '{NULL}'`},
	{"scopes.forget", "smallint[], text[], uuid[], text[], text[]", one + `, '{user}', '{u57}'`},
	{"wake.glance", "smallint, text, text, text, bigint", `0, '', '[0]', '[["reaction", "r"], ["operation", "l:n"], ["step", "h"], ["batch", "h"], ["keeping", ""], ["cleaning", ""], ["held reaction", ""], ["held stream", ""], ["held operation", ""], ["held step", ""], ["held item", ""], ["paused batch", ""], ["unfinished reaction", ""], ["dropped events", ""], ["old run", ""], ["old scope", ""], ["scope", "[0,\"w\",\"user\",\"u10050\",3]"]]', 2000`},
	{"batches.cleaned", "smallint[], text[], uuid[], text[], text[]", one + `, '{b}', ARRAY['` + list(`["k%d", 0, 0, 1]`) + `']`},
}

// aMove ends a step and begins another.
const aMove = `{"run": {"status": "RUNNING", "step": "n", "visit": 1, "cancel": false, "over": false},
	"touch": {"status": "COMPLETED", "hold": "drop", "when": "none", "attempts": 1, "failures": 0, "deaths": 0, "quiet": false, "lost": 0, "uncertain": false, "over": true},
	"add": [{"name": "n", "visit": 1, "n": 2, "type": "task", "handler": "h", "status": "RUNNING", "input": 1, "attempts": 1, "timeout": 1000, "held": true,
	"safety": "", "unknown": "hold", "begun": 0, "over": false}],
	"results": [{"n": "x", "o": 0, "s": "done", "r": 1}], "signal": "g", "lapse": true, "events": [{"name": "stepCompleted", "data": {}}, {"name": "stepStarted", "data": {}}]}`

// aStart begins a run.
const aStart = `{"run": {"status": "PENDING", "step": "s", "visit": 1, "state": {}, "memo": {}, "over": false},
	"add": [{"name": "s", "visit": 1, "n": 1, "type": "task", "handler": "h", "status": "PENDING", "input": 1, "attempts": 0, "timeout": 1000, "held": false, "due": 0,
	"safety": "", "unknown": "hold", "begun": 0, "over": false}], "events": [{"name": "created", "data": {}}]}`

// one begins the arguments of a command.
const one = `'{0}', '{w}', '{00000000-0000-7000-8000-000000000001}'`

// list is a JSON list of a hundred of the same, with the numbers from 101.
func list(format string) string {
	all := make([]string, 100)
	for i := range all {
		all[i] = fmt.Sprintf(format, 101+i)
	}
	return "[" + strings.Join(all, ",") + "]"
}

var many = []string{
	`INSERT INTO holdfast.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at, phase, operation, revert, due_at, queue, claimed_at)
	 SELECT 0, 'w', 'n', 'e' || i, 's', 0, '{}', clock_timestamp(), clock_timestamp(), CASE WHEN i > 100 THEN 'free' ELSE 'due' END, 'o' || i, 'r',
	        clock_timestamp() - interval '1 hour', 'h:w:h', clock_timestamp() FROM generate_series(1, 20000) AS i`,
	`INSERT INTO holdfast.wallet VALUES (0, 'w', 'w', 1000000, false, 0, clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	        next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
	 VALUES (0, 'w', 'b', 'w', 'h', 'RUNNING', 500, 3, 5, 1000, false, false, true, false, 20000, 10200, 0, 100, 10000, 0, 100, 0, 100, 10000, 100, 0, 0,
	         clock_timestamp(), clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, holder, epoch, until, deaths, taken_at, sweep_at, sweeps, dirty, updated_at)
	 SELECT 0, 'w', 'b', 'k' || n, n, 1, 1, CASE WHEN n > 10200 THEN 'pending' WHEN n > 10100 THEN 'running' WHEN n BETWEEN 101 AND 200 THEN 'failed' ELSE 'succeeded' END,
	        '{}', 0, CASE WHEN n BETWEEN 10101 AND 10200 THEN 'me' END, 1, CASE WHEN n BETWEEN 10101 AND 10200 THEN clock_timestamp() + interval '1 hour' END, 0,
	        clock_timestamp() + interval '1 hour', CASE WHEN n BETWEEN 101 AND 200 THEN clock_timestamp() END, 0, n BETWEEN 101 AND 200, clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	        next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
	 VALUES (0, 'w', 'o', 'w', 'o', 'RUNNING', 500, 3, 5, 1000, false, false, false, false, 20000, 20001, 0, 0, 20000, 0, 0, 0, 0, 20000, 0, 0, 0,
	         clock_timestamp(), clock_timestamp(), clock_timestamp())`,
	`INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
	 SELECT 0, 'w', 'o', 'k' || n, n, 1, 1, 'succeeded', '{}', 0, 1, 0, 0, false, clock_timestamp() FROM generate_series(1, 20000) n`,
	`DELETE FROM holdfast.run`, `DELETE FROM holdfast.step`, `DELETE FROM holdfast.history`,
	`INSERT INTO holdfast.run (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, finished_at, prune_at, updated_at)
	 SELECT 0, 'w', 'run_' || n, 'd@1', 'key' || n, CASE WHEN n BETWEEN 10001 AND 10100 THEN 'RUNNING' ELSE 'COMPLETED' END, 1, '{}', '{}', '{}', 's', 1, false,
	        clock_timestamp(), CASE WHEN n NOT BETWEEN 10001 AND 10100 THEN clock_timestamp() END,
	        CASE WHEN n NOT BETWEEN 10001 AND 10100 THEN clock_timestamp() + (CASE WHEN n <= 50 THEN -1 ELSE 1 END) * interval '1 day' END, clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths, timeout, taken_at, due_at,
	        begun, uncertain, safety, unknown, created_at)
	 SELECT 0, 'w', 'run_' || n, 's', 1, 1, 'task', CASE WHEN n % 2 = 0 THEN 'h' ELSE '' END, CASE WHEN n BETWEEN 10001 AND 10100 THEN 'RUNNING' ELSE 'COMPLETED' END, '{}', 1, 0,
	        CASE WHEN n BETWEEN 10041 AND 10080 THEN 'me' END, 1, CASE WHEN n BETWEEN 10041 AND 10080 THEN clock_timestamp() + interval '1 hour' END, 0, 3600000,
	        clock_timestamp(), CASE WHEN n BETWEEN 10001 AND 10040 THEN clock_timestamp() END, 0, n BETWEEN 10081 AND 10090, '', 'hold', clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.approval (shard, workspace, run, step, visit, prompt, requesters, status, created_at, decided_at)
	 SELECT 0, 'w', 'run_' || n, 's', 1, '?', '[]', CASE WHEN n BETWEEN 10001 AND 10100 THEN 'pending' ELSE 'approved' END, clock_timestamp(), clock_timestamp()
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.signal (shard, workspace, run, id, n, type, payload, taken, at)
	 SELECT 0, 'w', 'run_' || n, 'g', 1, 't', '1', CASE WHEN n BETWEEN 10001 AND 10100 THEN NULL ELSE 's/1' END, clock_timestamp() FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.effect (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
	 SELECT 0, 'w', 'run_' || n || '/s/1', 'x', 0, 1, 'begun', 'hold', clock_timestamp() FROM generate_series(1, 20000) n`,
	`DELETE FROM holdfast.scope`,
	`INSERT INTO holdfast.scope (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at)
	 SELECT 0, 'w', 'user', 'u' || n, 3, CASE WHEN n BETWEEN 51 AND 100 THEN NULL ELSE '{"n": 1}'::jsonb END, clock_timestamp(), clock_timestamp(),
	        CASE WHEN n <= 100 THEN clock_timestamp() - interval '1 minute' WHEN n % 2 = 0 THEN clock_timestamp() + interval '1 day' END
	   FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.due SELECT 0, 'r', 'w', 's' || n, v FROM generate_series(1, 10000) n, generate_series(0, 1) v`,
	`INSERT INTO holdfast.event (shard, id, n, workspace, stream, version, name, data, at)
	 SELECT 0, gen_random_uuid(), 0, 'w', 's' || n, v, 'e', '{}', clock_timestamp() FROM generate_series(1, 10000) n, generate_series(0, 1) v`,
	`INSERT INTO holdfast.stream (shard, workspace, name, head) SELECT 0, 'w', 's' || n, 1 FROM generate_series(1, 20000) n`,
	`INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at, holder, until)
	 SELECT 0, 'w', r, 's' || n, -1, 1, clock_timestamp(), clock_timestamp() - n * interval '1 ms', 1, clock_timestamp(),
	        CASE WHEN n BETWEEN 101 AND 200 AND r = 'r' THEN 'h' END, CASE WHEN n BETWEEN 101 AND 200 AND r = 'r' THEN clock_timestamp() + interval '1 hour' END
	   FROM generate_series(1, 20000) n, (VALUES ('r'), ('$feed')) AS q(r)`,
}

// Verifies that what works on a few rows of many reads few: under the settings
// that the engine uses, with plans made while the tables were empty, that being
// known or not, and after they grew; and with plans made for how they are then.
func TestAFewOfManyReadsFew(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	for _, first := range []string{"", "VACUUM ANALYZE"} {
		t.Run("first "+first, func(t *testing.T) {
			t.Parallel()
			url := prepared(t)
			openEngine(t, postgres.URL(url))
			conn := connect(t, url)
			for _, table := range []string{"due", "event", "stream", "follow", "sequence", "feed", "reaction", "wallet", "batch", "item", "run", "step", "approval", "signal", "effect", "scope", "scope_floor"} { // what is known of them is this test's to say
				execute(t, conn, `ALTER TABLE holdfast.`+table+` SET (autovacuum_enabled = false)`)
			}
			if first != "" {
				execute(t, conn, first)
			}
			execute(t, conn, `SET plan_cache_mode = force_generic_plan`, `SET enable_seqscan = off`, `SET jit = off`,
				`INSERT INTO holdfast.sequence VALUES (0, 'w', 0)`,
				`INSERT INTO holdfast.reaction (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, created_at, updated_at)
				 VALUES (0, 'w', 'r', 'event', 'null', '', '{}', 1, 0, 0, 'live', clock_timestamp(), clock_timestamp())`)
			texts, err := postgres.Texts("holdfast")
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range planned {
				execute(t, conn, fmt.Sprintf(`PREPARE p%d (%s) AS %s`, i, p.types, texts[p.name]), fmt.Sprintf(`EXECUTE p%d (%s)`, i, p.args))
			}
			execute(t, conn, many...)
			for i, p := range planned {
				if kind, _, _ := strings.Cut(p.name, "."); first != "" && p.name != "batches.add" && (kind == "batches" || kind == "runs" || kind == "scopes") {
					continue // of tables that are known to be empty, whatever looks up by key has any plan, until they are analyzed
				}
				readsFew(t, conn, p.name+", with an old plan", fmt.Sprintf(`p%d (%s)`, i, p.args))
			}
			execute(t, conn, `ANALYZE`)
			for i, p := range planned {
				readsFew(t, conn, p.name+", with a new plan", fmt.Sprintf(`p%d (%s)`, i, p.args))
			}
		})
	}
}

// node is a node of a plan, with what went through it.
type node struct {
	Type    string  `json:"Node Type"`
	Index   string  `json:"Index Name"`
	CTE     string  `json:"CTE Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Joined  float64 `json:"Rows Removed by Join Filter"`
	Plans   []node
}

func (n node) most() float64 {
	most := (n.Rows + n.Removed + n.Joined) * max(n.Loops, 1)
	for _, p := range n.Plans {
		most = max(most, p.most())
	}
	return most
}

func (n node) tree(indent string) string {
	text := fmt.Sprintf("%s%s %s%s: %.0f times %.0f rows, without %.0f\n", indent, n.Type, n.Index, n.CTE, n.Loops, n.Rows, n.Removed+n.Joined)
	for _, p := range n.Plans {
		text += p.tree(indent + "  ")
	}
	return text
}

// readsFew runs a statement, takes it back, and fails if any part of its plan had
// to do with more than a few times what it concerns.
func readsFew(t *testing.T, conn *pgx.Conn, what, call string) {
	t.Helper()
	execute(t, conn, `BEGIN`)
	defer execute(t, conn, `ROLLBACK`)
	var text string
	if err := conn.QueryRow(t.Context(), `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE `+call).Scan(&text); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	if most := plans[0].Plan.most(); most == 0 || most > 1000 { // nothing at all would show nothing
		t.Errorf("%s has to do with %.0f rows:\n%s", what, most, plans[0].Plan.tree(""))
	}
}

package postgres_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// cost is what a statement reads: blocks, and rows that scans returned or filtered out. Index entries that an index scan
// passes over count only as blocks.
type cost struct {
	Type    string  `json:"Node Type"`
	Index   string  `json:"Index Name"`
	Hit     float64 `json:"Shared Hit Blocks"`
	Read    float64 `json:"Shared Read Blocks"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Plans   []cost
}

func (c cost) blocks() float64 { return c.Hit + c.Read }

func (c cost) rows() (sum float64) {
	if c.Table != "" {
		sum = (c.Rows + c.Removed) * c.Loops
	}
	for _, p := range c.Plans {
		sum += p.rows()
	}
	return sum
}

// exceeds reports whether a statement reads more than in a smaller table. An index may be a level deeper, and be read up to
// another block.
func (c cost) exceeds(small cost) bool {
	return c.rows() > small.rows()*1.1+4 || c.blocks() > small.blocks()*1.5+8
}

func (c cost) String() string { return fmt.Sprintf("%.0f rows in %.0f blocks", c.rows(), c.blocks()) }

// measure runs a prepared statement and rolls it back. The first run reads the catalog.
func measure(t *testing.T, conn *pgx.Conn, name, args string) cost {
	t.Helper()
	var c cost
	for range 2 {
		execute(t, conn, `BEGIN`)
		c = planOf[cost](t, conn, name, `ANALYZE, BUFFERS, TIMING OFF`, `EXECUTE "`+name+`" (`+args+`)`)
		execute(t, conn, `ROLLBACK`)
	}
	return c
}

// pages are the checks, with the key after which a page of 20 begins. The histories of entities come right before those of
// runs, which are not checked.
var pages = []struct{ name, args string }{
	{"check.streams", `0, 'w', 's%s', 20`},
	{"check.events", `0, 'w', 's%s', 20`},
	{"check.entities", `0, 'w', 'l', 'e%s', 20`},
	{"check.claims", `0, 'w', 'l', 'e%s', 20`},
	{"check.statuses", `0, 'w', 'l', 'e%s', 20`},
	{"check.scopes", `0, 'w', 'k', 'u%s', 20`},
	{"check.wallets", `0, 'w', 'w%s', 20`},
	{"check.batches", `0, 'w', 'b%s', 20`},
	{"check.runs", `0, 'w', 'run_%s', 20`},
	{"check.histories", `0, 'w', '$batch/b%s', 20`},
	{"check.histories", `0, 'w', '$entity/l/e%s', 20`},
	{"check.histories", `0, 'w', '$scope/k/u%s', 20`},
	{"check.positions", `0, 'w', 'r', 's%s', 20`},
	{"check.positions", `0, 'w', 'h', '$entity/l/e%s', 20`},
}

// finished adds rows from A to B of everything that a check reads, all of them consistent, in several forms of one INSERT.
const finished = `
INSERT INTO holdfast.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at, operation, revert, epoch, outcome, begun)
	SELECT 0, 'w', 'l', 'e' || n, 'done', 2, '{}', now(), now(), 'op' || n, 'new', 1, 'success', 1 FROM numbers;
INSERT INTO holdfast.scope (shard, workspace, kind, id, version, state, created_at, updated_at) SELECT 0, 'w', 'k', 'u' || n, 2, '{}', now(), now() FROM numbers;
INSERT INTO holdfast.wallet SELECT 0, 'w', 'w' || n, 9, false, 2, now(), now() FROM numbers;
INSERT INTO holdfast.ledger SELECT 0, 'w', 'w' || n, 1, 10, 10, 'deposit', 'd', now() FROM numbers;
INSERT INTO holdfast.ledger SELECT 0, 'w', 'w' || n, 2, -1, 9, 'charge', '$batch/b' || n || '/charge/k', now() FROM numbers;
INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
	SELECT 0, 'w', 'b' || n, 'w' || n, 'h', 'COMPLETED', 1, 1, 1, 1, false, false, true, false, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 2, now(), now(), now() FROM numbers;
INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, epoch, deaths, sweeps, dirty, updated_at)
	SELECT 0, 'w', 'b' || n, 'k', 1, 1, 1, 'succeeded', '{}', 0, 1, 0, 0, false, now() FROM numbers;
INSERT INTO holdfast.run (shard, workspace, id, definition, status, version, input, state, memo, step, visit, cancel_requested, created_at, finished_at, updated_at)
	SELECT 0, 'w', 'run_' || n, 'd', 'COMPLETED', 2, '{}', '{}', '{}', 's', 1, false, now(), now(), now() FROM numbers;
INSERT INTO holdfast.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, epoch, deaths, timeout, begun, uncertain, safety, unknown, signal, created_at)
	SELECT 0, 'w', 'run_' || n, s, 1, 1, 'event', 'h', 'COMPLETED', '{}', 1, 0, 1, 0, 1, 1, false, '', 'hold', 't', now() FROM numbers, (VALUES ('s'), ('t')) x(s);
INSERT INTO holdfast.signal (shard, workspace, run, id, n, type, payload, at) SELECT 0, 'w', 'run_' || n, 'g', 1, 't', '1', now() FROM numbers;
INSERT INTO holdfast.approval (shard, workspace, run, step, visit, prompt, requesters, status, created_at) SELECT 0, 'w', 'run_' || n, 's', 1, '?', '[]', 'approved', now() FROM numbers;
INSERT INTO holdfast.effect (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
	SELECT 0, 'w', o || n || p, 'x', 0, 1, 'done', 'hold', now() FROM numbers, (VALUES ('op', ''), ('run_', '/s/1'), ('run_', '/t/1')) x(o, p);
INSERT INTO holdfast.stream (shard, workspace, name, head) SELECT 0, 'w', 's' || n, 2 FROM numbers;
INSERT INTO holdfast.event (shard, id, n, workspace, stream, version, name, data, at)
	SELECT 0, gen_random_uuid(), 0, 'w', 's' || n, v, 'e', '{}', now() FROM numbers, generate_series(0, 2) v;
INSERT INTO holdfast.history (shard, id, n, workspace, stream, version, name, data, at)
	SELECT 0, gen_random_uuid(), 0, 'w', s || n, v, 'e', '{}', now() FROM numbers, generate_series(0, 2) v, (VALUES ('$entity/l/e'), ('$scope/k/u'), ('$batch/b'), ('$run/run_')) x(s);
INSERT INTO holdfast.lifecycle (shard, workspace, name, revision, statuses, config, updated_at, claims)
	SELECT 0, 'v' || n, 'l', 1, '["new", "done"]', '{}', now(), '[]' FROM numbers;
INSERT INTO holdfast.reaction (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, created_at, updated_at)
	SELECT 0, 'v' || n, 'r', 'event', '["*"]', '', '{}', 1, 0, 0, 'live', now(), now() FROM numbers;
INSERT INTO holdfast.due SELECT 0, 'r', 'v' || n, 's', 0 FROM numbers;
INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
	SELECT 0, 'w', r, s || n, 2, 2, now(), now(), 1, now() FROM numbers, (VALUES ('r', 's'), ('h', '$entity/l/e')) x(r, s)`

// declared are the rows in the workspace of the others that do not grow.
const declared = `
INSERT INTO holdfast.lifecycle (shard, workspace, name, revision, statuses, config, updated_at, claims) VALUES (0, 'w', 'l', 1, '["new", "done"]', '{}', now(), '[]');
INSERT INTO holdfast.reaction (shard, workspace, name, source, events, streams, options, max_deaths, priority, base, state, created_at, updated_at)
	SELECT 0, 'w', r, s, '["*"]', '', '{}', 1, 0, 0, 'live', now(), now() FROM (VALUES ('r', 'event'), ('h', 'history')) x(r, s)`

// grow adds rows with the numbers from..to, of four digits. No two are due at the same time: an index stores equal times once.
func grow(t *testing.T, conn *pgx.Conn, rows string, from, to int) {
	t.Helper()
	numbers := fmt.Sprintf("(SELECT lpad(i::text, 4, '0') AS n FROM generate_series(%d, %d) i) AS numbers", from, to)
	for _, insert := range strings.Split(rows, ";\n") {
		execute(t, conn, strings.NewReplacer("FROM numbers", "FROM "+numbers, "tomorrow", "now() + interval '1 day' + n::int * interval '1 ms'").Replace(insert))
	}
}

// onceEmpty opens a connection whose plans of some statements were made while the tables were empty, whether or not that
// was known.
func onceEmpty(t *testing.T, wanted func(name string) bool, f func(*testing.T, *pgx.Conn)) {
	t.Helper()
	texts := statements(t)
	maps.DeleteFunc(texts, func(name, _ string) bool { return !wanted(name) })
	for _, known := range []string{"nothing is known", "known to be empty"} {
		t.Run(known, func(t *testing.T) {
			t.Parallel()
			conn := planner(t, prepared(t))
			unknown(t, conn)
			if known == "known to be empty" {
				execute(t, conn, `VACUUM ANALYZE`)
			}
			prepare(t, conn, texts)
			f(t, conn)
		})
	}
}

// TestPagesOfACheckCostTheSame verifies that every page of a check reads as much as the first one did in a database of an
// eighth of the size: with plans made before the tables grew, and with plans made for current statistics.
func TestPagesOfACheckCostTheSame(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	check := func(name string) bool { return strings.HasPrefix(name, "check.") }
	onceEmpty(t, check, func(t *testing.T, conn *pgx.Conn) {
		grow(t, conn, declared, 0, 0)
		grow(t, conn, finished, 1, 250)
		page := func(args string, after int) string { return strings.Replace(args, "%s", fmt.Sprintf("%04d", after), 1) }
		var first []cost
		for _, p := range pages {
			first = append(first, measure(t, conn, p.name, page(p.args, 0)))
			if c := first[len(first)-1]; c.rows() < 20 {
				t.Errorf("%s: %v, want a page of 20", p.name, c)
			}
		}
		grow(t, conn, finished, 251, 2000)
		for _, when := range []string{"with an old plan", "with a new plan"} {
			for i, p := range pages {
				for _, after := range []int{0, 1000, 1980, 1990} {
					if c := measure(t, conn, p.name, page(p.args, after)); c.exceeds(first[i]) {
						t.Errorf("%s (%s) %s: %v, want at most the %v of the first page of 250", p.name, page(p.args, after), when, c, first[i])
					}
				}
			}
			execute(t, conn, `ANALYZE`)
		}
	})
}

// poll is a statement that looks for work that is due or expired.
type poll struct {
	name, args string
	each       bool // it looks in workspace w, or once in each workspace
}

var polls = []poll{
	{"runs.list_ready", `0, '', '["h"]', 100, ''`, false},
	{"runs.list_ready", `0, 'w', '["h"]', 100, ''`, true},
	{"runs.list_turns", `0, '', '[["h", "", ""]]', 66, '[]'`, true},
	{"runs.list_expired", `0, '', 100`, false},
	{"runs.list_prunable", `0, '', 100`, false},
	{"batches.list_prunable", `0, '', 100`, false},
	{"entities.take_due", `0, '', '[["h:w:h", 1000, "w"]]', 'me', 100, 0`, true},
	{"entities.list_turns", `0, '', '[["h:w:h", ""]]', 66, '[]'`, true},
	{"entities.list_expired", `0, '', '["l"]', 100`, false},
	{"reactions.take", `0, '', '[["r", 1000, null, "", "w"]]', 'me', 100, 100, 0, 100`, true},
	{"reactions.list_turns", `0, '', '[["r", ""]]', 66, '[]'`, true},
	{"reactions.list_expired", `0, '', 100`, false},
	{"batches.take_cleanup", `0, 'w', 1000, 100, '', '[]', 1, 0`, true},
	{"batches.list_turns", `0, '', '[["", ""]]', 66, '[]'`, true},
	{"batches.list_due", `0, '', 100`, false},
	{"batches.list_expired", `0, '', 100`, false},
	{"scopes.list_expired", `0, '', 100`, false},
	{"streams.close_list_expired", `0, '', 100`, false},
	{"idempotency.prune", `0, '', 100`, false},
	{"claim_tokens.prune", `0, '', 100`, false},
	{"sessions.prune", `0, '', 100`, false},
	{"refusals.prune", `0, '', 3600000, 100`, false},
	{"effects.prune", `0, '', '1', 3600000, 100`, false},
	{"wake.list_due", `0, '', '[0]', '[["reaction", "r"], ["operation", "h:w:h"], ["step", "h"], ["keeping", ""], ["cleaning", ""], ["held reaction", ""], ["held stream", ""], ` +
		`["held operation", ""], ["held step", ""], ["held item", ""], ["old run", ""], ["old batch", ""], ["old scope", ""], ["old request", ""], ["old token", ""], ["old session", ""], ["old refusal", "3600000"]]', 2000`, true},
}

// notDue adds work that is due in a day, and leases that last as long.
const notDue = `
INSERT INTO holdfast.run (shard, workspace, id, definition, status, version, input, state, memo, step, visit, cancel_requested, created_at, finished_at, prune_at, updated_at)
	SELECT 0, 'w', 'r' || n, 'd', 'COMPLETED', 2, '{}', '{}', '{}', 's', 1, false, now(), now(), tomorrow, now() FROM numbers;
INSERT INTO holdfast.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, until, due_at, epoch, deaths, timeout, begun, uncertain, safety, unknown, created_at)
	SELECT 0, 'w', 'r' || n, x.name, 1, 1, 'task', 'h', x.status, '{}', 1, 0, x.holder, CASE WHEN x.holder IS NOT NULL THEN tomorrow END,
	       CASE WHEN x.holder IS NULL THEN tomorrow END, 1, 0, 86400000, 0, false, '', 'hold', now()
	  FROM numbers, (VALUES ('s', 'RUNNING', 'a'), ('t', 'WAITING', NULL)) x(name, status, holder);
INSERT INTO holdfast.entity (shard, workspace, lifecycle, id, status, version, data, created_at, updated_at, phase, operation, revert, epoch, queue, holder, until, due_at)
	SELECT 0, 'w', 'l', x.phase || n, 's', 0, '{}', now(), now(), x.phase, x.phase || n, 's', 1, 'h:w:h', x.holder, CASE WHEN x.holder IS NOT NULL THEN tomorrow END, tomorrow
	  FROM numbers, (VALUES ('held', 'a'), ('due', NULL)) x(phase, holder);
INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at, holder, until)
	SELECT 0, 'w', 'r', x.name || n, 0, 1, tomorrow, tomorrow, 1, now(), x.holder, CASE WHEN x.holder IS NOT NULL THEN tomorrow END
	  FROM numbers, (VALUES ('held', 'a'), ('due', NULL)) x(name, holder);
INSERT INTO holdfast.item (shard, workspace, batch, key, n, cost, charged, state, input, failures, holder, until, epoch, deaths, sweep_at, sweeps, dirty, updated_at)
	SELECT 0, 'w', 'b', x.state || n, n::bigint, 1, 1, x.state, '{}', 0, x.holder, CASE WHEN x.holder IS NOT NULL THEN tomorrow END, 1, 0,
	       CASE WHEN x.holder IS NULL THEN tomorrow END, 0, x.holder IS NULL, now()
	  FROM numbers, (VALUES ('running', 'a'), ('failed', NULL)) x(state, holder);
INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, due_at, served_at, created_at, updated_at)
	SELECT 0, 'w', 'b' || n, 'w', 'h', 'COMPLETED', 1, 1, 1, 1, false, false, true, false, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 2, tomorrow, now(), now(), now() FROM numbers;
INSERT INTO holdfast.scope (shard, workspace, kind, id, version, state, created_at, updated_at, expires_at) SELECT 0, 'w', 'k', 'u' || n, 2, '{}', now(), now(), tomorrow FROM numbers;
INSERT INTO holdfast.stream (shard, workspace, name, head, state, holder, until) SELECT 0, 'w', 's' || n, 2, 'closing', 'a', tomorrow FROM numbers;
INSERT INTO holdfast.request (shard, workspace, key, fingerprint, state, epoch, created_at, expires_at) SELECT 0, 'w', 'k' || n, '', 'done', 1, now(), tomorrow FROM numbers;
INSERT INTO holdfast.token SELECT 0, 'w', 'k' || n, 'l', 'e', 'o', 1, '', tomorrow FROM numbers;
INSERT INTO holdfast.session SELECT 0, 'w', 'k', 'i' || n, 'h', now(), tomorrow FROM numbers;
INSERT INTO holdfast.refusal SELECT 0, 'w', gen_random_uuid()::text, '$entity/l/e', 1, 's', 'r', 'a', 'n', 'q', 'c', 'o', 0, 1, '{}', now() FROM numbers`

// runningBatch adds the batch of the items that are running.
const runningBatch = `
INSERT INTO holdfast.batch (shard, workspace, id, wallet, handler, status, parallel, attempts, allowed, timeout, undo, artifacts, sealed, cancel_requested, items,
	next, waiting, running, succeeded, accepted, failed, cancelled, dirty, charged, refunded, need, version, served_at, created_at, updated_at)
	VALUES (0, 'w', 'b', 'w', 'h', 'RUNNING', 1, 1, 1, 1, false, false, true, false, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 2, now(), now(), now())`

// TestAPollDoesNotWalkOverWhatIsNotDue verifies that a statement that looks for work reads no more if there is much work
// that is due later, and no more in one workspace if there is much work that is due in another: with plans made before the
// tables grew, and with plans made for current statistics.
func TestAPollDoesNotWalkOverWhatIsNotDue(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	poll := func(name string) bool {
		return slices.ContainsFunc(polls, func(p poll) bool { return p.name == name })
	}
	onceEmpty(t, poll, func(t *testing.T, conn *pgx.Conn) {
		grow(t, conn, declared, 0, 0)
		grow(t, conn, runningBatch, 0, 0)
		grow(t, conn, notDue, 1, 250)
		dueElsewhere := strings.NewReplacer("'w'", "'v'", "tomorrow", "now() - interval '1 day' + n::int * interval '1 ms'").Replace(notDue)
		grow(t, conn, dueElsewhere, 1, 1)
		costs := make([]cost, len(polls))
		for i, p := range polls {
			costs[i] = measure(t, conn, p.name, p.args)
		}
		flat := func(when string, all bool) {
			t.Helper()
			for i, p := range polls {
				if c := measure(t, conn, p.name, p.args); (all || p.each) && c.exceeds(costs[i]) {
					t.Errorf("%s (%.60s) %s: %v, want at most the %v of 250 rows", p.name, p.args, when, c, costs[i])
				}
			}
		}
		grow(t, conn, notDue, 251, testlevel.Pick(1500, 8000, 8000))
		flat("with an old plan", true)
		execute(t, conn, `ANALYZE`)
		flat("with a new plan", true)
		grow(t, conn, dueElsewhere, 2, testlevel.Pick(800, 4000, 4000))
		flat("with much that is due in another workspace", false)
	})
}

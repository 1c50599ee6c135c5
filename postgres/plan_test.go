package postgres_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/postgres"
)

// Verifies that a take from many due tasks reads as few as it takes: its plan,
// under the settings that the engine uses, finds them by the index of due work
// and again by their place, and joins, sorts and reads no whole table.
func TestATakeFromManyReadsFew(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	openEngine(t, postgres.URL(url))
	conn := connect(t, url)
	execute(t, conn,
		`INSERT INTO holdfast.task (shard, workspace, queue, id, version, state, due_at, input, failures, epoch, deaths, created_at, updated_at)
		 SELECT 0, 'w' || n % 7, 'q' || n % 3, n::text, 0, 'due', clock_timestamp() - n * interval '1 ms', '{}', 0, 0, 0, clock_timestamp(), clock_timestamp()
		   FROM generate_series(1, 20000) n`,
		`ANALYZE holdfast.task`, `SET plan_cache_mode = force_generic_plan`, `SET enable_seqscan = off`, `SET jit = off`)
	texts, err := postgres.Texts("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, conn, `PREPARE take (smallint, text, text, text, bigint, bigint) AS `+texts["tasks.take"])
	rows, err := conn.Query(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE take (0, '', '["q0","q1"]', 'h', 30000, 100)`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, line)
	}
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, "task_due") || !strings.Contains(text, "Tid Scan") ||
		strings.Contains(text, "Hash Join") || strings.Contains(text, "Merge Join") || strings.Contains(text, "Seq Scan on task") {
		t.Errorf("the plan is\n%s", text)
	}
	t.Log(plan[len(plan)-1])
}

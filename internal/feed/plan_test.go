package feed_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/postgres"
)

// TestABatchFromManyReadsFew verifies that what numbers and what reads a feed,
// among many streams with many events, and under the settings that the engine
// uses, finds what it needs by indexes in their order, and reads no table from end
// to end.
func TestABatchFromManyReadsFew(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	conn := connect(t, url)
	texts, err := postgres.Texts("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`SET plan_cache_mode = force_generic_plan`, `SET enable_seqscan = off`, `SET jit = off`,
		`PREPARE sequence (smallint, text, bigint, bigint) AS ` + texts["feed.sequence"],
		`PREPARE read (smallint, text, bigint, bigint) AS ` + texts["feed.read"],
		`INSERT INTO holdfast.sequence VALUES (0, 'w', 20000)`,
		`INSERT INTO holdfast.stream (shard, workspace, name, head) SELECT 0, 'w', 's' || n, 3 FROM generate_series(1, 20000) n`,
		`INSERT INTO holdfast.event (shard, id, n, workspace, stream, version, name, data, at)
		 SELECT 0, gen_random_uuid(), 0, 'w', 's' || n, v, 'e', '{}', clock_timestamp() FROM generate_series(1, 20000) n, generate_series(0, 3) v`,
		`INSERT INTO holdfast.feed SELECT 0, 'w', n, 's' || n, 0 FROM generate_series(1, 20000) n`,
		`INSERT INTO holdfast.follow (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
		 SELECT 0, 'w', '$feed', 's' || n, 0, 3, clock_timestamp(), clock_timestamp() - n * interval '1 ms', 0, clock_timestamp() FROM generate_series(1, 20000) n`,
		`ANALYZE`,
	} {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	for name, call := range map[string]string{"sequence": `sequence (0, 'w', 100, 200)`, "read": `read (0, 'w', 5000, 100)`} {
		rows, err := conn.Query(t.Context(), `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE `+call)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, line)
		}
		rows.Close()
		text := strings.ReplaceAll(strings.Join(plan, "\n"), "Seq Scan on clock", "Scan on clock") // it has one row
		if err := rows.Err(); err != nil || strings.Contains(text, "Seq Scan") || strings.Contains(text, "rows=20000") || strings.Contains(text, "rows=15000") ||
			(name == "sequence") != (strings.Contains(text, "follow_ready") && strings.Contains(text, "Tid Scan")) {
			t.Errorf("%s (%v):\n%s", name, err, text)
		}
	}
}

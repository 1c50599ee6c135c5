package sqlite

import (
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/store"
)

// walks are the scripts that scan a whole table, each with its reason. SQLite plans by the text
// alone unless a program runs ANALYZE, so that a plan does not change as tables grow.
var walks = map[string]string{
	"check.leases":               "it counts what is held, in the indexes of that",
	"handlers.list_url_handlers": "all handlers that are URLs, when a node starts or one changes",
	"keys.has_valid":             "it asks whether there is any",
	"lifecycles.list_outdated":   "all workspaces that have a lifecycle, when its config changes",
	"lifecycles.find_workspace":  "all workspaces that have a lifecycle, when a program starts",
	"nodes.prune":                "one row of each node, once an hour",
	"registry.sum_revisions":     "one row of each workspace that has a registry",
	"secrets.list_sealed":        "all encrypted values, when an operator changes the encryption key",
	"workspaces.list_shards":     "one row of each workspace, when a node starts",
}

// TestEveryStatementSearches verifies that every statement finds its rows by more of a key than the
// shard, or by an index of live rows.
func TestEveryStatementSearches(t *testing.T) {
	s, _, err := File(filepath.Join(t.TempDir(), "x.db")).open(t.Context(), store.Options{Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sc := range s.scripts {
		for _, st := range withLook(sc) {
			for _, line := range planOf(t, s, st.text) {
				m := scan.FindStringSubmatch(line)
				if m != nil && tablesIn(st.text)[m[1]+m[2]] && walks[sc.name] == "" {
					t.Errorf("%s: %s", sc.name, line)
				}
			}
		}
	}
}

// withLook returns all statements of a script.
func withLook(sc *script) []*statement {
	if sc.look == nil {
		return sc.all()
	}
	return append(sc.all(), sc.look)
}

// TestAPageIsTheOnlyRange verifies that a check reads one range that is open at its end, which is that of its page, and all
// else by keys. SQLite bounds a range of row values at its end only by the first column.
func TestAPageIsTheOnlyRange(t *testing.T) {
	s, _, err := File(filepath.Join(t.TempDir(), "x.db")).open(t.Context(), store.Options{Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sc := range s.scripts {
		if !strings.HasPrefix(sc.name, "check.") || walks[sc.name] != "" {
			continue
		}
		var ranges []string
		for _, line := range planOf(t, s, sc.do.text) {
			if open.MatchString(line) {
				ranges = append(ranges, line)
			}
		}
		if len(ranges) != 1 {
			t.Errorf("%s reads %d ranges, want one:\n%s", sc.name, len(ranges), strings.Join(ranges, "\n"))
		}
	}
}

// open matches a search that is bound to no workspace.
var open = regexp.MustCompile(`^SEARCH \w+ (?:EXISTS )?USING .*\((?:\(shard,|shard[<>])`)

// unbounded are the scripts that search an index of work without the present time, each with its reason.
var unbounded = map[string]string{
	"batches.take":              "it counts the leases of one batch, which are limited",
	"entities.list_overdue":     "what waits for a worker, which each step allows for another time",
	"feed.assign_positions":     "the streams of a feed never wait",
	"inbox.list_due_handlers":   "it finds which handler comes next, and then whether work is due for it",
	"inbox.list_oldest_due":     "it finds which handler or reaction comes next, and then whether work is due for it",
	"inbox.list_upcoming":       "for tests: it lists also what is due later",
	"reactions.list_expired":    "it counts the leases of a holder that has crashed",
	"reactions.release_expired": "it counts the leases of a holder that has crashed",
}

// later matches a search in an index that contains work which is due later.
var later = regexp.MustCompile(`^SEARCH \w+ (?:EXISTS )?USING (?:COVERING )?INDEX holdfast_(?:(?:entity|step)_(?:due|turn)|follow_ready|batch_due|item_turn|item_sweep|item_waiting|run_prune|refusal_at|\w+_held|\w+_expires) \((.*)\)$`)

// bounded matches the end of a search that ends at a time, finds the next workspace, or finds streams on which a holder has crashed,
// which are few.
var bounded = regexp.MustCompile(`(?:<|workspace>|crash_group>)\?$`)

// TestPollsAreBoundedByTheTime verifies that a search in an index of work ends at the present time, or finds only which workspace
// comes next: it does not walk over work that is due later.
func TestPollsAreBoundedByTheTime(t *testing.T) {
	s, _, err := File(filepath.Join(t.TempDir(), "x.db")).open(t.Context(), store.Options{Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, sc := range s.scripts {
		for _, st := range withLook(sc) {
			next, due := false, false
			for _, line := range planOf(t, s, st.text) {
				m := later.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				next, due = next || strings.HasSuffix(m[1], "workspace>?"), due || strings.HasSuffix(m[1], "<?")
				if unbounded[sc.name] == "" && !bounded.MatchString(m[1]) {
					t.Errorf("%s: %s", sc.name, line)
				}
			}
			if next && !due {
				t.Errorf("%s looks for the next workspace in which work is due, over all that is not: look for the next workspace, and then whether work is due there", sc.name)
			}
		}
	}
}

// TestPagesAreReadWithoutASort verifies that rows that may be large, and are read in pages, come in
// the order of an index: a sort would also read all rows after the page.
func TestPagesAreReadWithoutASort(t *testing.T) {
	s, _, err := File(filepath.Join(t.TempDir(), "x.db")).open(t.Context(), store.Options{Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"events.read", "events.read_backward", "feed.read", "history.tail", "entities.list", "batches.list", "batches.list_backward", "batches.list_items", "runs.list", "runs.list_open", "runs.list_steps"} {
		sc := s.scripts[name]
		if sc == nil {
			t.Fatalf("script %s does not exist", name)
		}
		for _, line := range planOf(t, s, sc.do.text) {
			if strings.Contains(line, "TEMP B-TREE") || strings.HasPrefix(line, "MATERIALIZE") && line != "MATERIALIZE edge" { // the edge of a search is one id
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// TestListsUseTheirIndex verifies that statements that would work with another index, over rows that they leave out, use the
// right one.
func TestListsUseTheirIndex(t *testing.T) {
	s, _, err := File(filepath.Join(t.TempDir(), "x.db")).open(t.Context(), store.Options{Log: slog.New(slog.DiscardHandler)}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, want := range map[string][]string{
		"overview.count_batches":   {"holdfast_batch_created (shard=? AND workspace=?)"},
		"batches.list_backward":    {"holdfast_batch_created (shard=? AND workspace=? AND (created_at,id)>(?,?) AND (created_at,id)<(?,?))"},
		"batches.list":             {"PRIMARY KEY (shard=? AND workspace=? AND id>? AND id<?)"},
		"reactions.list_positions": {"holdfast_follow_blocked (shard=? AND workspace=? AND (reaction,stream)>(?,?) AND reaction<?)", "holdfast_follow_failing (shard=? AND workspace=? AND (reaction,stream)>(?,?) AND reaction<?)", "PRIMARY KEY (shard=? AND workspace=? AND (reaction,stream)>(?,?) AND reaction<?)"},
	} {
		plan := strings.Join(planOf(t, s, s.scripts[name].do.text), "\n")
		for _, one := range want {
			if !strings.Contains(plan, one) {
				t.Errorf("%s does not search %s:\n%s", name, one, plan)
			}
		}
	}
}

var (
	scan    = regexp.MustCompile(`^(?:SCAN (\w+)(?: USING .*)?|SEARCH (\w+) (?:EXISTS )?USING PRIMARY KEY \(shard=\?\))$`)
	named   = regexp.MustCompile(`holdfast_(\w+)(?: AS (\w+))?`)
	derived = regexp.MustCompile(`(?:\) AS (\w+)|(\w+)(?:\([\w, ]+\))? AS (?:MATERIALIZED )?\()`)
	binding = regexp.MustCompile(`\?(\d+)`)
)

// tablesIn returns the names under which a statement uses tables.
func tablesIn(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		all[m[2]], all["holdfast_"+m[1]] = true, true
	}
	for _, m := range derived.FindAllStringSubmatch(text, -1) {
		delete(all, m[1])
		delete(all, m[2])
	}
	return all
}

func planOf(t *testing.T, s *adapter, text string) (lines []string) {
	t.Helper()
	last := 0
	for _, m := range binding.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		last = max(last, n)
	}
	rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, last)...)
	if err != nil {
		t.Fatalf("%s: %v", strings.TrimSpace(text), err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

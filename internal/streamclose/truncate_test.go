package streamclose_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/streamclose"
)

func shard(t *testing.T, hf *holdfast.Engine) int16 {
	t.Helper()
	at, err := engine.Of(hf).Partition(ctx, store.Write)
	if err != nil {
		t.Fatal(err)
	}
	return at.Shard
}

// TestTruncate verifies that events below a version are dropped, also in an archived
// stream, that the last event stays, and that dropped events stay dropped.
func TestTruncate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "s", 5)
		for _, c := range []struct {
			before int64
			code   fault.Code
			reads  string
		}{
			{0, "", "0:a 1:a 2:a 3:a 4:a"},
			{2, "", "2:a 3:a 4:a"},
			{1, "", "2:a 3:a 4:a"},
			{5, fault.Validation, "2:a 3:a 4:a"},
			{-1, fault.Validation, "2:a 3:a 4:a"},
			{4, "", "4:a"},
		} {
			if err := streamclose.Truncate(ctx, engine.Of(hf), "s", c.before, nil); fault.CodeOf(err) != c.code {
				t.Errorf("before %d: got error %v", c.before, err)
			}
			reads(t, hf, "s", c.reads)
		}
		add(t, hf, "s", 1)
		if _, err := closeAt(hf, "s", streamclose.Archive, nil); err != nil {
			t.Error(err)
		}
		if err := streamclose.Truncate(ctx, engine.Of(hf), "s", 5, nil); err != nil {
			t.Error(err)
		}
		reads(t, hf, "s", "5:a")
		refused(t, streamclose.Truncate(ctx, engine.Of(hf), "none", 1, nil), fault.NotFound)
	})
}

// TestTruncateLooksAtWhatGoes verifies that a reaction keeps the events that it has not
// handled, and no others.
func TestTruncateLooksAtWhatGoes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		register(t, hf, "mailer", `["a"]`, "", "live")
		blocked := "blocked=" + map[bool]string{true: "1", false: "true"}[onSQLite(t)]
		for i, c := range []struct {
			watermark, due int
			more           string
			code           fault.Code // of a truncate below 3
		}{
			{4, 4, "", ""},
			{2, 4, "", ""},
			{1, 4, "", fault.Conflict},
			{1, 1, "", ""}, // the others do not concern it
			{2, 4, blocked, ""},
			{1, 4, blocked, fault.Conflict},
			{2, 4, "holder, until='me', NOW", ""},
			{1, 4, "holder, until='me', NOW", fault.Conflict},
		} {
			name := fmt.Sprint("s", i)
			add(t, hf, name, 5)
			follow(t, hf, "mailer", name, c.watermark, c.due, c.more)
			if err := streamclose.Truncate(ctx, engine.Of(hf), name, 3, nil); fault.CodeOf(err) != c.code {
				t.Errorf("%+v: got error %v", c, err)
			}
		}
	})
}

// TestPrune verifies that the rows of dropped events, their feed entries and their
// snapshots are deleted page by page once no append can be looked up by them, and that
// nothing else is.
func TestPrune(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for _, name := range []string{"kept", "gone", "cut"} {
			add(t, hf, name, 5)
			for v := range 5 {
				exec(t, hf, fmt.Sprintf(`INSERT INTO holdfast_feed (shard, workspace, position, stream, version)
					SELECT 0, 'default', 1 + count(*), '%s', %d FROM holdfast_feed WHERE true`, name, v))
			}
			for kind, v := range map[string]int{"old": 1, "new": 2, "last": 4} {
				exec(t, hf, fmt.Sprintf(`INSERT INTO holdfast_snapshot (shard, workspace, stream, kind, version, data, at)
					VALUES (0, 'default', '%s', '%s', %d, '{}', NOW)`, name, kind, v))
			}
		}
		if _, err := closeAt(hf, "gone", streamclose.Tombstone, nil); err != nil {
			t.Fatal(err)
		}
		if err := streamclose.Truncate(ctx, engine.Of(hf), "cut", 3, nil); err != nil {
			t.Fatal(err)
		}
		s := shard(t, hf)
		if n, err := streamclose.Prune(ctx, engine.Of(hf), store.Partition{Shard: s}, 100); n != 0 || err != nil {
			t.Errorf("deleted %d streams at once, error %v, want 0", n, err)
		}
		holdfasttest.Advance(t, hf, streamclose.Grace+time.Second)
		// a node crashed after it deleted a page, before it recorded that
		exec(t, hf, `DELETE FROM holdfast_event WHERE stream = 'gone' AND version < 3`)
		for _, want := range []int64{8, 0} {
			if n, err := streamclose.Prune(ctx, engine.Of(hf), store.Partition{Shard: s}, 100); n != want || err != nil {
				t.Errorf("deleted %d streams, want %d, error %v", n, want, err)
			}
		}
		for _, c := range []struct {
			table, stream string
			want          int64
		}{
			{"event", "kept", 5}, {"feed", "kept", 5}, {"snapshot", "kept", 3},
			{"event", "gone", 1}, {"feed", "gone", 0}, {"snapshot", "gone", 0},
			{"event", "cut", 2}, {"feed", "cut", 2}, {"snapshot", "cut", 2},
		} {
			if n := rows(t, hf, c.table, c.stream); n != c.want {
				t.Errorf("%s has %d rows in %s, want %d", c.stream, n, c.table, c.want)
			}
		}
		reads(t, hf, "gone", "5:$tombstone")
		reads(t, hf, "cut", "3:a 4:a")
	})
}

package feed_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
)

// TestAStatementThatLookedBefore verifies what a numbering statement does if its snapshot is older than a
// commit and it locks the rows after that commit: it never numbers events that were numbered meanwhile, even if
// the watermarks were set back, and never goes past what it saw, although the locked row says that there is
// more.
func TestAStatementThatLookedBefore(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*testing.T, *holdfast.Engine){
		"the next batch": func(t *testing.T, hf *holdfast.Engine) { stepAll(t, hf) },
		"the next batch and a reset": func(t *testing.T, hf *holdfast.Engine) {
			stepAll(t, hf)
			if _, _, err := reactions.Repair(t.Context(), engine.Of(hf), "reset", "", reactions.Filter{Reaction: feed.Reaction}); err != nil {
				t.Fatal(err)
			}
		},
		"the next batch and an append": func(t *testing.T, hf *holdfast.Engine) {
			stepAll(t, hf)
			write(t, hf, "s", 3)
			collectDue(t, hf)
		},
		"an append": func(t *testing.T, hf *holdfast.Engine) {
			write(t, hf, "s", 3)
			collectDue(t, hf)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := holdfasttest.PostgreSQL(t)
			hf := holdfasttest.OpenOn(t, postgres.URL(url))
			if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
				t.Fatal(err)
			}
			write(t, hf, "s", 2)
			collectDue(t, hf)
			paused(t, url, func() { between(t, hf) })
			stepAll(t, hf)
			all, next := rest(t, hf, "", 0)
			wantComplete(t, hf, all, "s")
			if want := all[len(all)-1].Cursor; next != want {
				t.Errorf("feed cursor is %q, want the position of the last event, %q", next, want)
			}
		})
	}
}

// paused runs the numbering statement, and f when the statement has its snapshot and has locked nothing yet.
func paused(t *testing.T, url string, f func()) {
	t.Helper()
	texts, err := store.DatabaseOf(postgres.URL("")).Texts()
	if err != nil {
		t.Fatal(err)
	}
	const lock = `FOR UPDATE SKIP LOCKED`
	text := strings.Replace(texts["feed.assign_positions"], lock, `AND (SELECT pg_advisory_xact_lock_shared(42)) IS NOT NULL `+lock, 1)
	locker, runner := connect(t, url), connect(t, url)
	var ignored any
	if err := locker.QueryRow(t.Context(), `SELECT pg_advisory_lock(42)`).Scan(&ignored); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := runner.Exec(context.Background(), text, 0, "default", 10, 10)
		ended <- err
	}()
	testkit.Eventually(t, "the statement waits", func() bool {
		var waiting int
		err := locker.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting)
		return err == nil && waiting == 1
	})
	f()
	if err := locker.QueryRow(t.Context(), `SELECT pg_advisory_unlock(42)`).Scan(&ignored); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

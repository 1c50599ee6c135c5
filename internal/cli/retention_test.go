package cli

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// TestHistoryIsDeletedByDefault verifies that a server without settings deletes old events of histories from a database
// that it was the first to use, also after API keys were created and after a restart, but none from one that a program or an earlier
// version has used before.
func TestHistoryIsDeletedByDefault(t *testing.T) {
	waits := run.Define("waits", "1", run.Signal("paid", "payment"))
	for name, database := range map[string]func(*testing.T) (url string, execute func(string) error){
		"sqlite": func(t *testing.T) (string, func(string) error) {
			path := holdfasttest.SQLite(t)
			return path, func(text string) error {
				db, err := sql.Open("sqlite", path)
				if err != nil {
					return err
				}
				_, err = db.ExecContext(t.Context(), text)
				return errors.Join(err, db.Close())
			}
		},
		"postgres": func(t *testing.T) (string, func(string) error) {
			url := holdfasttest.PostgreSQL(t)
			return url, func(text string) error {
				conn, err := pgx.Connect(t.Context(), url)
				if err != nil {
					return err
				}
				_, err = conn.Exec(t.Context(), text)
				return errors.Join(err, conn.Close(context.WithoutCancel(t.Context())))
			}
		},
	} {
		for _, before := range []string{"nothing", "keys", "a program", "an earlier version"} {
			t.Run(name+"/"+before, func(t *testing.T) {
				url, execute := database(t)
				usedBefore := false
				switch before {
				case "nothing":
				case "keys":
					hf := holdfasttest.OpenOn(t, holdfasttest.At(url))
					if _, _, err := keys.Create(t.Context(), engine.Of(hf), keys.CreateArgs{Name: "admin", Role: keys.Admin, By: "cli"}); err != nil {
						t.Fatal(err)
					}
				default:
					usedBefore = true
					hf := holdfasttest.OpenOn(t, holdfasttest.At(url), waits)
					if _, _, err := waits.Start(t.Context(), hf, nil); err != nil {
						t.Fatal(err)
					}
					if err := hf.Close(); err != nil {
						t.Fatal(err)
					}
					prefix := map[string]string{"sqlite": "holdfast_", "postgres": "holdfast."}[name]
					unbatched := map[string]string{"sqlite": "DROP INDEX holdfast_batch_open; DROP INDEX holdfast_api_key_valid; DROP TRIGGER holdfast_api_key_restrictions; DROP INDEX holdfast_batch_prune; ALTER TABLE holdfast_batch DROP COLUMN keep; ALTER TABLE holdfast_batch DROP COLUMN prune_at; ALTER TABLE holdfast_batch DROP COLUMN pruned_at",
						"postgres": "DROP INDEX holdfast.batch_open; DROP INDEX holdfast.api_key_valid; ALTER TABLE holdfast.batch DROP COLUMN keep, DROP COLUMN prune_at, DROP COLUMN pruned_at"}
					if before == "a program" {
						break
					}
					if err := execute(unbatched[name] + "; ALTER TABLE " + prefix + "api_key DROP COLUMN restrictions; DROP TABLE " + prefix + "retention; DROP TABLE " + prefix + "restore; DROP TABLE " + prefix + "feed_gap; DROP TABLE " + prefix + "named_secret; ALTER TABLE " + prefix + "handler DROP COLUMN headers; ALTER TABLE " + prefix + "webhook DROP COLUMN headers; DELETE FROM " + prefix + "migration WHERE number >= 10"); err != nil {
						t.Fatal(err)
					}
				}
				hf := holdfasttest.OpenOn(t, holdfasttest.At(url), waits, defaultRetention{slog.New(slog.DiscardHandler), true, true})
				if err := hf.Close(); err != nil {
					t.Fatal(err)
				}
				hf = holdfasttest.OpenOn(t, holdfasttest.At(url), waits, defaultRetention{slog.New(slog.DiscardHandler), true, true})
				r, _, err := waits.Start(t.Context(), hf, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := run.Cancel(t.Context(), hf, r.ID); err != nil {
					t.Fatal(err)
				}
				events := func() int {
					all, err := holdfast.Collect(stream.Read(t.Context(), hf, "$run/"+r.ID, 0))
					if err != nil {
						t.Fatal(err)
					}
					return len(all)
				}
				want := events()
				for _, days := range []int{29, 2} {
					holdfasttest.Advance(t, hf, time.Duration(days)*24*time.Hour)
					holdfasttest.Round(t, hf)
					if days == 2 && !usedBefore {
						want = 1 // the last event of a run that exists
					}
					if n := events(); n != want {
						t.Errorf("after %d more days, %d events are left, want %d", days, n, want)
					}
				}
			})
		}
	}
}

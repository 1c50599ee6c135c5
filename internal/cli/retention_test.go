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
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// TestHistoryIsDeletedByDefault verifies that a server without settings deletes old events of histories from a database
// that it has created, but none from a database that was in use before.
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
		for _, usedBefore := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "/new", true: "/used before"}[usedBefore], func(t *testing.T) {
				url, execute := database(t)
				if usedBefore { // an earlier version has created the database and a run
					hf := holdfasttest.OpenOn(t, holdfasttest.At(url), waits)
					if _, _, err := waits.Start(t.Context(), hf, nil); err != nil {
						t.Fatal(err)
					}
					if err := hf.Close(); err != nil {
						t.Fatal(err)
					}
					prefix := map[string]string{"sqlite": "holdfast_", "postgres": "holdfast."}[name]
					if err := execute("DROP TABLE " + prefix + "retention; DELETE FROM " + prefix + "migration WHERE number >= 10"); err != nil {
						t.Fatal(err)
					}
				}
				hf := holdfasttest.OpenOn(t, holdfasttest.At(url), waits, defaultRetention{slog.New(slog.DiscardHandler)})
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

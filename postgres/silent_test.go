package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// shortTimeout returns a URL with a short call timeout.
func shortTimeout(t *testing.T, url string) string { return as(t, url, "", "", "call_timeout=500ms") }

// shortTimeoutIn returns a database with a short call timeout: in a mode of pgx, or behind a pool of
// the program.
func shortTimeoutIn(t *testing.T, url, mode string) holdfast.Database {
	t.Helper()
	if mode != "own pool" {
		return postgres.URL(as(t, shortTimeout(t, url), "", "", "default_query_exec_mode="+mode))
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return postgres.Pool(pool, postgres.CallTimeout(500*time.Millisecond))
}

// TestACallOnAConnectionThatDiesSilentlyEnds verifies that a call on a connection that dies
// silently ends, whether the server received it or not, and that a write is then applied once: for
// a command, alone and at the BEGIN, inside and at the COMMIT of an update, for a read and for the
// health check. No caller waits for the transaction that the dead connection leaves on the server.
func TestACallOnAConnectionThatDiesSilentlyEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, marker string
		call         func(context.Context, *holdfast.Engine) error
		update       bool
		writes       int
	}{
		{"a command", "precious", appendOnce, false, 1},
		{"the begin of an update", "begin ", updateOnce, true, 1},
		{"a command of an update", "precious", updateOnce, true, 1},
		{"the commit of an update", "commit\x00", updateOnce, true, 1},
		{"a read", "precious", func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := holdfast.Collect(stream.Read(ctx, hf, "precious", 0))
			return err
		}, false, 0},
	} {
		for _, deliver := range []bool{true, false} {
			for _, mode := range []string{"cache_statement", "cache_describe", "own pool"} {
				if mode == "cache_describe" && c.update { // a pooler hides the session whose locks are to be released
					continue
				}
				t.Run(fmt.Sprintf("%s, arrived %v, %s", c.name, deliver, mode), func(t *testing.T) {
					if mode == "own pool" && c.name != "a command" { // pgx takes 15 seconds to close it
						testlevel.Long(t)
					}
					t.Parallel()
					b, through := newBreaker(t, prepared(t))
					b.hang.Store(true)
					hf := openEngine(t, shortTimeoutIn(t, through, mode))
					for range 2 { // so that the stream exists and everything is prepared
						mustAppend(t, hf, "s", stream.Any)
						if err := c.call(t.Context(), hf); err != nil {
							t.Fatal(err)
						}
					}
					b.arm(c.marker, deliver)
					if err := c.call(t.Context(), hf); err != nil {
						t.Errorf("the call: %v (%s)", err, fault.CodeOf(err))
					}
					if b.broken.Load() != 1 {
						t.Fatalf("%d connections died, want 1", b.broken.Load())
					}
					mustAppend(t, hf, "s", stream.Any)
					if there := len(wantGapless(t, hf, "s")); there != 3+3*c.writes {
						t.Errorf("got %d events, want %d", there, 3+3*c.writes)
					}
				})
			}
		}
	}
}

// TestATransactionOfADeadConnectionHoldsUpNobody verifies that the server's locks of a dead
// connection's transaction are released as soon as its client has dropped it, even if the caller's
// own context ended first, and that the error of such a caller is its context's.
func TestATransactionOfADeadConnectionHoldsUpNobody(t *testing.T) {
	t.Parallel()
	b, through := newBreaker(t, prepared(t))
	b.hang.Store(true)
	hf := openEngine(t, postgres.URL(shortTimeout(t, through)))
	mustAppend(t, hf, "s", stream.Any)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := stream.Append(ctx, tx, "s", stream.Any, event("held")); err != nil {
			return err
		}
		b.HangAll()
		time.AfterFunc(100*time.Millisecond, cancel) // while the statement waits
		_, err := postgres.Raw(tx).Exec(ctx, "SELECT 1")
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("update: got %v, want context.Canceled", err)
	}
	mustAppend(t, hf, "s", stream.Any)
	if names := wantGapless(t, hf, "s"); len(names) != 2 {
		t.Errorf("got events %v, want 2", names)
	}
}

// TestATransactionMayTakeLongerThanACall verifies that a transaction may take longer than the call
// timeout, with long statements of the user's own, and that an invalid call_timeout is refused.
func TestATransactionMayTakeLongerThanACall(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(as(t, url, "", "", "call_timeout=1s")))
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := stream.Append(ctx, tx, "s", stream.Any, event("a")); err != nil {
			return err
		}
		if _, err := postgres.Raw(tx).Exec(ctx, "SELECT pg_sleep(1.5)"); err != nil {
			return err
		}
		_, err := stream.Append(ctx, tx, "s", stream.Any, event("b"))
		return err
	})
	if names := wantGapless(t, hf, "s"); err != nil || len(names) != 2 {
		t.Errorf("got events %v, want 2: %v", names, err)
	}
	for _, text := range []string{"0", "-1s", "soon", "8"} {
		testkit.WantCode(t, openError(t, postgres.URL(as(t, url, "", "", "call_timeout="+text)), quiet), fault.Validation, "call_timeout", "8s")
	}
	testkit.WantCode(t, openError(t, postgres.URL(url, postgres.CallTimeout(-time.Second)), quiet), fault.Validation, "CallTimeout")
}

// TestACheckMayTakeLongerThanACall verifies that a check has its own time limit: it succeeds if its
// statements take longer than the call timeout or the session's statement timeout.
func TestACheckMayTakeLongerThanACall(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(as(t, url, "", "", "call_timeout=400ms", "statement_timeout=400ms")))
	mustAppend(t, hf, "s", stream.Any)
	execute(t, connect(t, url), "ALTER TABLE holdfast.stream RENAME TO stream_rows",
		"CREATE VIEW holdfast.stream AS SELECT s.* FROM holdfast.stream_rows AS s, pg_sleep(1.5)")
	report, err := hf.Check(t.Context())
	if err != nil || report.Checked["streams"] != 1 || !report.Clean() {
		t.Errorf("%+v: %v", report, err)
	}
}

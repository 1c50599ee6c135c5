package storetest

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

const racersOfOne = 16 // goroutines of each of four processes

// raceForLeases is a worker process: for each invoice that it reads, its racers all try to claim it,
// and it prints the number of winners.
func raceForLeases(ctx context.Context, db holdfast.Database, name string) error {
	if strings.HasSuffix(name, "early") {
		clock.Skew(-time.Hour)
	}
	if strings.HasSuffix(name, "late") {
		clock.Skew(time.Hour)
	}
	hf, err := holdfast.Open(ctx, db, holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer hf.Close()
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		won, err := raceOnce(ctx, hf, in.Text(), name)
		if err != nil {
			return err
		}
		fmt.Println(won)
	}
	return in.Err()
}

func raceOnce(ctx context.Context, hf *holdfast.Engine, id, name string) (won int, err error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range racersOfOne {
		group.Go(func() {
			got, e := claim(ctx, hf, id, fmt.Sprint(name, i), time.Minute)
			one := e == nil
			if one { // it settles at once: a second winner would show in the history
				e = end(ctx, hf, got, "settle")
			} else if code := fault.CodeOf(e); code == fault.ClaimFailed || code == fault.InvalidTransition { // another racer has claimed or closed it
				e = nil
			}
			mu.Lock()
			defer mu.Unlock()
			if one {
				won++
			}
			if e != nil {
				err = e
			}
		})
	}
	group.Wait()
	return won, err
}

// invoice creates an entity to be claimed.
func invoice(t *testing.T, hf *holdfast.Engine, id string) {
	t.Helper()
	if _, err := entities.Create(context.Background(), engine.Of(hf), entities.CreateArgs{Lifecycle: "invoice", ID: id, Status: "open"}); err != nil {
		t.Fatal(err)
	}
}

func claim(ctx context.Context, hf *holdfast.Engine, id, holder string, lease time.Duration) (entities.Entity, error) {
	return entities.Take(ctx, engine.Of(hf), entities.ClaimArgs{Lifecycle: "invoice", ID: id, Choices: map[string]entities.Choice{"open": {Into: "closing", Revert: "open"}},
		Operation: holder, Step: "close", Requester: "api", Holder: holder, Lease: lease})
}

// end ends a claim in one of the ways open to its holder.
func end(ctx context.Context, hf *holdfast.Engine, e entities.Entity, what string) error {
	at, err := engine.Of(hf).Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	a := entities.EndArgs{Ticket: e.Ticket(), How: entities.Success, To: "closed", Event: "settled", Outcome: entities.Success, Claim: "closing"}
	switch what {
	case "renew":
		_, err = entities.Renew(ctx, engine.Of(hf), at, e.Ticket(), time.Minute)
		return err
	case "release":
		a.How, a.To, a.Event, a.Outcome = entities.Back, "", "released", entities.Back
	}
	_, _, err = entities.End(ctx, engine.Of(hf), at, a)
	return err
}

// TestHoldRace verifies that of 64 racers for one lease, from four processes, one takes it, many
// times over; on PostgreSQL with the clocks of two of the processes an hour off, one early and one
// late.
func TestHoldRace(t *testing.T) {
	OnBoth(t, leaseRace)
}

func leaseRace(t *testing.T, db string) {
	hf := holdfasttest.OpenOn(t, database(db))
	var racers []*testkit.Child
	for _, name := range []string{"a", "b", "c-early", "d-late"} {
		racers = append(racers, testkit.Start(t, process("racer", db, name)))
	}
	for _, r := range racers {
		r.Expect("ready")
	}
	for round := range testlevel.Pick(8, 120, 5000) {
		id := fmt.Sprintf("round-%d", round)
		invoice(t, hf, id)
		for _, r := range racers {
			r.Send("%s", id)
		}
		won := 0
		for _, r := range racers {
			var n int
			fmt.Sscan(r.Next(), &n)
			won += n
		}
		if won != 1 {
			t.Fatalf("round %d: %d of 64 callers took the lease, want 1", round, won)
		}
	}
	checkRounds(t, hf)
}

func checkRounds(t *testing.T, hf *holdfast.Engine) {
	for round := range testlevel.Pick(8, 120, 5000) {
		all, err := holdfast.Collect(stream.Read(context.Background(), hf, entities.Stream("invoice", fmt.Sprintf("round-%d", round)), 0))
		if err != nil || len(all) != 3 || all[2].Name != "settled" { // created, claimed
			t.Fatalf("round %d: got history %v, error %v", round, all, err)
		}
	}
}

// TestHolderThatWaitedPastItsEndHasLost verifies, on PostgreSQL, that the time is read after the
// row was locked: a settle, a renewal and a release whose statement was sent in time, but waited
// for the row until the lease had expired, are refused, even if the other transaction changed
// nothing.
func TestHolderThatWaitedPastItsEndHasLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, what := range []string{"renew", "settle", "release"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := holdfasttest.PostgreSQL(t)
			hf := holdfasttest.OpenOn(t, database(url))
			invoice(t, hf, what)
			got, err := claim(ctx, hf, what, "h", 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			user, err := pgx.Connect(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer user.Close(ctx)
			watch, err := pgx.Connect(ctx, url) // not in a transaction, which would see the same statistics again
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close(ctx)
			tx, err := user.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(ctx)
			if _, err := tx.Exec(ctx, `SELECT FROM holdfast.entity WHERE lifecycle = 'invoice' AND id = $1 FOR UPDATE`, what); err != nil {
				t.Fatal(err)
			}
			answer := make(chan error, 1)
			go func() { answer <- end(ctx, hf, got, what) }()
			testkit.Eventually(t, "the statement waits for the row", func() bool { return waiting(t, watch) })
			testkit.Eventually(t, "the lease expires", func() bool {
				s, err := hf.Status(ctx)
				return err == nil && s.Now.After(got.Claim.Until)
			})
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; fault.CodeOf(err) != fault.LeaseLost {
				t.Errorf("%s returned %v, want LEASE_LOST", what, err)
			}
		})
	}
}

// waiting reports whether a statement waits for a lock in this database.
func waiting(t *testing.T, watch *pgx.Conn) bool {
	var n int
	err := watch.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// queries counts the queries in this database, except the watcher's own.
func queries(t *testing.T, c *pgx.Conn) int { return calls(t, c, "") }

func calls(t *testing.T, c *pgx.Conn, like string) (n int) {
	t.Helper()
	err := c.QueryRow(context.Background(), `SELECT coalesce(sum(s.calls), 0)::int FROM pg_stat_statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()
		AND s.query NOT LIKE '%pg_stat_statements%' AND s.query LIKE '%' || $1 || '%'`, like).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

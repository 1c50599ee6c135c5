package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// eachOwn runs a test with entities in a user table, on both databases.
func eachOwn(t *testing.T, config string, f func(*testing.T, *world)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) { f(t, newOwnWorld(t, db, config)) })
}

// row is what a row of the user's has, as text.
func (w *world) row(id string) string {
	w.t.Helper()
	return strings.Join(w.texts(`SELECT coalesce(state, '?') || ' ' || CAST(rev AS text) || ' ' || CAST(cents AS text) FROM bills WHERE nr = '`+id+`'`), "; ")
}

func (w *world) wantRow(id, want string) {
	w.t.Helper()
	if got := w.row(id); got != want {
		w.t.Errorf("row of %s: got %q, want %q", id, got, want)
	}
}

// Verifies that a step of a row in a user table is claimed visibly in the row itself, and settled together
// with the body's writes to that row; that an unclaimed step is one transaction; and that the row's other
// columns are the entity's data.
func TestARowOfTheUsersOwn(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		w.exec(`INSERT INTO bills (nr, state, rev, cents) VALUES ('i', 'open', 7, 41), ('j', 'open', 3, 1)`)
		goOn, done := w.held("i", "close", func(_ context.Context, a *lifecycle.Act[bill]) error {
			if a.Entity.Data.Cents != 41 || a.Entity.Status != "closing" || a.Entity.Version != 8 {
				t.Errorf("the body got %+v", a.Entity)
			}
			a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
				return w.in(ctx, tx, `UPDATE bills SET cents = cents + 1 WHERE nr = $1`, a.Entity.ID)
			})
			return nil
		}, lifecycle.ExpectVersion(7))
		w.wantRow("i", "closing 8 41")
		_, err := w.fire("i", "note")
		testkit.WantCode(t, err, fault.ClaimFailed)
		if f := factsOf(err); f["holder"] == nil || f["since"] == nil || f["until"] == nil {
			t.Errorf("got error fields %v, want holder, since and until", f)
		}
		goOn <- nil
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		w.wantRow("i", "closed 9 42")
		w.happened("i", "closed", "created", "claimed", "settled/close")
		if got := w.get("i"); got.Data.Cents != 42 || got.Version != 9 {
			t.Errorf("%+v", got)
		}
		if got, err := w.fire("j", "skip", lifecycle.ExpectVersion(3)); err != nil || got.Status != "noted" || got.Version != 4 {
			t.Errorf("%+v, %v", got, err)
		}
		w.wantRow("j", "noted 4 1")
		w.happened("j", "noted", "created", "settled/skip")
		_, err = w.fire("nobody", "close")
		testkit.WantCode(t, err, fault.NotFound)
		if _, err := w.l.Create(context.Background(), w.e, "k", bill{}); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%v", err)
		}
	})
}

// Verifies that of many concurrent callers on a row of a user table, with and without a claim, one succeeds;
// the others change nothing, not even the row's version.
func TestManyCallersOfARowOfTheUsersOwn(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		for i, id := range ids("i", 10) {
			w.create(id)
			step := []string{"close", "note", "skip"}[i%3]
			w.act(id, func(_ context.Context, a *lifecycle.Act[bill]) error { w.write(a, "me"); return nil })
			won, lost := holdfasttest.Race(t, 16, func(int) error {
				_, err := w.fire(id, step)
				return err
			})
			if won != 1 {
				t.Errorf("%s: %d callers won, want 1", id, won)
			}
			for _, err := range lost {
				if c := fault.CodeOf(err); c != fault.ClaimFailed && c != fault.Concurrency && c != fault.InvalidTransition {
					t.Errorf("%s: %v", id, err)
				}
			}
			switch step {
			case "close":
				w.wantRow(id, "closed 2 0")
				w.happened(id, "closed", "created", "claimed", "settled/close")
				w.written(id, "me")
			case "note":
				w.wantRow(id, "noted 1 0")
				w.happened(id, "noted", "created", "settled/note")
				w.written(id, "me")
			case "skip":
				w.wantRow(id, "noted 1 0")
				w.happened(id, "noted", "created", "settled/skip")
			}
		}
	})
}

// Verifies that a row whose status the user changes under a claim keeps what the user
// wrote: a settle is refused and nothing of its commit is there, a failure and a
// recovery leave it alone. The claim is over in each case, and the row can be used.
func TestTheUserEditsAClaimedRow(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		writes := func(_ context.Context, a *lifecycle.Act[bill]) error { w.write(a, "me"); return nil }
		for _, how := range []string{"settle", "fail", "recover", "by hand", "release by hand"} {
			id := "i " + how
			w.create(id)
			edit := func() { w.exec(`UPDATE bills SET state = 'open', cents = 9, rev = 70 WHERE nr = $1`, id) }
			switch how {
			case "settle", "fail":
				goOn, done := w.held(id, "close", writes)
				edit()
				if _, err := w.fire(id, "note"); !errors.Is(err, holdfast.ErrClaimFailed) {
					t.Errorf("second caller on the edited row: got %v, want ErrClaimFailed", err)
				}
				if how == "settle" {
					goOn <- nil
					if err := <-done; !errors.Is(err, holdfast.ErrConcurrency) {
						t.Errorf("settle: got %v, want ErrConcurrency", err)
					}
				} else {
					goOn <- errOwn
					if err := <-done; !errors.Is(err, errOwn) {
						t.Errorf("failed action: got %v, want errOwn", err)
					}
				}
			case "recover":
				w.claim(id, "close")
				edit()
				w.advance(time.Hour)
				w.round()
			case "by hand", "release by hand":
				c := w.claim(id, "close")
				edit()
				if how == "by hand" {
					if _, err := c.Settle(context.Background(), nil, w.writes(id, "me")); !errors.Is(err, holdfast.ErrConcurrency) {
						t.Errorf("settle of a claim: got %v, want ErrConcurrency", err)
					}
				}
				if got, err := c.Fail(context.Background(), "it was edited"); err != nil || got.Status != "open" {
					t.Errorf("release: got %+v, %v, want status open", got, err)
				}
			}
			w.wantRow(id, "open 70 9")
			w.written(id)
			w.free(id, "open")
			w.act(id, nil)
			if got, err := w.fire(id, "close"); err != nil || got.Status != "closed" || got.Version != 72 {
				t.Errorf("%s, next fire: got %+v, %v", how, got, err)
			}
		}
	})
}

// Verifies that a row which the user deletes under a claim ends that claim in no
// harm: the settle is refused and writes nothing, a release and a recovery succeed,
// and a new row of the same id starts afresh.
func TestTheUserDeletesAClaimedRow(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		for _, how := range []string{"settle", "fail", "recover", "release by hand"} {
			id := "i " + how
			w.create(id)
			remove := func() { w.exec(`DELETE FROM bills WHERE nr = $1`, id) }
			switch how {
			case "settle", "fail":
				goOn, done := w.held(id, "close", func(_ context.Context, a *lifecycle.Act[bill]) error { w.write(a, "me"); return nil })
				remove()
				_, err := w.fire(id, "close")
				testkit.WantCode(t, err, fault.NotFound)
				if how == "settle" {
					goOn <- nil
				} else {
					goOn <- errOwn
				}
				if err := <-done; err == nil || fault.CodeOf(err) == fault.Internal {
					t.Errorf("%s: %v", how, err)
				}
			case "recover":
				w.claim(id, "close")
				remove()
				w.advance(time.Hour)
				w.round()
			default:
				c := w.claim(id, "close")
				remove()
				if _, err := c.Fail(context.Background(), "it is gone"); err != nil {
					t.Errorf("%v", err)
				}
			}
			w.written(id)
			if _, err := w.l.Get(context.Background(), w.e, id); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("%s: %v", how, err)
			}
			w.create(id)
			w.act(id, nil)
			if got, err := w.fire(id, "close"); err != nil || got.Status != "closed" || got.Version != 2 {
				t.Errorf("%s, next fire: got %+v, %v", how, got, err)
			}
		}
	})
}

// Verifies that what the user writes to a row while its unclaimed step runs refuses
// the step, and nothing of it is there.
func TestTheUserEditsARowUnderAnUnclaimedStep(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		w.create("i")
		goOn, done := w.held("i", "note", func(_ context.Context, a *lifecycle.Act[bill]) error { w.write(a, "me"); return nil })
		w.exec(`UPDATE bills SET cents = 5, rev = rev + 1 WHERE nr = 'i'`)
		goOn <- nil
		err := <-done
		testkit.WantCode(t, err, fault.Concurrency)
		if f := factsOf(err); f["expectedVersion"] != int64(0) || f["lastVersion"] != int64(1) {
			t.Errorf("got error fields %v", f)
		}
		w.wantRow("i", "open 1 5")
		w.written("i")
		w.free("i", "open")
	})
}

// Verifies that a row of a user table that was edited into a claim status is leased in the next round of the
// janitor and reverted after stuck_after, to the revert_to of that claim; unrelated writes to the row do not
// delay this, nor do they extend a claim (I8).
func TestARowOfTheUsersOwnEditedIntoAClaimIsAdopted(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		w.create("known", "new")
		claimed := w.claim("known", "close")
		if _, err := claimed.Fail(context.Background(), "to have it seen"); err != nil {
			t.Fatal(err)
		}
		w.round()
		w.exec(`UPDATE bills SET state = 'trying' WHERE nr = 'known'`)
		w.exec(`UPDATE bills SET state = 'hurrying' WHERE nr = 'new'`)
		w.create("held")
		held := w.claim("held", "close")
		w.round()
		ends := map[string]time.Time{"held": held.Until()}
		for id, status := range map[string]string{"known": "trying", "new": "hurrying"} {
			got := w.get(id)
			if got.Status != status || got.Claimed == nil || got.Claimed.Phase != "held" {
				t.Fatalf("after the next sweep, %s is %+v, want it still claimed", id, got)
			}
			ends[id] = got.Claimed.Until
		}
		w.advance(4 * time.Minute)
		w.exec(`UPDATE bills SET remark = 'looked at', cents = cents + 1, rev = rev + 1`)
		w.round()
		for id, until := range ends {
			if got := w.get(id); got.Claimed == nil || !got.Claimed.Until.Equal(until) {
				t.Errorf("%s has claim %+v, want until %s", id, got.Claimed, until)
			}
		}
		w.advance(time.Minute + time.Second)
		w.round()
		w.happened("known", "open", "created", "claimed", "released", "seen", "adopted", "recovered")
		w.happened("new", "open", "created", "adopted", "recovered")
		w.happened("held", "open", "created", "claimed", "recovered")
		w.wantRow("new", "open 2 1")
		for _, id := range []string{"known", "new", "held"} {
			if got, err := w.fire(id, "close"); err != nil || got.Status != "closed" {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}

// Verifies that a row that is settled while a janitor reads it is not adopted: it was in the claim status
// only because it was claimed.
func TestASettledRowIsNotAdopted(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		if w.postgres() {
			adoptedLate(t, w)
		}
		stop := make(chan struct{})
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			for {
				select {
				case <-stop:
					return
				default:
					w.round()
				}
			}
		}()
		for _, id := range ids("r", 50) {
			w.create(id)
			if got, err := w.fire(id, "close"); err != nil || got.Status != "closed" {
				t.Errorf("%+v, %v", got, err)
			}
		}
		close(stop)
		<-swept
		for _, id := range ids("r", 50) {
			w.happened(id, "closed", "created", "claimed", "settled/close")
		}
	})
}

// adoptedLate makes a sweep wait between its scan of the table and its read of the row.
func adoptedLate(t *testing.T, w *world) {
	ctx := context.Background()
	w.create("a", "b")
	w.round()
	c := w.claim("a", "close")
	if _, err := c.Fail(ctx, "to have it seen"); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE bills SET state = 'closing' WHERE nr = 'a'`) // the stray on which the sweep waits
	b := w.claim("b", "close")
	conn, err := pgx.Connect(ctx, w.db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT 1 FROM holdfast.entity WHERE id = 'a' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	swept := make(chan struct{})
	go func() { w.round(); close(swept) }()
	testkit.Eventually(t, "the sweep waits for the row", func() bool {
		var n int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		return err == nil && n > 0
	})
	if _, err := b.Settle(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	<-swept
	w.happened("b", "closed", "created", "claimed", "settled/close")
	w.advance(time.Hour)
	w.round()
}

// tenants is a table of several workspaces.
var tenants = strings.Replace(invoices, "janitor:", "entity_table: {name: bills, columns: {id: nr, status: state, version: rev, workspace: tenant}}\njanitor:", 1)

// Verifies that rows of several workspaces in one table, distinguished by a column, are independent: the same
// id is another row in each workspace, claimed, refused, adopted and recovered separately, and a missing row
// is not found.
func TestWorkspacesInOneTable(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, tenants)
		w.l.InWorkspaces("default", "a", "b")
		w.prepare(`CREATE TABLE bills (tenant text NOT NULL, nr text NOT NULL, state text, rev bigint NOT NULL DEFAULT 0, cents integer NOT NULL DEFAULT 0,
			PRIMARY KEY (tenant, nr))`, `INSERT INTO bills (tenant, nr, state, cents) VALUES ('a', '1', 'open', 10), ('b', '1', 'open', 20), ('b', '2', 'open', 30)`)
		w.open()
		a, b := holdfast.InWorkspace(context.Background(), "a"), holdfast.InWorkspace(context.Background(), "b")
		rows := func() string {
			return strings.Join(w.texts(`SELECT tenant || nr || ' ' || state || ' ' || CAST(rev AS text) FROM bills ORDER BY tenant, nr`), ", ")
		}
		inA, err := w.l.Claim(a, w.e, "1", "close", "admin")
		if err != nil || inA.Entity.Data.Cents != 10 {
			t.Fatalf("%+v, %v", inA, err)
		}
		if got := rows(); got != "a1 closing 1, b1 open 0, b2 open 0" {
			t.Error(got)
		}
		if got, err := w.l.Get(b, w.e, "1"); err != nil || got.Claimed != nil || got.Data.Cents != 20 {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := w.l.Fire(a, w.e, "2", "close", "admin"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if _, err := w.l.Fire(context.Background(), w.e, "1", "close", "admin"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if got, err := w.l.Fire(b, w.e, "1", "close", "admin"); err != nil || got.Status != "closed" {
			t.Errorf("%+v, %v", got, err)
		}
		w.exec(`UPDATE bills SET state = 'trying' WHERE tenant = 'b' AND nr = '2'`)
		w.round()
		if got := rows(); got != "a1 closing 1, b1 closed 2, b2 trying 0" {
			t.Error(got)
		}
		w.advance(time.Hour)
		w.round()
		if got := rows(); got != "a1 open 2, b1 closed 2, b2 open 1" {
			t.Error(got)
		}
		for _, ctx := range []context.Context{a, b} {
			all, err := holdfast.Collect(w.l.ListRefusals(ctx, w.e, "1"))
			if err != nil || len(all) != 0 {
				t.Errorf("%+v, %v", all, err)
			}
		}
		if _, err := inA.Settle(a, nil, nil); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("%v", err)
		}
	})
}

// Verifies that a table that is in one workspace as a whole is there for that one
// alone.
func TestATableOfOneWorkspace(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, inOwn(invoices))
		w.own = true
		w.l.InWorkspaces("default", "other")
		w.prepare(ownTable)
		w.open()
		w.create("i")
		other := holdfast.InWorkspace(context.Background(), "other")
		if _, err := w.l.Get(other, w.e, "i"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("%v", err)
		}
		for _, step := range []string{"close", "note", "skip"} {
			if _, err := w.l.Fire(other, w.e, "i", step, "admin"); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("%s: %v", step, err)
			}
		}
		w.happened("i", "open", "created")
	})
}

// Verifies that a row whose status no step knows, or that has none, is refused and left
// alone, and that a table which is not there refuses to start.
func TestRowsAndTablesThatAreNoUse(t *testing.T) {
	eachOwn(t, invoices, func(t *testing.T, w *world) {
		w.exec(`INSERT INTO bills (nr, state) VALUES ('odd', 'elsewhere'), ('none', NULL)`)
		for _, id := range []string{"odd", "none"} {
			for _, step := range []string{"close", "note", "skip"} {
				_, err := w.fire(id, step)
				if c := fault.CodeOf(err); c != fault.InvalidTransition {
					t.Errorf("%s of %s: %v", step, id, err)
				}
			}
		}
		w.round()
		w.wantRow("odd", "elsewhere 0 0")
		w.wantRow("none", "? 0 0")
		l := w.lifecycle(strings.Replace(inOwn(invoices), "bills", "nowhere", 1))
		_, err := holdfast.Open(context.Background(), databaseAt(w.db), holdfast.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, l)
		testkit.WantCode(t, err, fault.Validation)
		if !strings.Contains(fmt.Sprint(err), "nowhere") {
			t.Errorf("%v", err)
		}
	})
}

// Verifies that a constraint of a user table that refuses a status makes the step fail without changing
// anything or leaving a lease.
func TestTheTableRefusesAStatus(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, inOwn(invoices))
		w.own = true
		w.prepare(strings.Replace(ownTable, "state text", "state text CHECK (state NOT IN ('closed', 'trying'))", 1))
		w.open()
		w.makeOut()
		w.create("into", "out", "unclaimed")
		_, err := w.fire("into", "try")
		testkit.WantCode(t, err, fault.Validation)
		w.happened("into", "open", "created")
		w.act("out", func(_ context.Context, a *lifecycle.Act[bill]) error { w.write(a, "me"); return nil })
		if _, err := w.fire("out", "close"); err == nil {
			t.Error("fire succeeded, want an error")
		}
		w.happened("out", "open", "created", "claimed", "released")
		w.written("out")
		if got := w.texts(`SELECT DISTINCT state FROM bills`); !slices.Equal(got, []string{"open"}) {
			t.Errorf("got states %q, want only open", got)
		}
	})
}

// Verifies that a row whose table refuses to let it go from its claim keeps no other claim from being released, is no failure of the
// janitor, and is released when its table accepts that.
func TestARowThatCannotBeReleased(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, inOwn(invoices))
		w.own = true
		w.prepare(strings.Replace(ownTable, "remark text", "remark text, CHECK (remark IS NULL OR state <> 'open')", 1))
		var log bytes.Buffer
		w.e = w.engineWith(holdfast.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, w.l)
		w.create("a", "b", "c")
		for _, id := range []string{"a", "b", "c"} {
			w.claim(id, "close")
		}
		w.exec(`UPDATE bills SET remark = 'stays' WHERE nr = 'b'`)
		w.advance(time.Hour)
		for range 3 {
			w.round()
		}
		for _, sweep := range engine.Of(w.e).Report().Sweeps {
			if sweep.Error != "" {
				t.Errorf("sweep %s failed: %s", sweep.Name, sweep.Error)
			}
		}
		w.happened("a", "open", "created", "claimed", "recovered")
		w.happened("c", "open", "created", "claimed", "recovered")
		if got := w.get("b"); got.Status != "closing" || got.Claimed == nil {
			t.Errorf("%+v", got)
		}
		if text := log.String(); !strings.Contains(text, "your table refuses to release a row") || !strings.Contains(text, "lifecycle=invoice entity=b") {
			t.Errorf("the log does not name the row:\n%s", text)
		}
		if waiting, err := holdfasttest.Settle(t.Context(), w.e); fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), `invoice "b" cannot be released`) {
			t.Errorf("Settle returned %v, %v, want an error that names the row", waiting, err)
		}
		w.exec(`UPDATE bills SET remark = NULL`)
		w.round()
		w.happened("b", "open", "created", "claimed", "recovered")
	})
}

package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

var orders = store.Table{Name: "orders", ID: "id", Status: "status", Version: "version"}

const plainOrders = `id INTEGER PRIMARY KEY, status TEXT, version INTEGER, note TEXT`

func openTable(t *testing.T, hf *holdfast.Engine, want store.Table) store.UserTable {
	t.Helper()
	own, err := engine.Of(hf).Runner().Base().(store.UserTables).OpenTable(t.Context(), want)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	return own
}

func tableError(t *testing.T, hf *holdfast.Engine, want store.Table) error {
	t.Helper()
	_, err := engine.Of(hf).Runner().Base().(store.UserTables).OpenTable(t.Context(), want)
	return err
}

// beside returns an engine and a pool of the user's own on one file.
func beside(t *testing.T, statements ...string) (*holdfast.Engine, *sql.DB) {
	t.Helper()
	path := holdfasttest.SQLite(t)
	hf := openEngine(t, sqlite.File(path))
	db := openSQL(t, path, "_txlock=immediate", "_pragma=journal_mode(WAL)")
	execSQL(t, db, statements...)
	return hf, db
}

// newOrders returns an engine beside a table of orders.
func newOrders(t *testing.T, columns string, statements ...string) (*holdfast.Engine, *sql.DB, store.UserTable) {
	t.Helper()
	hf, db := beside(t, append([]string{`CREATE TABLE orders (` + columns + `)`}, statements...)...)
	return hf, db, openTable(t, hf, orders)
}

// wrapped wraps a transaction, as the crash tests do.
type wrapped struct{ store.Conn }

func (w wrapped) Unwrap() store.Conn { return w.Conn }

// move moves a row in a transaction of its own.
func move(t *testing.T, hf *holdfast.Engine, own store.UserTable, workspace, id, from, to string, want *int64) (version int64, moved bool) {
	t.Helper()
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) (err error) {
		version, moved, err = own.Move(ctx, wrapped{store.TxOf(tx).Conn()}, workspace, id, from, to, want)
		return err
	})
	if err != nil {
		t.Fatalf("move %q from %q to %q: %v (%v)", id, from, to, err, errors.Unwrap(err))
	}
	return version, moved
}

func wantMove(t *testing.T, hf *holdfast.Engine, own store.UserTable, id, from, to string, version int64) {
	t.Helper()
	if v, moved := move(t, hf, own, "", id, from, to, nil); !moved || v != version {
		t.Errorf("move %q from %q to %q: got version %d, moved %t, want version %d", id, from, to, v, moved, version)
	}
}

func wantNoMove(t *testing.T, hf *holdfast.Engine, own store.UserTable, id, from, to string) {
	t.Helper()
	if v, moved := move(t, hf, own, "", id, from, to, nil); moved || v != 0 {
		t.Errorf("%q moved from %q to %q, version %d", id, from, to, v)
	}
}

func wantRow(t *testing.T, own store.UserTable, workspace, id, status string, version int64) store.UserRow {
	t.Helper()
	row, found, err := own.Read(t.Context(), nil, workspace, id)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	if !found || row.ID != id || row.Workspace != workspace || row.Status != status || row.Version != version {
		t.Errorf("row %q/%q: %+v, %t", workspace, id, row, found)
	}
	return row
}

func wantNoRow(t *testing.T, own store.UserTable, workspace, id string) {
	t.Helper()
	if row, found, err := own.Read(t.Context(), nil, workspace, id); found || err != nil {
		t.Errorf("%q/%q: got %+v, %t, %v, want no row", workspace, id, row, found, err)
	}
}

// wantAbsent looks up rows that do not exist, inside one transaction, which must stay usable.
func wantAbsent(t *testing.T, hf *holdfast.Engine, own store.UserTable, ids []string, from, to string) {
	t.Helper()
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		for _, id := range ids {
			if row, found, err := own.Read(ctx, store.TxOf(tx).Conn(), "", id); found || err != nil {
				t.Errorf("%.40q was found: %+v, %v", id, row, err)
			}
			if v, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", id, from, to, nil); moved || err != nil {
				t.Errorf("%.40q was moved: version %d, %v", id, v, err)
			}
		}
		_, err := stream.Append(ctx, tx, "after", stream.Any, event("absent", ""))
		return err
	})
	if err != nil {
		t.Error(err, errors.Unwrap(err))
	}
}

func TestTableMovesOnlyFromTheStatusAndVersionNamed(t *testing.T) {
	t.Parallel()
	hf, db, own := newOrders(t, plainOrders, `INSERT INTO orders VALUES (7, 'new', 3, 'a'), (8, NULL, NULL, 'b'), (9, 'new', NULL, 'c')`)
	two, three := int64(2), int64(3)
	if _, moved := move(t, hf, own, "", "7", "new", "paid", &two); moved {
		t.Error("moved from a wrong version")
	}
	if v, moved := move(t, hf, own, "", "7", "new", "paid", &three); !moved || v != 4 {
		t.Errorf("got version %d, moved %t, want 4, true", v, moved)
	}
	wantNoMove(t, hf, own, "7", "new", "paid")
	wantMove(t, hf, own, "7", "paid", "sent", 5)
	wantNoMove(t, hf, own, "8", "", "paid")
	wantMove(t, hf, own, "9", "new", "paid", 1)
	wantRow(t, own, "", "7", "sent", 5)
	wantRow(t, own, "", "8", "", 0)
	if n := queryInt(t, db, `SELECT count(*) FROM orders WHERE note = 'a' AND id = 7`); n != 1 {
		t.Error("the note was changed")
	}
}

func TestTableReadsTheWholeRowAsJSON(t *testing.T) {
	t.Parallel()
	hf, _, own := newOrders(t, plainOrders+`, t TEXT, raw BLOB, doc JSON, at DATETIME, f REAL, small REAL, none TEXT, broken JSON, yes BOOLEAN, bad TEXT, gen TEXT AS (note || '!')`,
		`INSERT INTO orders VALUES (1, 'new', 0, 'a "b"' || char(10), 'tee', x'00ff', '{"a": [1]}', '2026-01-02 03:04:05', -9e999, 0.5, NULL, '{x', 1, CAST(x'61ff62' AS TEXT))`)
	check := func(row store.UserRow) {
		var data map[string]any
		if err := json.Unmarshal(row.Data, &data); err != nil {
			t.Fatalf("%s: %v", row.Data, err)
		}
		for name, want := range map[string]string{"id": "1", "note": "a \"b\"\n", "t": "tee", "raw": `\x00ff`, "doc": "map[a:[1]]", "at": "2026-01-02 03:04:05",
			"f": "-Infinity", "small": "0.5", "none": "<nil>", "broken": "{x", "yes": "1", "bad": "a\uFFFDb", "gen": "a \"b\"\n!"} {
			if got := fmt.Sprint(data[name]); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if len(data) != 15 {
			t.Errorf("got data %s, want 15 fields", row.Data)
		}
	}
	check(wantRow(t, own, "", "1", "new", 0))
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		if _, _, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "new", "paid", nil); err != nil {
			return err
		}
		row, found, err := own.Read(ctx, wrapped{store.TxOf(tx).Conn()}, "", "1")
		if !found || row.Status != "paid" || row.Version != 1 {
			t.Errorf("inside the transaction: got %+v, %t", row, found)
		}
		check(row)
		wantRow(t, own, "", "1", "new", 0) // not visible outside yet
		return err
	})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
}

func TestTableOfVeryManyColumns(t *testing.T) {
	t.Parallel()
	columns := plainOrders
	for i := range 600 {
		columns += fmt.Sprintf(", c%d INTEGER DEFAULT %d", i, i)
	}
	_, _, own := newOrders(t, columns, `INSERT INTO orders (id, status, version) VALUES (1, 'new', 0)`)
	var data map[string]any
	if err := json.Unmarshal(wantRow(t, own, "", "1", "new", 0).Data, &data); err != nil || data["c599"] != 599.0 {
		t.Errorf("got %d values, the last %v: %v", len(data), data["c599"], err)
	}
}

// typed are columns for ids and statuses: with rows that exist, and texts that do not.
var typed = []struct {
	name, id, status string
	ids              []string
	from, to         string
	absent           []string
}{
	{"rowid", "INTEGER", "TEXT", []string{"1", "-5", "9223372036854775807"}, "new", "paid", []string{"abc", "", "01", "+1", " 1", "1.0", "9223372036854775808", "1\x00"}},
	{"bigint", "BIGINT", "INT", []string{"1"}, "10", "-20", []string{"x", "1e0"}},
	{"text", "TEXT", "VARCHAR(3)", []string{"a", "", "ä'\"\\?1", "007", "'; DROP TABLE orders; --"}, "new", "paid", []string{"A", "a\x00", "a\xff", "b"}},
	{"uuid", "UUID", "STRING", []string{"550e8400-e29b-41d4-a716-446655440000"}, "new", "paid", []string{"550E8400-E29B-41D4-A716-446655440000"}},
	{"nocase", "TEXT COLLATE NOCASE", "TEXT COLLATE NOCASE", []string{"Abc"}, "new", "paid", []string{"abc"}},
	{"real", "REAL", "TEXT", []string{"1.5"}, "new", "paid", []string{"1.50", "x"}},
}

func TestTableComparesTheTextByTheAffinityOfTheColumn(t *testing.T) {
	t.Parallel()
	hf, db := beside(t)
	for i, c := range typed {
		t.Run(c.name, func(t *testing.T) {
			table := orders
			table.Name = fmt.Sprintf("main.t%d", i)
			execSQL(t, db, `CREATE TABLE `+table.Name+` (id `+c.id+` PRIMARY KEY, status `+c.status+`, version INT NOT NULL DEFAULT 0)`)
			for _, id := range c.ids {
				if _, err := db.ExecContext(t.Context(), `INSERT INTO `+table.Name+` (id, status) VALUES (?1, ?2)`, id, c.from); err != nil {
					t.Fatal(err)
				}
			}
			own := openTable(t, hf, table)
			rows, err := own.In(t.Context(), "", []string{"no such", c.from, strings.ToUpper(c.from)}, 10)
			if err != nil || len(rows) != len(c.ids) {
				t.Errorf("status %q: got %+v, %v", c.from, rows, err)
			}
			if rows, err := own.In(t.Context(), "", []string{"NEW"}, 10); err != nil || len(rows) != 0 {
				t.Errorf("status NEW: got %+v, %v, want none", rows, err)
			}
			for _, id := range c.ids {
				wantRow(t, own, "", id, c.from, 0)
				wantNoMove(t, hf, own, id, "no such", c.to)
				wantMove(t, hf, own, id, c.from, c.to, 1)
				wantRow(t, own, "", id, c.to, 1)
			}
			wantAbsent(t, hf, own, c.absent, c.to, c.from)
		})
	}
}

// TestTableThatRefusesAMoveLeavesTheTransactionUsable verifies that a refusal of the user's table
// is reported as such, and leaves the row unchanged and the transaction usable.
func TestTableThatRefusesAMoveLeavesTheTransactionUsable(t *testing.T) {
	t.Parallel()
	hf, _, own := newOrders(t, `id TEXT PRIMARY KEY, status NUMERIC NOT NULL CHECK (status <> 'never'), version INTEGER`,
		`CREATE TRIGGER watch BEFORE UPDATE ON orders WHEN NEW.status = 'boom' BEGIN SELECT RAISE(ABORT, 'not today'); END`,
		`CREATE TRIGGER skip BEFORE UPDATE ON orders WHEN NEW.status = 'skip' BEGIN SELECT RAISE(IGNORE); END`,
		`CREATE TABLE firm (id INTEGER UNIQUE, status INTEGER, version INTEGER) STRICT`,
		`INSERT INTO orders VALUES ('a', 'new', 0)`, `INSERT INTO firm VALUES (1, 10, 0)`)
	firm := openTable(t, hf, store.Table{Name: "firm", ID: "id", Status: "status", Version: "version"})
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		for _, c := range []struct {
			own               store.UserTable
			id, from, to, why string
		}{
			{own, "a", "new", "never", "CHECK"},
			{own, "a", "new", "boom", "not today"},
			{own, "a", "new", "007", `as "7"`},
			{own, "a", "new", "a\x00b", "invalid status"},
			{firm, "1", "10", "paid", "INTEGER"},
		} {
			_, moved, err := c.own.Move(ctx, store.TxOf(tx).Conn(), "", c.id, c.from, c.to, nil)
			if moved {
				t.Errorf("moved to %q", c.to)
			}
			testkit.WantCode(t, err, fault.Validation, c.why)
		}
		if _, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "a", "new", "skip", nil); moved || err != nil {
			t.Errorf("a trigger reverted the row: got moved %t, %v, want false", moved, err)
		}
		if _, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "a", "new", "paid", nil); !moved || err != nil {
			t.Errorf("got moved %t, %v, want true", moved, err)
		}
		if c := store.TxOf(tx).Conn().(interface{ Exposed() bool }); c.Exposed() {
			t.Error("the transaction is marked as exposed")
		}
		_, err := stream.Append(ctx, tx, "after", stream.Any, event("refused", ""))
		return err
	})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	wantRow(t, own, "", "a", "paid", 1)
	wantRow(t, firm, "", "1", "10", 0)
}

// TestTableThatRollsBackEndsTheTransaction verifies that nothing is committed of a transaction that
// a trigger rolls back, even if the caller ignores the error and continues.
func TestTableThatRollsBackEndsTheTransaction(t *testing.T) {
	t.Parallel()
	hf, db, own := newOrders(t, plainOrders, `CREATE TABLE mine (n INTEGER)`,
		`CREATE TRIGGER watch BEFORE UPDATE ON orders WHEN NEW.status = 'boom' BEGIN SELECT RAISE(ROLLBACK, 'all of it'); END`,
		`INSERT INTO orders VALUES (1, 'new', 0, ''), (2, 'new', 0, '')`)
	fail := func(ctx context.Context, tx holdfast.Tx) {
		if _, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "new", "paid", nil); !moved || err != nil {
			t.Errorf("got moved %t, %v, want true", moved, err)
		}
		_, _, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "2", "new", "boom", nil)
		testkit.WantCode(t, err, fault.Validation, "all of it")
		if _, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "2", "new", "paid", nil); moved || err == nil {
			t.Errorf("a verb after the failed one: got moved %t, %v, want an error", moved, err)
		}
	}
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error { fail(ctx, tx); return nil })
	testkit.WantCode(t, err, fault.Validation, "all of it")
	tx := begin(t, db)
	fail(t.Context(), mustJoin(t, hf, tx))
	if _, err := tx.Exec(`INSERT INTO mine VALUES (1)`); err == nil {
		t.Error("the user's transaction is still usable, want an error")
	}
	wantRow(t, own, "", "1", "new", 0)
	wantRow(t, own, "", "2", "new", 0)
}

func TestTableMovesOnlyInsideATransaction(t *testing.T) {
	t.Parallel()
	hf, _, own := newOrders(t, plainOrders, `INSERT INTO orders VALUES (1, 'new', 0, '')`)
	_, _, err := own.Move(t.Context(), nil, "", "1", "new", "paid", nil)
	testkit.WantCode(t, err, fault.Internal)
	var left holdfast.Tx
	gone := errors.New("gone")
	err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		left = tx
		if _, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "new", "paid", nil); !moved || err != nil {
			t.Errorf("got moved %t, %v, want true", moved, err)
		}
		return gone
	})
	if !errors.Is(err, gone) {
		t.Fatal(err)
	}
	wantRow(t, own, "", "1", "new", 0)
	if _, _, err = own.Move(t.Context(), store.TxOf(left).Conn(), "", "1", "new", "paid", nil); !errors.Is(err, store.ErrTxDone) {
		t.Errorf("after the end: got %v, want ErrTxDone", err)
	}
	other, _, _ := newOrders(t, plainOrders)
	err = other.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, _, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "new", "paid", nil)
		return err
	})
	testkit.WantCode(t, err, fault.Internal, "another engine")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := own.Read(ended, nil, "", "1"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a canceled context: got %v, want context.Canceled", err)
	}
}

func TestTableMovesInAJoinedTransaction(t *testing.T) {
	t.Parallel()
	hf, db, own := newOrders(t, plainOrders+`, CHECK (status <> 'never')`, `INSERT INTO orders VALUES (1, 'new', 0, '')`)
	tx := begin(t, db)
	joined := mustJoin(t, hf, tx)
	_, _, err := own.Move(t.Context(), store.TxOf(joined).Conn(), "", "1", "new", "never", nil)
	testkit.WantCode(t, err, fault.Validation)
	if _, moved, err := own.Move(t.Context(), store.TxOf(joined).Conn(), "", "1", "new", "paid", nil); !moved || err != nil {
		t.Fatal(moved, err, errors.Unwrap(err))
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantRow(t, own, "", "1", "paid", 1)
}

func TestTableInAPoolOfTheProgramsOwn(t *testing.T) {
	t.Parallel()
	db := openSQL(t, dbPath(t), "_txlock=immediate", "_pragma=journal_mode(WAL)")
	db.SetMaxOpenConns(1)
	execSQL(t, db, `CREATE TABLE orders (`+plainOrders+`)`, `INSERT INTO orders VALUES (1, 'new', 0, '')`)
	hf := openEngine(t, sqlite.DB(db))
	own := openTable(t, hf, orders)
	wantMove(t, hf, own, "1", "new", "paid", 1)
	wantRow(t, own, "", "1", "paid", 1)
	if rows, err := own.In(t.Context(), "", []string{"paid"}, 5); err != nil || len(rows) != 1 {
		t.Errorf("In: got %v, %v, want one row", rows, err)
	}
}

// TestTableRaceHasOneWinner verifies that of N callers that move one row one wins, and the rest get
// no move.
func TestTableRaceHasOneWinner(t *testing.T) {
	t.Parallel()
	hf, _, own := newOrders(t, plainOrders, `INSERT INTO orders VALUES (1, 'new', 0, '')`)
	var wins atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, moved := move(t, hf, own, "", "1", "new", "paid", nil); moved {
				wins.Add(1)
			}
		})
	}
	all.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d callers won, want 1", wins.Load())
	}
	wantRow(t, own, "", "1", "paid", 1)
}

func TestTableKeepsWorkspacesApart(t *testing.T) {
	t.Parallel()
	hf, _ := beside(t, `CREATE TABLE orders (id INTEGER, tenant BIGINT, status TEXT, version INT, UNIQUE (id, tenant))`,
		`INSERT INTO orders VALUES (1, 7, 'new', 0), (1, 8, 'new', 0), (2, 7, 'new', 0), (3, NULL, 'new', 0), (NULL, 7, 'new', 0), (4, 7, 'old', 0)`)
	table := orders
	table.Workspace = "tenant"
	own := openTable(t, hf, table)
	if _, moved := move(t, hf, own, "7", "1", "new", "paid", nil); !moved {
		t.Error("not moved, want moved")
	}
	for _, workspace := range []string{"07", "", "9", "acme"} {
		wantNoRow(t, own, workspace, "1")
		if _, moved := move(t, hf, own, workspace, "1", "new", "paid", nil); moved {
			t.Errorf("moved in workspace %q", workspace)
		}
	}
	wantRow(t, own, "7", "1", "paid", 1)
	wantRow(t, own, "8", "1", "new", 0)
	rows, err := own.In(t.Context(), "", []string{"new", "paid"}, 10)
	if got := fmt.Sprint(rows); err != nil || got != "[{7 1 paid 1 []} {8 1 new 0 []} {7 2 new 0 []}]" {
		t.Errorf("In: got %s, %v", got, err)
	}
	if rows, err = own.In(t.Context(), "", []string{"new", "paid"}, 2); err != nil || len(rows) != 2 {
		t.Errorf("In, limit 2: got %v, %v", rows, err)
	}
	for _, limit := range []int{0, -1} {
		if rows, err = own.In(t.Context(), "", []string{"new"}, limit); err != nil || len(rows) != 0 {
			t.Errorf("In, limit %d: got %v, %v, want none", limit, rows, err)
		}
	}
}

// odd are names that need quoting.
var odd = []store.Table{
	{Name: `select`, ID: `from`, Status: `where`, Version: `group`, Workspace: `user`},
	{Name: `main.My "Orders"`, ID: `The ID`, Status: `STATUS`, Version: `a"b`, Workspace: `ü ?1`},
	{Name: `orders; DROP TABLE keep; --`, ID: `id"; DROP TABLE keep; --`, Status: `'status'`, Version: `%s ?1 :x`, Workspace: `t`},
	{Name: `x"; y`, ID: `\`, Status: `--`, Version: `/*`, Workspace: `*`},
	{Name: `[b]`, ID: "`c`", Status: `$2`, Version: `main`, Workspace: `excluded`},
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func TestTableTakesAnyName(t *testing.T) {
	t.Parallel()
	hf, db := beside(t, `CREATE TABLE keep (n INTEGER)`)
	for _, table := range odd {
		name := quoted(strings.TrimPrefix(table.Name, "main."))
		execSQL(t, db, `CREATE TABLE `+name+` (`+quoted(table.ID)+` TEXT, `+quoted(table.Status)+` TEXT, `+quoted(table.Version)+` INT, `+quoted(table.Workspace)+` TEXT, PRIMARY KEY (`+quoted(table.Workspace)+`, `+quoted(table.ID)+`))`,
			`INSERT INTO `+name+` VALUES ('i', 'new', 0, 'w')`)
		own := openTable(t, hf, table)
		if v, moved := move(t, hf, own, "w", "i", "new", "paid", new(int64)); !moved || v != 1 {
			t.Errorf("%q: got version %d, moved %t, want 1, true", table.Name, v, moved)
		}
		row := wantRow(t, own, "w", "i", "paid", 1)
		var data map[string]any
		if err := json.Unmarshal(row.Data, &data); err != nil || data[table.Status] != "paid" {
			t.Errorf("%q: got %s, %v, want status paid", table.Name, row.Data, err)
		}
		if rows, err := own.In(t.Context(), "", []string{"paid"}, 5); err != nil || len(rows) != 1 {
			t.Errorf("%q: In: got %v, %v, want one row", table.Name, rows, err)
		}
	}
	queryInt(t, db, `SELECT count(*) FROM keep`)
}

func TestTableNamesHaveNoCase(t *testing.T) {
	t.Parallel()
	hf, db := beside(t, `CREATE TABLE Orders (ID TEXT PRIMARY KEY, "é" TEXT, "É" TEXT, Version INT)`, `INSERT INTO Orders VALUES ('a', 'low', 'high', 0)`)
	table := store.Table{Name: "MAIN.oRDERS", ID: "id", Status: "É", Version: "VERSION"}
	own := openTable(t, hf, table)
	wantMove(t, hf, own, "a", "high", "paid", 1)
	if n := queryInt(t, db, `SELECT count(*) FROM orders WHERE "é" = 'low' AND "É" = 'paid'`); n != 1 {
		t.Error("the write went to the wrong column")
	}
}

func TestTableRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	hf, db := beside(t, `CREATE TABLE orders (`+plainOrders+`, tenant TEXT, raw BLOB, untyped, gen INT AS (1), num NUMERIC, part TEXT, inc TEXT, expr TEXT)`,
		`CREATE TABLE firm (id ANY PRIMARY KEY, status TEXT, version INTEGER) STRICT`,
		`CREATE VIEW seen AS SELECT * FROM orders`, `CREATE VIRTUAL TABLE found USING fts5(id, status, version)`,
		`CREATE UNIQUE INDEX a ON orders (part) WHERE part <> ''`, `CREATE UNIQUE INDEX b ON orders (inc, note)`, `CREATE UNIQUE INDEX c ON orders (lower(expr))`, `CREATE INDEX d ON orders (note)`)
	with := func(change func(*store.Table)) store.Table {
		table := orders
		change(&table)
		return table
	}
	for _, c := range []struct {
		table store.Table
		parts []string
	}{
		{with(func(t *store.Table) { t.Name = "nothing" }), []string{`"nothing"`}},
		{with(func(t *store.Table) { t.Name = "temp.orders" }), []string{"main.name"}},
		{with(func(t *store.Table) { t.Name = "" }), nil},
		{with(func(t *store.Table) { t.Name = "." }), nil},
		{with(func(t *store.Table) { t.Name = "main.b.c" }), []string{"main.name"}},
		{with(func(t *store.Table) { t.Name = "main." }), nil},
		{with(func(t *store.Table) { t.Name = "or\x00ders" }), []string{"NUL"}},
		{with(func(t *store.Table) { t.Name = "or\xffders" }), nil},
		{with(func(t *store.Table) { t.Name = strings.Repeat("x", 256) }), []string{"255 bytes"}},
		{with(func(t *store.Table) { t.ID = "" }), nil},
		{with(func(t *store.Table) { t.Version = "" }), nil},
		{with(func(t *store.Table) { t.Status = "ID" }), []string{"two purposes"}},
		{with(func(t *store.Table) { t.ID, t.Status, t.Workspace = "key", "state", "w" }), []string{`"key" or "state" or "w"`}},
		{with(func(t *store.Table) { t.ID = "rowid" }), []string{`no column "rowid"`}},
		{with(func(t *store.Table) { t.Version = "note" }), []string{`"note"`, "TEXT", "INTEGER"}},
		{with(func(t *store.Table) { t.Version = "num" }), []string{"NUMERIC", "INTEGER"}},
		{with(func(t *store.Table) { t.Version = "gen" }), []string{"generated"}},
		{with(func(t *store.Table) { t.Status = "raw" }), []string{"BLOB"}},
		{with(func(t *store.Table) { t.Status = "untyped" }), []string{`""`}},
		{with(func(t *store.Table) { t.Name = "firm" }), []string{"ANY"}},
		{with(func(t *store.Table) { t.Name = "seen" }), []string{"view"}},
		{with(func(t *store.Table) { t.Name = "found" }), []string{"virtual"}},
		{with(func(t *store.Table) { t.Name = "holdfast_entity" }), []string{"belongs to"}},
		{with(func(t *store.Table) { t.Name = "sqlite_schema" }), []string{"belongs to"}},
		{with(func(t *store.Table) { t.ID = "note" }), []string{`CREATE UNIQUE INDEX "orders_id" ON "orders" ("note")`}},
		{with(func(t *store.Table) { t.ID = "part" }), []string{"UNIQUE"}},
		{with(func(t *store.Table) { t.ID = "inc" }), []string{"UNIQUE"}},
		{with(func(t *store.Table) { t.ID = "expr" }), []string{"UNIQUE"}},
		{with(func(t *store.Table) { t.ID, t.Workspace = "note", "tenant" }), []string{`("tenant", "note")`}},
	} {
		testkit.WantCode(t, tableError(t, hf, c.table), fault.Validation, c.parts...)
	}
	execSQL(t, db, `CREATE UNIQUE INDEX e ON orders (note, tenant)`)
	openTable(t, hf, with(func(t *store.Table) { t.ID, t.Workspace = "note", "tenant" }))
	openTable(t, hf, with(func(t *store.Table) { t.Workspace = "tenant" })) // an id is unique by itself
	testkit.WantCode(t, tableError(t, hf, with(func(t *store.Table) { t.ID = "note" })), fault.Validation, "UNIQUE")
}

func TestTableThatChangedLaterIsToldAsSuch(t *testing.T) {
	t.Parallel()
	hf, db, own := newOrders(t, plainOrders, `INSERT INTO orders VALUES (1, 'new', 0, '')`)
	wantMove(t, hf, own, "1", "new", "paid", 1)
	execSQL(t, db, `ALTER TABLE orders ADD COLUMN more INTEGER DEFAULT 5`)
	wantMove(t, hf, own, "1", "paid", "sent", 2)
	wantRow(t, own, "", "1", "sent", 2)
	execSQL(t, db, `ALTER TABLE orders DROP COLUMN version`)
	_, _, err := own.Read(t.Context(), nil, "", "1")
	testkit.WantCode(t, err, fault.Validation, "has changed since", "version")
	err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, _, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "sent", "x", nil)
		return err
	})
	testkit.WantCode(t, err, fault.Validation, "has changed since")
	execSQL(t, db, `DROP TABLE orders`)
	_, err = own.In(t.Context(), "", []string{"sent"}, 1)
	testkit.WantCode(t, err, fault.Validation, "has changed since")
}

// TestTableUsesTheIndexes verifies that a move, and a read, finds its row by an index, and that In
// uses one on the status.
func TestTableUsesTheIndexes(t *testing.T) {
	t.Parallel()
	hf, db := beside(t, `CREATE TABLE big0 (id INTEGER PRIMARY KEY, status TEXT, version INT)`,
		`CREATE TABLE big1 (id BIGINT UNIQUE, status TEXT, version INT)`, `CREATE TABLE big2 (id TEXT PRIMARY KEY, status INT, version INT) WITHOUT ROWID`)
	for i := range 3 {
		table := orders
		table.Name = fmt.Sprintf("big%d", i)
		execSQL(t, db, `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 2000) INSERT INTO `+table.Name+` SELECT n, n % 500, 0 FROM s`,
			`CREATE INDEX `+table.Name+`_status ON `+table.Name+` (status, id)`, `ANALYZE`)
		texts := openTable(t, hf, table).(interface{ Texts() store.Texts }).Texts()
		for name, args := range map[string][]any{"move": {"", "5", "5", "6", nil}, "read": {"", "5"}, "in": {10, "5", "6"}} {
			rows, err := db.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+texts[name], args...)
			if err != nil {
				t.Fatal(err)
			}
			var plan strings.Builder
			for rows.Next() {
				var a, b, c int
				var line string
				if err := rows.Scan(&a, &b, &c, &line); err != nil {
					t.Fatal(err)
				}
				plan.WriteString(line + "\n")
			}
			rows.Close()
			if !strings.HasPrefix(plan.String(), "SEARCH") || strings.Contains(plan.String(), "SCAN t") {
				t.Errorf("%s of %s:\n%s", name, table.Name, plan.String())
			}
		}
	}
}

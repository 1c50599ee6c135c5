package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

var orders = store.Table{Name: "orders", ID: "id", Status: "status", Version: "version"}

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

// newOrders returns an engine beside a table of orders.
func newOrders(t *testing.T, columns string) (*holdfast.Engine, *pgx.Conn, store.UserTable) {
	t.Helper()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	execute(t, conn, `CREATE TABLE orders (`+columns+`)`)
	return hf, conn, openTable(t, hf, orders)
}

const plainOrders = `id bigint PRIMARY KEY, status text, version bigint, note text`

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

func TestTableMovesOnlyFromTheStatusAndVersionNamed(t *testing.T) {
	t.Parallel()
	hf, conn, own := newOrders(t, plainOrders)
	execute(t, conn, `INSERT INTO orders VALUES (7, 'new', 3, 'a'), (8, NULL, NULL, 'b'), (9, 'new', NULL, 'c')`)
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
	if note := query[string](t, conn, `SELECT note FROM orders WHERE id = 7`); note != "a" {
		t.Errorf("got note %q, want a", note)
	}
}

// TestTableWritesOnlyTheGivenColumns writes some columns of a partitioned table whose other columns refuse NULL by their type.
func TestTableWritesOnlyTheGivenColumns(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	execute(t, conn, `CREATE DOMAIN cents AS bigint NOT NULL CHECK (VALUE >= 0)`)
	execute(t, conn, `CREATE TABLE orders (`+plainOrders+`, total cents, t text, r "char", twice bigint GENERATED ALWAYS AS (total * 2) STORED) PARTITION BY RANGE (id)`)
	execute(t, conn, `CREATE TABLE part (r "char", note text, t text, total cents, version bigint, status text, twice bigint GENERATED ALWAYS AS (total * 2) STORED, id bigint NOT NULL)`)
	execute(t, conn, `ALTER TABLE orders ATTACH PARTITION part FOR VALUES FROM (0) TO (10)`)
	execute(t, conn, `INSERT INTO orders VALUES (1, 'new', 0, 'a', 5, 'tee', 'x'), (2, 'new', 0, 'a', 5, 'tee', 'x')`)
	with := orders
	with.Write = []string{"note", "t", "r", "total"}
	own := openTable(t, hf, with)
	write := func(values map[string]json.RawMessage) (found bool, err error) {
		err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) (err error) {
			found, err = own.Write(ctx, wrapped{store.TxOf(tx).Conn()}, "", "1", values)
			return err
		})
		return found, err
	}
	row := func(id int) string {
		return query[string](t, conn, fmt.Sprintf(`SELECT concat_ws(' ', note, total, t, r, twice, version) FROM orders WHERE id = %d`, id))
	}
	for _, c := range []struct {
		values map[string]json.RawMessage
		want   string
	}{
		{map[string]json.RawMessage{"note": []byte(`"b"`)}, "b 5 tee x 10 0"},
		{map[string]json.RawMessage{"total": []byte(`7`), "t": []byte(`null`)}, "b 7 x 14 0"},
		{map[string]json.RawMessage{"t": []byte(`"to"`), "r": []byte(`"y"`)}, "b 7 to y 14 0"},
	} {
		if found, err := write(c.values); err != nil || !found || row(1) != c.want {
			t.Errorf("write of %s: got %t, error %v and row %q, want %q", c.values, found, err, row(1), c.want)
		}
	}
	for _, wrong := range []string{`null`, `-1`, `"x"`} {
		if _, err := write(map[string]json.RawMessage{"total": []byte(wrong)}); fault.CodeOf(err) != fault.Validation {
			t.Errorf("write of total %s: got error %v, want a validation error", wrong, err)
		}
	}
	if row(1) != "b 7 to y 14 0" || row(2) != "a 5 tee x 10 0" {
		t.Errorf("got rows %q and %q", row(1), row(2))
	}
}

func TestTableReadsTheWholeRowAsJSON(t *testing.T) {
	t.Parallel()
	hf, conn, own := newOrders(t, plainOrders+`, t text, blob bytea, doc json, at timestamptz, big numeric, f float8`)
	execute(t, conn, `INSERT INTO orders VALUES (1, 'new', 0, E'a "b"\n', 'tee', '\x00ff', '{"a": "\u0000", "n": [1]}', '2026-01-02T03:04:05Z', 12345678901234567890123, 'NaN')`)
	check := func(row store.UserRow) {
		var data map[string]any
		if err := json.Unmarshal(row.Data, &data); err != nil {
			t.Fatalf("%s: %v", row.Data, err)
		}
		for name, want := range map[string]string{"id": "1", "status": "new", "note": "a \"b\"\n", "t": "tee", "blob": `\x00ff`, "f": "NaN", "doc": "map[a:\x00 n:[1]]"} {
			if got := fmt.Sprint(data[name]); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if len(data) != 10 || !strings.Contains(string(row.Data), "12345678901234567890123") || !strings.Contains(string(row.Data), "2026-01-02T03:04:05+00:00") {
			t.Errorf("got data %s", row.Data)
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
		check(store.UserRow{Data: []byte(strings.Replace(string(row.Data), `"paid"`, `"new"`, 1))})
		wantRow(t, own, "", "1", "new", 0) // not visible outside yet
		return err
	})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
}

// typed are columns for ids and statuses: with rows that exist, and texts that do not, or that do
// not cast.
var typed = []struct {
	name, id, status string
	ids              []string
	from, to         string
	absent           []string
}{
	{"bigint", "bigint", "text", []string{"1", "-5", "9223372036854775807"}, "new", "paid", []string{"abc", "", "01", "+1", " 1", "1.0", "9223372036854775808", "1\x00"}},
	{"smallint", "smallint", "int", []string{"1", "32767"}, "10", "-20", []string{"32768", "1e2"}},
	{"numeric", "numeric(12,2)", "smallint", []string{"1.50", "-3.00"}, "1", "2", []string{"1.5", "NaN", "1e3", strings.Repeat("9", 200000)}},
	{"uuid", "uuid", "text", []string{"550e8400-e29b-41d4-a716-446655440000"}, "new", "paid", []string{"abc", "550E8400-E29B-41D4-A716-446655440000", "{550e8400-e29b-41d4-a716-446655440000}"}},
	{"text", "text", "varchar(10)", []string{"a", "", "ä'\"\\$1", "007", "'; DROP TABLE orders; --"}, "new", "paid", []string{"A", "a\x00", "a\xff", "b"}},
	{"varchar", "varchar(5)", "char(8)", []string{"abcde", "x"}, "new", "paid", []string{"abcdef", "x "}},
	{"char", "char(5)", "citext", []string{"abc"}, "new", "paid", []string{"abc ", "ABC"}},
	{"citext", "citext", "mood", []string{"Abc"}, "new", "it's paid", []string{"abc"}},
	{"name", "name", "mood", []string{"abc"}, "new", "it's paid", []string{strings.Repeat("n", 64)}},
	{"enum", "mood", "mood", []string{"new", "it's paid"}, "new", "it's paid", []string{"old", "", strings.Repeat("x", 100)}},
	{"domain", "code", "state", []string{"x1"}, "new", "paid", []string{"1", "toolong"}},
	{"collation", `text COLLATE "loose"`, `text COLLATE "loose"`, []string{"Abc"}, "new", "paid", []string{"abc"}},
}

func TestTableCastsTheTextToTheTypeOfTheColumn(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	if available := query[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citext')`); available {
		execute(t, conn, `CREATE EXTENSION citext`)
	} else {
		execute(t, conn, `CREATE DOMAIN citext AS text`)
	}
	execute(t, conn, `CREATE SCHEMA "Types"`, `CREATE TYPE "Types".mood AS ENUM ('new', 'it''s paid')`,
		`CREATE DOMAIN base AS varchar(4)`, `CREATE DOMAIN code AS base CHECK (VALUE LIKE 'x%')`, `CREATE DOMAIN state AS text CHECK (VALUE <> '')`,
		`CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	for i, c := range typed {
		t.Run(c.name, func(t *testing.T) {
			table := orders
			table.Name = fmt.Sprintf("public.t%d", i)
			qualify := strings.NewReplacer("mood", `"Types".mood`)
			execute(t, conn, `CREATE TABLE `+table.Name+` (id `+qualify.Replace(c.id)+` PRIMARY KEY, status `+qualify.Replace(c.status)+`, version int NOT NULL DEFAULT 0)`)
			for _, id := range c.ids {
				if _, err := conn.Exec(t.Context(), `INSERT INTO `+table.Name+` VALUES ($1::text::`+qualify.Replace(strings.Split(c.id, " COLL")[0])+`, $2::text::`+qualify.Replace(strings.Split(c.status, " COLL")[0])+`)`, id, c.from); err != nil {
					t.Fatal(err)
				}
			}
			own := openTable(t, hf, table)
			rows, err := own.In(t.Context(), "", []string{"no such", c.from, "a\x00"}, 10)
			if err != nil || len(rows) != len(c.ids) {
				t.Errorf("status %q: got %+v, %v", c.from, rows, err)
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
		_, err := stream.Append(ctx, tx, "after", stream.Any, event("absent"))
		return err
	})
	if err != nil {
		t.Error(err, errors.Unwrap(err))
	}
}

// TestTableThatRefusesAMoveLeavesTheTransactionUsable verifies that a refusal of the user's table
// is reported as such, and leaves the row unchanged and the transaction usable.
func TestTableThatRefusesAMoveLeavesTheTransactionUsable(t *testing.T) {
	t.Parallel()
	hf, conn, own := newOrders(t, `id text PRIMARY KEY, status varchar(10) NOT NULL CHECK (status <> 'never'), version smallint`)
	execute(t, conn, `CREATE TYPE mood AS ENUM ('new')`, `CREATE TABLE moody (id int UNIQUE, status mood, version int)`,
		`CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		   IF NEW.status = 'boom' THEN RAISE EXCEPTION 'not today'; END IF;
		   IF NEW.status = 'cast' THEN PERFORM 'x'::int; END IF;
		   IF NEW.status = 'none' THEN RETURN NULL; END IF;
		   RETURN NEW; END $$`,
		`CREATE TRIGGER watch BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION watch()`,
		`INSERT INTO orders VALUES ('a', 'new', 0), ('full', 'new', 32767)`, `INSERT INTO moody VALUES (1, 'new', 0)`)
	moody := openTable(t, hf, store.Table{Name: "moody", ID: "id", Status: "status", Version: "version"})
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		for _, c := range []struct {
			own     store.UserTable
			id, to  string
			because string
		}{
			{own, "a", "never", "orders_status_check"},
			{own, "a", "much too long for it", "too long"},
			{own, "a", "boom", "not today"},
			{own, "a", "cast", "invalid input syntax"},
			{own, "a", "a\x00b", "cannot be stored"},
			{own, "full", "paid", "out of range"},
			{moody, "1", "old", "mood"},
		} {
			_, moved, err := c.own.Move(ctx, store.TxOf(tx).Conn(), "", c.id, "new", c.to, nil)
			if moved {
				t.Errorf("moved to %q", c.to)
			}
			testkit.WantCode(t, err, fault.Validation, c.because)
		}
		if _, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "a", "new", "none", nil); moved || err != nil {
			t.Errorf("a trigger reverted the row: got moved %t, %v, want false", moved, err)
		}
		if _, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "a", "new", "paid", nil); !moved || err != nil {
			t.Errorf("got moved %t, %v, want true", moved, err)
		}
		if c := store.TxOf(tx).Conn().(interface{ Exposed() bool }); c.Exposed() {
			t.Error("the transaction is marked as exposed")
		}
		_, err := stream.Append(ctx, tx, "after", stream.Any, event("refused"))
		return err
	})
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	wantRow(t, own, "", "a", "paid", 1)
	wantRow(t, own, "", "full", "new", 32767)
}

// TestTableThatKeepsAnotherStatusIsRefused verifies that a status that the table stores as another
// one does not count as moved, and that a caller that ignores that cannot commit it.
func TestTableThatKeepsAnotherStatusIsRefused(t *testing.T) {
	t.Parallel()
	hf, conn, own := newOrders(t, plainOrders)
	execute(t, conn, `CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.status := upper(NEW.status); RETURN NEW; END $$`,
		`CREATE TRIGGER shout BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION shout()`, `INSERT INTO orders VALUES (1, 'new', 0)`)
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "new", "paid", nil)
		testkit.WantCode(t, err, fault.Validation, "PAID")
		if moved {
			t.Error("moved, want not moved")
		}
		return nil
	})
	if err == nil {
		t.Error("the transaction was committed")
	}
	wantRow(t, own, "", "1", "new", 0)
}

func TestTableMovesOnlyInsideATransaction(t *testing.T) {
	t.Parallel()
	hf, conn, own := newOrders(t, plainOrders)
	execute(t, conn, `INSERT INTO orders VALUES (1, 'new', 0)`)
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
	_, _, err = own.Move(t.Context(), store.TxOf(left).Conn(), "", "1", "new", "paid", nil)
	if !errors.Is(err, store.ErrTxDone) {
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
	hf, conn, own := newOrders(t, plainOrders+`, CHECK (status <> 'never')`)
	execute(t, conn, `INSERT INTO orders VALUES (1, 'new', 0)`, `CREATE SCHEMA other`, `SET search_path = other`)
	tx, joined := begin(t, hf, conn)
	_, _, err := own.Move(t.Context(), store.TxOf(joined).Conn(), "", "1", "new", "never", nil)
	testkit.WantCode(t, err, fault.Validation)
	if _, moved, err := own.Move(t.Context(), store.TxOf(joined).Conn(), "", "1", "new", "paid", nil); !moved || err != nil {
		t.Fatal(moved, err, errors.Unwrap(err))
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantRow(t, own, "", "1", "paid", 1)
}

// TestTableRaceHasOneWinner verifies that of N callers that move one row one wins, and the rest get
// no move.
func TestTableRaceHasOneWinner(t *testing.T) {
	t.Parallel()
	hf, conn, own := newOrders(t, plainOrders)
	execute(t, conn, `INSERT INTO orders VALUES (1, 'new', 0)`)
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
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	execute(t, conn, `CREATE TABLE orders (id int, tenant bigint, status text, version int, UNIQUE (id, tenant))`,
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
	{Name: `My "Orders"`, ID: `The ID`, Status: `STATUS`, Version: `a"b`, Workspace: `ü $1`},
	{Name: `orders; DROP TABLE keep; --`, ID: `id"; DROP TABLE keep; --`, Status: `'status'`, Version: `%s ?1 :x`, Workspace: `t`},
	{Name: `My Schema.Mixed`, ID: `t`, Status: `$2`, Version: `e`, Workspace: `excluded`},
	{Name: `x"; y.x"; z`, ID: `\`, Status: `--`, Version: `/*`, Workspace: `*`},
}

func TestTableTakesAnyName(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	execute(t, conn, `CREATE TABLE keep (n int)`)
	for _, table := range odd {
		parts := strings.Split(table.Name, ".")
		if len(parts) == 2 {
			execute(t, conn, `CREATE SCHEMA `+pgx.Identifier{parts[0]}.Sanitize())
		}
		q := func(name string) string { return pgx.Identifier{name}.Sanitize() }
		execute(t, conn, `CREATE TABLE `+pgx.Identifier(parts).Sanitize()+` (`+q(table.ID)+` text, `+q(table.Status)+` text, `+q(table.Version)+` int, `+q(table.Workspace)+` text, PRIMARY KEY (`+q(table.Workspace)+`, `+q(table.ID)+`))`,
			`INSERT INTO `+pgx.Identifier(parts).Sanitize()+` VALUES ('i', 'new', 0, 'w')`)
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
	query[int](t, conn, `SELECT count(*) FROM keep`)
}

func TestTableRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	execute(t, conn, `CREATE TABLE orders (`+plainOrders+`, tenant text, at inet, gen int GENERATED ALWAYS AS (1) STORED, ident int GENERATED ALWAYS AS IDENTITY, num numeric, part text, inc text, expr text, gone text)`,
		`ALTER TABLE orders DROP COLUMN gone`,
		`CREATE VIEW seen AS SELECT * FROM orders`, `CREATE MATERIALIZED VIEW made AS SELECT * FROM orders`, `CREATE SEQUENCE seq`,
		`CREATE UNIQUE INDEX ON orders (part) WHERE part <> ''`, `CREATE UNIQUE INDEX ON orders (inc, note)`, `CREATE UNIQUE INDEX ON orders (lower(expr))`)
	with := func(change func(*store.Table)) store.Table {
		table := orders
		change(&table)
		return table
	}
	for _, c := range []struct {
		table store.Table
		parts []string
	}{
		{with(func(t *store.Table) { t.Name = "nothing" }), []string{`"nothing"`, "search_path"}},
		{with(func(t *store.Table) { t.Name = "Orders" }), []string{`"Orders"`}},
		{with(func(t *store.Table) { t.Name = "no.orders" }), []string{`schema "no"`}},
		{with(func(t *store.Table) { t.Name = "" }), nil},
		{with(func(t *store.Table) { t.Name = "." }), nil},
		{with(func(t *store.Table) { t.Name = "a.b.c" }), []string{"schema.name"}},
		{with(func(t *store.Table) { t.Name = ".orders" }), []string{"schema.name"}},
		{with(func(t *store.Table) { t.Name = "public." }), nil},
		{with(func(t *store.Table) { t.Name = "or\x00ders" }), []string{"NUL"}},
		{with(func(t *store.Table) { t.Name = "or\xffders" }), nil},
		{with(func(t *store.Table) { t.Name = strings.Repeat("x", 64) }), []string{"63 bytes"}},
		{with(func(t *store.Table) { t.ID = "" }), nil},
		{with(func(t *store.Table) { t.Version = "" }), nil},
		{with(func(t *store.Table) { t.Status = "id" }), []string{"two purposes"}},
		{with(func(t *store.Table) { t.Status, t.Workspace = strings.Repeat("x", 64), "w" }), []string{"63 bytes"}},
		{with(func(t *store.Table) { t.ID, t.Status, t.Workspace = "ID", "gone", "w" }), []string{`"ID" or "gone" or "w"`}},
		{with(func(t *store.Table) { t.ID = "ctid" }), []string{`no column "ctid"`}},
		{with(func(t *store.Table) { t.Version = "note" }), []string{`"note"`, "text", "bigint"}},
		{with(func(t *store.Table) { t.Version = "num" }), []string{"numeric", "bigint"}},
		{with(func(t *store.Table) { t.Version = "gen" }), []string{"generated"}},
		{with(func(t *store.Table) { t.Version = "ident" }), []string{"generated"}},
		{with(func(t *store.Table) { t.Status = "at" }), []string{"inet"}},
		{with(func(t *store.Table) { t.Name = "seen" }), []string{"view"}},
		{with(func(t *store.Table) { t.Name = "made" }), []string{"view"}},
		{with(func(t *store.Table) { t.Name = "seq" }), []string{"is not a table: use an ordinary"}},
		{with(func(t *store.Table) { t.Name = "holdfast.entity" }), []string{"belongs to"}},
		{with(func(t *store.Table) { t.Name = "pg_catalog.pg_class" }), []string{"belongs to"}},
		{with(func(t *store.Table) { t.ID = "note" }), []string{`CREATE UNIQUE INDEX ON "public"."orders" ("note")`}},
		{with(func(t *store.Table) { t.ID = "part" }), []string{"UNIQUE"}},
		{with(func(t *store.Table) { t.ID = "inc" }), []string{"UNIQUE"}},
		{with(func(t *store.Table) { t.ID = "expr" }), []string{"UNIQUE"}},
		{with(func(t *store.Table) { t.ID, t.Workspace = "note", "tenant" }), []string{`("tenant", "note")`}},
	} {
		testkit.WantCode(t, tableError(t, hf, c.table), fault.Validation, c.parts...)
	}
	execute(t, conn, `CREATE UNIQUE INDEX ON orders (note, tenant) INCLUDE (status)`)
	openTable(t, hf, with(func(t *store.Table) { t.ID, t.Workspace = "note", "tenant" }))
	openTable(t, hf, with(func(t *store.Table) { t.Workspace = "tenant" })) // an id is unique by itself
	testkit.WantCode(t, tableError(t, hf, with(func(t *store.Table) { t.ID = "note" })), fault.Validation, "UNIQUE")
}

func TestTableFollowsTheSearchPath(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	conn := connect(t, url)
	for _, schema := range []string{"first", "second"} {
		execute(t, conn, `CREATE SCHEMA `+schema, `CREATE TABLE `+schema+`.orders (`+plainOrders+`)`, `INSERT INTO `+schema+`.orders VALUES (1, '`+schema+`', 0)`)
	}
	own := openTable(t, openEngine(t, postgres.URL(as(t, url, "", "", "search_path=second,first"))), orders)
	wantRow(t, own, "", "1", "second", 0)
	table := orders
	table.Name = "first.orders"
	hf := openEngine(t, postgres.URL(url))
	wantRow(t, openTable(t, hf, table), "", "1", "first", 0)
	testkit.WantCode(t, tableError(t, hf, orders), fault.Validation, "search_path")
}

func TestTableOverPartitions(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	execute(t, conn, `CREATE TABLE orders (id int PRIMARY KEY, status text, version int) PARTITION BY HASH (id)`,
		`CREATE TABLE p0 PARTITION OF orders FOR VALUES WITH (MODULUS 2, REMAINDER 0)`, `CREATE TABLE p1 PARTITION OF orders FOR VALUES WITH (MODULUS 2, REMAINDER 1)`,
		`INSERT INTO orders SELECT n, 'new', 0 FROM generate_series(1, 10) n`)
	own := openTable(t, hf, orders)
	for id := range 10 {
		wantMove(t, hf, own, fmt.Sprint(id+1), "new", "paid", 1)
	}
}

// TestTableSaysWhichGrantIsMissing verifies that a role that owns nothing gets the missing grants
// named, when the table is opened and when a privilege is revoked later.
func TestTableSaysWhichGrantIsMissing(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	admin, role := connect(t, url), newRole(t, url, "LOGIN")
	with := options
	with.RuntimeRole = role
	if _, err := store.DatabaseOf(postgres.URL(url)).Migrate(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	execute(t, admin, `CREATE SCHEMA shop`, `CREATE TABLE shop.orders (`+plainOrders+`)`, `INSERT INTO shop.orders VALUES (1, 'new', 0)`)
	hf := openEngine(t, postgres.URL(as(t, url, role, "")))
	table := orders
	table.Name = "shop.orders"
	for _, grant := range []string{`USAGE ON SCHEMA "shop"`, `SELECT, UPDATE ON "shop"."orders"`} {
		testkit.WantCode(t, tableError(t, hf, table), fault.DatabaseDenied, "GRANT "+grant+" TO", role)
		if strings.HasPrefix(grant, "USAGE") {
			execute(t, admin, "GRANT "+grant+" TO "+role)
		}
	}
	execute(t, admin, "GRANT SELECT ON shop.orders TO "+role)
	testkit.WantCode(t, tableError(t, hf, table), fault.DatabaseDenied, `GRANT UPDATE ON "shop"."orders" TO`)
	execute(t, admin, "GRANT UPDATE (status, version) ON shop.orders TO "+role)
	own := openTable(t, hf, table)
	wantMove(t, hf, own, "1", "new", "paid", 1)

	execute(t, admin, "REVOKE UPDATE (status, version) ON shop.orders FROM "+role)
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, _, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "paid", "sent", nil)
		testkit.WantCode(t, err, fault.DatabaseDenied, `SELECT, UPDATE ON "shop"."orders"`)
		_, found, err := own.Read(ctx, store.TxOf(tx).Conn(), "", "1")
		if !found {
			t.Error("the transaction is not usable")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	execute(t, admin, "REVOKE SELECT ON shop.orders FROM "+role)
	_, _, err = own.Read(t.Context(), nil, "", "1")
	testkit.WantCode(t, err, fault.DatabaseDenied, `SELECT, UPDATE ON "shop"."orders"`)
}

func TestTableThatChangedLaterIsToldAsSuch(t *testing.T) {
	t.Parallel()
	hf, conn, own := newOrders(t, plainOrders)
	execute(t, conn, `INSERT INTO orders VALUES (1, 'new', 0)`)
	wantMove(t, hf, own, "1", "new", "paid", 1)
	execute(t, conn, `ALTER TABLE orders ADD COLUMN more int DEFAULT 5`)
	wantMove(t, hf, own, "1", "paid", "sent", 2)
	if row := wantRow(t, own, "", "1", "sent", 2); !strings.Contains(string(row.Data), `"more":5`) {
		t.Errorf("got data %s, want more 5", row.Data)
	}
	execute(t, conn, `ALTER TABLE orders DROP COLUMN version`)
	_, _, err := own.Read(t.Context(), nil, "", "1")
	testkit.WantCode(t, err, fault.Validation, "has changed since", "version")
	err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, _, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "sent", "x", nil)
		return err
	})
	testkit.WantCode(t, err, fault.Validation, "has changed since")
	execute(t, conn, `DROP TABLE orders`)
	_, err = own.In(t.Context(), "", []string{"sent"}, 1)
	testkit.WantCode(t, err, fault.Validation, "has changed since")
}

// TestTableUsesTheIndexes verifies that a move, and a read, finds its row by an index, as
// PostgreSQL plans it by itself, and that In uses one on the status.
func TestTableUsesTheIndexes(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf, conn := openEngine(t, postgres.URL(url)), connect(t, url)
	execute(t, conn, `CREATE TYPE mood AS ENUM ('new', 'old')`, `SET plan_cache_mode = force_generic_plan`)
	for i, c := range []struct{ id, value, status string }{{"bigint", "n", "text"}, {"uuid", "md5(n::text)::uuid", "mood"}, {"varchar(40)", "n::text", "varchar(10)"}, {"numeric", "n", "char(5)"}} {
		name := fmt.Sprintf("big%d", i)
		execute(t, conn, fmt.Sprintf(`CREATE TABLE %s (id %s PRIMARY KEY, status %s, version bigint)`, name, c.id, c.status),
			fmt.Sprintf(`INSERT INTO %s SELECT %s, CASE WHEN n %% 1000 = 0 THEN 'new' ELSE 'old' END::%s, 0 FROM generate_series(1, 10000) n`, name, c.value, c.status),
			fmt.Sprintf(`CREATE INDEX ON %s (status, id)`, name), `ANALYZE `+name)
		table := orders
		table.Name = name
		texts := openTable(t, hf, table).(interface{ Texts() store.Texts }).Texts()
		id := query[string](t, conn, `SELECT id::text FROM `+name+` LIMIT 1`)
		for text, args := range map[string]string{
			"move": fmt.Sprintf("('', '%s', 'new', 'old', NULL)", id),
			"read": fmt.Sprintf("('', '%s')", id),
			"in":   "('{new}', 10)",
		} {
			execute(t, conn, `PREPARE p_`+text+` AS `+texts[text])
			lines, err := conn.Query(t.Context(), `EXPLAIN EXECUTE p_`+text+args)
			if err != nil {
				t.Fatal(err)
			}
			all, err := pgx.CollectRows(lines, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			plan := strings.Join(all, "\n")
			if strings.Contains(plan, "Seq Scan on "+name) || !strings.Contains(plan, "Index Scan") && !strings.Contains(plan, "Bitmap") && !strings.Contains(plan, "Index Only Scan") {
				t.Errorf("%s %s:\n%s", name, text, plan)
			}
			execute(t, conn, `DEALLOCATE p_`+text)
		}
	}
}

func TestTableBehindADescribingPool(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	conn := connect(t, url)
	execute(t, conn, `CREATE TABLE orders (`+plainOrders+`, CHECK (status <> 'never'))`, `INSERT INTO orders VALUES (1, 'new', 0)`)
	for i, mode := range []string{"cache_describe", "describe_exec", "exec"} {
		hf := openEngine(t, postgres.URL(as(t, url, "", "", "default_query_exec_mode="+mode)))
		own := openTable(t, hf, orders)
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			_, _, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "new", "never", nil)
			testkit.WantCode(t, err, fault.Validation)
			want := int64(2 * i)
			if v, moved, err := own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "new", "paid", &want); v != want+1 || !moved || err != nil {
				t.Errorf("%s: got version %d, moved %t, %v, want %d, true", mode, v, moved, err, want+1)
			}
			_, _, err = own.Move(ctx, store.TxOf(tx).Conn(), "", "1", "paid", "new", nil)
			return err
		})
		if err != nil {
			t.Errorf("%s: %v (%v)", mode, err, errors.Unwrap(err))
		}
		wantRow(t, own, "", "1", "new", int64(2*i+2))
		if rows, err := own.In(t.Context(), "", []string{"new"}, 3); err != nil || len(rows) != 1 {
			t.Errorf("%s: In: got %v, %v, want one row", mode, rows, err)
		}
	}
}

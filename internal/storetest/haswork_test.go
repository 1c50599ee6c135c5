package storetest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// workRows are rows, as column=value, that wake/due.sql must find, and the same rows without
// work. PAST and FUTURE are times.
var workRows = []struct {
	need       wake.WorkKind
	table      string
	seen, idle string
}{
	{wake.WorkKind{Kind: wake.Reaction, Name: "n"}, "follow", "reaction='n' due=1 watermark=0 due_at=PAST", "reaction='n' due=1 watermark=0 due_at=FUTURE"},
	{wake.WorkKind{Kind: wake.Reaction, Name: "n"}, "follow", "reaction='n' due=1 watermark=0 due_at=PAST deaths=1", "reaction='m' due=1 watermark=0 due_at=PAST"},
	{wake.WorkKind{Kind: wake.Operation, Name: "l:n"}, "entity", "lifecycle='n' phase='due' due_at=PAST", "lifecycle='n' phase='due' due_at=FUTURE"},
	{wake.WorkKind{Kind: wake.Operation, Name: "h:n"}, "entity", "lifecycle='n' queue='h:n' phase='due' due_at=PAST", "lifecycle='n' phase='due' due_at=PAST"},
	{wake.WorkKind{Kind: wake.Step}, "step", "handler='' due_at=PAST", "handler='' due_at=FUTURE"},
	{wake.WorkKind{Kind: wake.Step, Name: "n"}, "step", "handler='n' due_at=PAST", "handler='m' due_at=PAST"},
	{wake.WorkKind{Kind: wake.Batch, Name: "n"}, "batch", "handler='n' status='PENDING' items=1 parallel=1", "handler='n' status='COMPLETED' items=1 parallel=1"},
	{wake.WorkKind{Kind: wake.Batch, Name: "n"}, "batch", "handler='n' status='RUNNING' items=1 next=1 waiting=1 parallel=1", "handler='n' status='RUNNING' items=1 parallel=1 running=1"},
	{wake.WorkKind{Kind: wake.Maintenance}, "batch", "due_at=PAST", "due_at=FUTURE"},
	{wake.WorkKind{Kind: wake.Cleaning}, "item", "sweep_at=PAST", "sweep_at=FUTURE"},
	{wake.WorkKind{Kind: wake.HeldReaction}, "follow", "holder='h' until=PAST", "holder='h' until=FUTURE"},
	{wake.WorkKind{Kind: wake.HeldStream}, "stream", "holder='h' until=PAST", "holder='h' until=FUTURE"},
	{wake.WorkKind{Kind: wake.HeldOperation}, "entity", "holder='h' until=PAST", "holder='h' until=FUTURE"},
	{wake.WorkKind{Kind: wake.HeldStep}, "step", "holder='h' until=PAST", "holder='h' until=FUTURE"},
	{wake.WorkKind{Kind: wake.HeldItem}, "item", "workspace='w' batch='b' holder='h' until=PAST", "workspace='w' batch='b' holder='h' until=FUTURE"},
	{wake.WorkKind{Kind: wake.PausedBatch}, "batch", "status='PAUSED'", "status='CANCELLED'"},
	{wake.WorkKind{Kind: wake.UnfinishedReaction}, "reaction", "state='waiting' max_deaths=1 source='event'", "state='live' max_deaths=1 source='event'"},
	{wake.WorkKind{Kind: wake.DroppedEvents}, "stream", "first=1 pruned=0", "first=1 pruned=1"},
	{wake.WorkKind{Kind: wake.OldBatch}, "batch", "prune_at=PAST", "prune_at=FUTURE"},
	{wake.WorkKind{Kind: wake.OldRun}, "run", "prune_at=PAST", "prune_at=FUTURE"},
	{wake.ScopeChanged(store.Partition{Shard: 1, Workspace: "w"}, "k", "i", -1), "scope", "workspace='w' kind='k' id='i' state='{}' version=0", "workspace='w' kind='k' id='i' state='{}' version=0 expires_at=PAST"},
	{wake.ScopeChanged(store.Partition{Shard: 1, Workspace: "w"}, "k", "i", -1), "scope", "workspace='w' kind='k' id='i' state='{}' version=7 expires_at=FUTURE", "workspace='w' kind='k' id='i' version=7"},
	{wake.ScopeChanged(store.Partition{Shard: 1, Workspace: "w"}, "k", "i", -1), "scope", "workspace='w' kind='k' id='i' state='{}' version=7", "workspace='v' kind='k' id='i' state='{}' version=7"},
	{wake.Cancelled(wake.CancelledBatch, store.Partition{Shard: 1, Workspace: "w"}, "b"), "batch", "workspace='w' id='b' cancel_requested=true", "workspace='w' id='b' cancel_requested=false"},
	{wake.Cancelled(wake.CancelledRun, store.Partition{Shard: 1, Workspace: "w"}, "r"), "run", "workspace='w' id='r' cancel_requested=true", "workspace='v' id='r' cancel_requested=true"},
	{wake.WorkKind{Kind: wake.OldScope}, "scope", "expires_at=PAST", "expires_at=FUTURE"},
	{wake.WorkKind{Kind: wake.OldRequest}, "request", "expires_at=PAST", "expires_at=FUTURE"},
	{wake.WorkKind{Kind: wake.OldToken}, "token", "expires_at=PAST", "expires_at=FUTURE"},
	{wake.WorkKind{Kind: wake.OldSession}, "session", "expires_at=PAST", "expires_at=FUTURE"},
	{wake.WorkKind{Kind: wake.OldRefusal, Name: "1000"}, "refusal", "at=PAST stands_for=1", "at=FUTURE stands_for=1"},
}

// TestAGlanceSeesWhatIsDue verifies for each kind of work that a due row is found, also on a shard
// that is not the first, and by no other kind; and that a row that is not due is not found.
func TestAGlanceSeesWhatIsDue(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := holdfasttest.SQLite(t)
		hf := holdfasttest.OpenOn(t, database("sqlite:"+path))
		db := openSQLite(t, path, "_pragma=busy_timeout(10000)&_pragma=ignore_check_constraints(1)")
		checkHasWork(t, hf, sqliteRows{db})
	})
	t.Run("postgres", func(t *testing.T) {
		url := holdfasttest.PostgreSQL(t)
		hf := holdfasttest.OpenOn(t, database(url))
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		checkHasWork(t, hf, postgresRows{conn})
	})
}

func checkHasWork(t *testing.T, hf *holdfast.Engine, r rows) {
	var needs []wake.WorkKind
	for _, g := range workRows {
		if !slices.Contains(needs, g.need) {
			needs = append(needs, g.need)
		}
	}
	see := func(shards ...int16) map[wake.WorkKind]bool {
		t.Helper()
		due, err := wake.HasWork(t.Context(), engine.Of(hf), shards, needs)
		if err != nil {
			t.Fatal(err)
		}
		return due
	}
	if due := see(0, 1); len(due) > 0 {
		t.Errorf("empty database has due work %v", due)
	}
	for _, g := range workRows {
		if g.need.Kind == wake.HeldItem { // it is looked up through its batch
			r.insert(t, "batch", "shard=1 workspace='w' id='b' status='RUNNING' running=1 parallel=1")
		}
		r.insert(t, g.table, "shard=1 "+g.seen)
		if due := see(0, 1); !due[g.need] {
			t.Errorf("%v is not found in %s: %s", g.need, g.table, g.seen)
		}
		if due := see(0); len(due) > 0 && !strings.HasPrefix(g.need.Name, "[") { // its name includes the shard
			t.Errorf("%v is found on another shard", due)
		}
		r.clear(t, g.table)
		r.insert(t, g.table, "shard=1 "+g.idle)
		if due := see(0, 1); due[g.need] {
			t.Errorf("%v is found in %s: %s", g.need, g.table, g.idle)
		}
		r.clear(t, g.table)
	}
}

// rows inserts rows into tables as no verb would.
type rows interface {
	insert(t *testing.T, table, values string)
	clear(t *testing.T, table string)
}

// row returns a statement that inserts a row: the given values, and a value for each other column
// that must not be null.
func row(table, values string, must map[string]string) string {
	var names, list []string
	for pair := range strings.FieldsSeq(values) {
		name, value, _ := strings.Cut(pair, "=")
		names, list = append(names, name), append(list, value)
		delete(must, name)
	}
	for name, value := range must {
		names, list = append(names, name), append(list, value)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(names, ", "), strings.Join(list, ", "))
}

type sqliteRows struct{ db *sql.DB }

func (r sqliteRows) insert(t *testing.T, table, values string) {
	t.Helper()
	found, err := r.db.Query(`SELECT name, type FROM pragma_table_info('holdfast_` + table + `') WHERE "notnull" = 1 AND dflt_value IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	must := make(map[string]string)
	for found.Next() {
		var name, kind string
		if err := found.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		must[name] = "0"
		if kind == "TEXT" {
			must[name] = "'{}'"
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	times := strings.NewReplacer("PAST", fmt.Sprint(now-3_600_000), "FUTURE", fmt.Sprint(now+3_600_000))
	if _, err := r.db.Exec(times.Replace(row("holdfast_"+table, values, must))); err != nil {
		t.Fatal(err)
	}
}

func (r sqliteRows) clear(t *testing.T, table string) {
	t.Helper()
	if _, err := r.db.Exec(`DELETE FROM holdfast_` + table); err != nil {
		t.Fatal(err)
	}
}

type postgresRows struct{ conn *pgx.Conn }

func (r postgresRows) insert(t *testing.T, table, values string) {
	t.Helper()
	found, err := r.conn.Query(t.Context(), `SELECT column_name, data_type FROM information_schema.columns
		WHERE table_schema = 'holdfast' AND table_name = $1 AND is_nullable = 'NO' AND column_default IS NULL`, table)
	if err != nil {
		t.Fatal(err)
	}
	must := make(map[string]string)
	var name, kind string
	_, err = pgx.ForEachRow(found, []any{&name, &kind}, func() error {
		switch kind {
		case "text", "json", "jsonb":
			must[name] = "'{}'"
		case "boolean":
			must[name] = "false"
		case "timestamp with time zone":
			must[name] = "now()"
		case "uuid":
			must[name] = "gen_random_uuid()"
		default:
			must[name] = "0"
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	times := strings.NewReplacer("PAST", "now() - interval '1 hour'", "FUTURE", "now() + interval '1 hour'")
	if _, err := r.conn.Exec(t.Context(), times.Replace(row("holdfast."+table, values, must))); err != nil {
		t.Fatal(err)
	}
}

func (r postgresRows) clear(t *testing.T, table string) {
	t.Helper()
	if _, err := r.conn.Exec(t.Context(), `DELETE FROM holdfast.`+table); err != nil {
		t.Fatal(err)
	}
}

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/wire"
)

const (
	ordersTable = `CREATE TABLE orders (nr text PRIMARY KEY, state text NOT NULL, rev bigint NOT NULL DEFAULT 0, cents bigint NOT NULL DEFAULT 5, note text, more json)`
	orderConfig = `{
  "workflow": "order", "owning_module": "shop", "initial_status": "new", "status_types": ["new", "paying", "paid", "void"], "janitor": {"stuck_after": "5m"},
  "entity_table": "orders",
  "steps": [
    {"step_id": 1, "step_key": "pay", "status": "new", "successful_claim_state": ["paying", "new"], "successful_state": "paid", "action": "Pay"},
    {"step_id": 2, "step_key": "void", "status": "new", "successful_state": "void", "serialized": ["admin"]}
  ]
}`
)

// withOrders are options that declare the table.
func withOrders() httpapi.Options {
	return httpapi.Options{NoKeys: true, EntityTables: map[string]httpapi.EntityTable{
		"orders": {ID: "nr", Status: "state", Version: "rev", Write: []string{"cents", "note", "more"}}}}
}

// onOwnTable runs a test on both databases, with the table, and with the address of the database.
func onOwnTable(t *testing.T, table string, f func(t *testing.T, e *holdfast.Engine, at string)) {
	t.Helper()
	for name, at := range map[string]func(testing.TB) string{"sqlite": holdfasttest.SQLite, "postgres": holdfasttest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			where := at(t)
			e := holdfasttest.OpenOn(t, holdfasttest.At(where))
			sqlOn(t, e, table)
			f(t, e, where)
		})
	}
}

// sqlOn runs statements in the database of an engine.
func sqlOn(t *testing.T, e *holdfast.Engine, texts ...string) {
	t.Helper()
	err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) (err error) {
		for _, text := range texts {
			if strings.HasSuffix(t.Name(), "postgres") {
				_, err = postgres.Raw(tx).Exec(ctx, text)
			} else {
				_, err = sqlite.Raw(tx).ExecContext(ctx, text)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantRow compares a row of the user's table, as SQL sees it.
func wantRow(t *testing.T, e *holdfast.Engine, nr, want string) {
	t.Helper()
	const text = `SELECT state || ' ' || rev || ' ' || cents || ' ' || coalesce(note, '-') || ' ' || coalesce(CAST(more AS text), '-') FROM orders WHERE nr = `
	var got string
	err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		if strings.HasSuffix(t.Name(), "postgres") {
			return postgres.Raw(tx).QueryRow(ctx, text+"'"+nr+"'").Scan(&got)
		}
		return sqlite.Raw(tx).QueryRowContext(ctx, text+"'"+nr+"'").Scan(&got)
	})
	if err != nil || got != want {
		t.Errorf("row %s is %q (error %v), want %q", nr, got, err, want)
	}
}

// orders declares the handler, publishes the config, and inserts rows.
func (d *testAPI) orders(ids ...string) {
	d.t.Helper()
	d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
	d.want(d.ask("PUT", "lifecycles/order", orderConfig, nil), 201, "")
	for _, id := range ids {
		sqlOn(d.t.(*testing.T), d.engine, "INSERT INTO orders (nr, state) VALUES ('"+id+"', 'new')")
	}
}

// TestAPublishedLifecycleOnAUsersTable verifies that every route works on rows of a user's table: a worker gets the row
// and sets columns in the transaction that settles the step, and so does a caller that holds a claim.
func TestAPublishedLifecycleOnAUsersTable(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders("o1", "o2", "o3")
		const at = "lifecycles/order/entities"
		var one wire.Entity
		d.want(d.ask("GET", at+"/o1", nil, &one), 200, "")
		if one.Status != "new" || one.Version != 0 || !strings.Contains(string(one.Data), `"cents":5`) {
			t.Errorf("got entity %+v with data %s", one, one.Data)
		}
		var fired wire.Fired
		var waiting sync.WaitGroup
		waiting.Go(func() {
			d.ask("POST", at+"/o1/steps/pay", wire.Fire{Requester: "admin"}, &fired, "Idempotency-Key", "k")
		})
		var got wire.Tasks
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Pay"}}, &got), 200, "")
		if len(got.Tasks) != 1 {
			t.Fatalf("claimed %+v, want one task", got)
		}
		task := got.Tasks[0]
		if x := task.Context.Entity; x.Status != "paying" || x.Version != 1 || !strings.Contains(string(x.Data), `"cents":5`) {
			t.Errorf("got task with entity %+v and data %s", x, x.Data)
		}
		wantRow(t, e, "o1", "paying 1 5 - -")
		path := "tasks/" + task.ID
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Epoch: task.Epoch, Name: "charge"}, nil), 200, "")
		d.want(d.ask("POST", path+"/effects", wire.EffectCall{Epoch: task.Epoch, Name: "charge", Result: []byte(`1`)}, nil), 200, "")
		for _, bad := range []string{`{"state":"void"}`, `{"rev":9}`, `{"nr":"o2"}`, `{"colour":1}`, `{"cents":"many"}`, `{"cents":null}`, `[1]`} {
			if strings.Contains(bad, "many") && strings.HasSuffix(t.Name(), "sqlite") {
				continue // a column of SQLite accepts a text
			}
			resp := d.ask("POST", path+"/complete", wire.CompleteTask{Epoch: task.Epoch, State: []byte(bad)}, nil)
			if resp.StatusCode < 400 || resp.StatusCode >= 500 {
				t.Errorf("complete with state %s returned status %d %s, want a refusal", bad, resp.StatusCode, textOf(resp))
			}
			wantRow(t, e, "o1", "paying 1 5 - -")
		}
		done := wire.CompleteTask{Epoch: task.Epoch, State: []byte(`{"cents":7,"note":"it's paid","more":{"a":[1]}}`)}
		for range 2 {
			d.want(d.ask("POST", path+"/complete", done, nil), 200, "")
		}
		waiting.Wait()
		if fired.Outcome != "success" || fired.Entity.Status != "paid" || fired.Entity.Version != 2 {
			t.Errorf("fire returned %+v, want success, status paid and version 2", fired)
		}
		wantRow(t, e, "o1", `paid 2 7 it's paid {"a":[1]}`)

		d.want(d.ask("POST", at+"/o2/steps/void", wire.Fire{Requester: "admin", ExpectedVersion: new(int64)}, nil), 200, "")
		wantRow(t, e, "o2", "void 1 5 - -")
		var claimed wire.Claimed
		d.want(d.ask("POST", at+"/o3/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, &claimed), 201, "")
		d.want(d.ask("POST", at+"/o3/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, nil), 409, fault.ClaimFailed)
		settle := wire.Settle{Outcome: "success", Data: []byte(`{"note":null,"cents":9}`)}
		d.want(d.ask("POST", "claims/"+claimed.Claim.Token+"/settle", settle, nil), 200, "")
		d.want(d.ask("POST", "claims/"+claimed.Claim.Token+"/settle", settle, nil), 200, "")
		wantRow(t, e, "o3", "paid 2 9 - -")

		var history, timeline wire.List[json.RawMessage]
		d.want(d.ask("GET", at+"/o1/history", nil, &history), 200, "")
		d.want(d.ask("GET", at+"/o3/timeline", nil, &timeline), 200, "")
		if len(history.Items) < 2 || len(timeline.Items) < 3 {
			t.Errorf("history has %d events and the timeline %d entries, want at least 2 and 3", len(history.Items), len(timeline.Items))
		}
		for _, path := range []string{"lifecycles", "lifecycles/order", "lifecycles/order/diagram", at + "/o1/attempts", "claims", "operations"} {
			d.want(d.ask("GET", path, nil, nil), 200, "")
		}
		d.want(d.ask("POST", at, wire.NewEntity{ID: new("o9")}, nil), 400, fault.Validation)
		d.want(d.ask("GET", at, nil, nil), 400, fault.Validation)
		d.want(d.ask("GET", at+"/o9", nil, nil), 404, fault.NotFound)
		if found, err := e.Check(t.Context()); err != nil || !found.Clean() {
			t.Errorf("check found %v, error %v", found, err)
		}
	})
}

// TestATableThatACallerMayNotUse verifies that a config can name only a declared table, without columns, in a workspace
// that it belongs to, and that one table has the entities of one lifecycle.
func TestATableThatACallerMayNotUse(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders("o1")
		refused := func(about, name, config, part string, headers ...string) {
			t.Helper()
			config = strings.Replace(config, `"workflow": "order"`, `"workflow": "`+name+`"`, 1)
			p := d.want(d.ask("PUT", "lifecycles/"+name, config, nil, headers...), 422, fault.Validation)
			if !strings.Contains(fmt.Sprint(p), part) {
				t.Errorf("%s: got %v, want %q", about, p, part)
			}
		}
		table := func(text string) string { return strings.Replace(orderConfig, `"entity_table": "orders"`, text, 1) }
		refused("an undeclared table", "other", table(`"entity_table": "public.orders"`), "does not declare")
		refused("a table of Holdfast", "other", table(`"entity_table": "holdfast_entity"`), "does not declare")
		refused("columns", "order", table(`"entity_table": "orders", "columns": {"id": "note"}`), "configuration of the server")
		refused("columns of the table", "order", table(`"entity_table": {"name": "orders", "columns": {"status": "note"}}`), "configuration of the server")
		refused("a workspace", "order", table(`"entity_table": {"name": "orders", "workspace": "w2"}`), "configuration of the server")
		refused("a second lifecycle", "other", orderConfig, `lifecycle "order"`)
		refused("another table", "order", table(`"data_history": true`), "cannot be changed")
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil, "X-Holdfast-Workspace", "w2"), 201, "")
		refused("another workspace", "order", orderConfig, `belongs to workspace "default"`, "X-Holdfast-Workspace", "w2")
		sqlOn(t, e, "ALTER TABLE orders RENAME COLUMN note TO remark")
		refused("a missing column", "order", strings.Replace(orderConfig, `"step_id": 2`, `"step_id": 3`, 1), "has no column")
		p := d.want(d.ask("PUT", "lifecycles/order?dryRun=true", orderConfig, nil), 422, fault.Validation)
		if !strings.Contains(p.Detail, "note") {
			t.Errorf("got %q, want the name of the missing column", p.Detail)
		}
		sqlOn(t, e, "ALTER TABLE orders RENAME COLUMN remark TO note")
		d.want(d.ask("PUT", "lifecycles/order", orderConfig, nil), 200, "")
		d.want(d.ask("GET", "lifecycles/order/entities/o1", nil, nil), 200, "")
	})
}

// TestAPublishedLifecycleUsesTheRowsOfItsWorkspace verifies that a table with a workspace column serves every workspace,
// each with its own rows, in requests and in the janitor.
func TestAPublishedLifecycleUsesTheRowsOfItsWorkspace(t *testing.T) {
	const table = `CREATE TABLE orders (nr text, tenant text, state text NOT NULL, rev bigint NOT NULL DEFAULT 0, cents bigint NOT NULL DEFAULT 0, note text, more json, PRIMARY KEY (tenant, nr))`
	onOwnTable(t, table, func(t *testing.T, e *holdfast.Engine, _ string) {
		o := withOrders()
		o.EntityTables["orders"] = httpapi.EntityTable{ID: "nr", Status: "state", Version: "rev", WorkspaceColumn: "tenant"}
		d := newTestAPI(t, e, o)
		for _, w := range []string{"w1", "w2"} {
			d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil, "X-Holdfast-Workspace", w), 201, "")
			d.want(d.ask("PUT", "lifecycles/order", orderConfig, nil, "X-Holdfast-Workspace", w), 201, "")
		}
		sqlOn(t, e, "INSERT INTO orders (nr, tenant, state) VALUES ('a', 'w1', 'new'), ('b', 'w2', 'paying'), ('c', 'w3', 'paying')")
		d.want(d.ask("POST", "lifecycles/order/entities/a/steps/void", wire.Fire{Requester: "admin"}, nil, "X-Holdfast-Workspace", "w2"), 404, fault.NotFound)
		d.want(d.ask("POST", "lifecycles/order/entities/a/steps/void", wire.Fire{Requester: "admin"}, nil, "X-Holdfast-Workspace", "w1"), 200, "")
		wantRow(t, e, "a", "void 1 0 - -")
		for range 2 {
			if err := lifecycleengine.Sweep(t.Context(), engine.Of(e)); err != nil {
				t.Fatal(err)
			}
			holdfasttest.Advance(t, e, 6*time.Minute)
		}
		wantRow(t, e, "b", "new 1 0 - -")
		wantRow(t, e, "c", "paying 0 0 - -") // no lifecycle of workspace w3 has this row
	})
}

// TestACrashedCallerOfAUsersRow verifies that a claim whose lease has expired is released, in the row too.
func TestACrashedCallerOfAUsersRow(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, _ string) {
		d := newTestAPI(t, e, withOrders())
		d.orders("o1")
		d.want(d.ask("POST", "lifecycles/order/entities/o1/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, nil), 201, "")
		wantRow(t, e, "o1", "paying 1 5 - -")
		holdfasttest.Advance(t, e, 6*time.Minute)
		if err := lifecycleengine.Sweep(t.Context(), engine.Of(e)); err != nil {
			t.Fatal(err)
		}
		wantRow(t, e, "o1", "new 2 5 - -")
	})
}

// TestATableThatIsNoLongerDeclared verifies that a server without the table starts, shows the config, refuses the
// entities, leaves their work to other servers, and serves everything else.
func TestATableThatIsNoLongerDeclared(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, at string) {
		d := newTestAPI(t, e, withOrders())
		d.orders("o1", "o2")
		var firing sync.WaitGroup
		firing.Go(func() {
			d.ask("POST", "lifecycles/order/entities/o1/steps/pay", wire.Fire{Requester: "admin"}, nil)
		})
		for due := (wire.List[wire.Operation]{}); len(due.Items) == 0; { // until it waits for a worker
			d.want(d.ask("GET", "operations?state=due", nil, &due), 200, "")
		}
		d.want(d.ask("POST", "lifecycles/order/entities/o2/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, nil), 201, "")

		other := holdfasttest.OpenOn(t, holdfasttest.At(at))
		without := newTestAPI(t, other, httpapi.Options{NoKeys: true})
		if err := lifecycleengine.Sweep(t.Context(), engine.Of(other)); err != nil {
			t.Fatal(err)
		}
		without.want(without.ask("GET", "lifecycles", nil, nil), 200, "")
		without.want(without.ask("GET", "lifecycles/order", nil, nil), 200, "")
		p := without.want(without.ask("GET", "lifecycles/order/entities/o1", nil, nil), 503, fault.Unavailable)
		if !strings.Contains(p.Detail, "--entity-table") {
			t.Errorf("got %q, want the name of the setting", p.Detail)
		}
		without.want(without.ask("POST", "lifecycles/order/entities/o1/steps/void", wire.Fire{Requester: "admin"}, nil), 503, fault.Unavailable)
		var none wire.Tasks
		without.want(without.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Pay"}, WaitMs: new(wire.Millis)}, &none), 200, "")
		if len(none.Tasks) != 0 {
			t.Errorf("claimed %+v, want nothing", none)
		}
		holdfasttest.Advance(t, e, 6*time.Minute)
		if err := lifecycleengine.Sweep(t.Context(), engine.Of(other)); err != nil {
			t.Fatal(err)
		}
		wantRow(t, e, "o2", "paying 1 5 - -") // the lease has expired, but this server cannot revert the row
		if err := lifecycleengine.Sweep(t.Context(), engine.Of(e)); err != nil {
			t.Fatal(err)
		}
		wantRow(t, e, "o2", "new 2 5 - -")
		var tasks wire.Tasks
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Pay"}}, &tasks), 200, "")
		if len(tasks.Tasks) != 1 || tasks.Tasks[0].Attempt != 1 {
			t.Fatalf("claimed %+v, want the first attempt of one task", tasks)
		}
		d.want(d.ask("POST", "tasks/"+tasks.Tasks[0].ID+"/complete", wire.CompleteTask{Epoch: tasks.Tasks[0].Epoch}, nil), 200, "")
		firing.Wait()
		wantRow(t, e, "o1", "paid 2 5 - -")
	})
}

// TestATableThatIsDeclaredUnderAnotherName verifies that a table whose declaration was renamed gets no second lifecycle.
func TestATableThatIsDeclaredUnderAnotherName(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, at string) {
		newTestAPI(t, e, withOrders()).orders("o1")
		renamed := withOrders()
		own := renamed.EntityTables["orders"]
		own.Table = "orders"
		renamed.EntityTables = map[string]httpapi.EntityTable{"sales": own}
		d := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(at)), renamed)
		config := strings.NewReplacer(`"workflow": "order"`, `"workflow": "sale"`, `"entity_table": "orders"`, `"entity_table": "sales"`).Replace(orderConfig)
		p := d.want(d.ask("PUT", "lifecycles/sale", config, nil), 422, fault.Validation)
		if !strings.Contains(p.Detail, `lifecycle "order"`) || !strings.Contains(p.Detail, "declare it again") {
			t.Errorf("got %q, want the name of the lifecycle and the fix", p.Detail)
		}
	})
}

// TestAnUpdateInTheSameTable verifies that a lifecycle can be published again by a server that does not declare the table of another
// one: it moves nowhere.
func TestAnUpdateInTheSameTable(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, at string) {
		sqlOn(t, e, strings.Replace(ordersTable, "orders", "sales", 1))
		both := withOrders()
		own := both.EntityTables["orders"]
		own.Table = "sales"
		both.EntityTables = map[string]httpapi.EntityTable{"orders": both.EntityTables["orders"], "sales": own}
		d := newTestAPI(t, e, both)
		d.orders("o1")
		d.want(d.ask("PUT", "lifecycles/sale", strings.NewReplacer(`"workflow": "order"`, `"workflow": "sale"`, `"entity_table": "orders"`, `"entity_table": "sales"`).Replace(orderConfig), nil), 201, "")
		one := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(at)), withOrders())
		one.want(one.ask("PUT", "lifecycles/order", strings.Replace(orderConfig, `"stuck_after": "5m"`, `"stuck_after": "6m"`, 1), nil), 200, "")
	})
}

// TestATableThatIsDeclaredForAnotherWorkspace verifies that a server whose declaration leaves out a workspace leaves the work
// of that workspace to other servers, and serves a lifecycle with the same name in another workspace.
func TestATableThatIsDeclaredForAnotherWorkspace(t *testing.T) {
	const table = `CREATE TABLE orders (nr text PRIMARY KEY, tenant text, state text NOT NULL, rev bigint NOT NULL DEFAULT 0, cents bigint NOT NULL DEFAULT 5, note text, more json)`
	onOwnTable(t, table, func(t *testing.T, e *holdfast.Engine, at string) {
		own := httpapi.EntityTable{ID: "nr", Status: "state", Version: "rev", WorkspaceColumn: "tenant"}
		d := newTestAPI(t, e, httpapi.Options{NoKeys: true, EntityTables: map[string]httpapi.EntityTable{"orders": own}})
		inW := []string{"X-Holdfast-Workspace", "w"}
		d.orders()
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil, inW...), 201, "")
		d.want(d.ask("PUT", "lifecycles/order", strings.Replace(orderConfig, `"entity_table": "orders",`, "", 1), nil, inW...), 201, "")
		d.want(d.ask("POST", "lifecycles/order/entities", wire.NewEntity{ID: new("o3")}, nil, inW...), 201, "")
		sqlOn(t, e, "INSERT INTO orders (nr, tenant, state) VALUES ('o1', 'default', 'new'), ('o2', 'default', 'new')")
		var firing sync.WaitGroup
		firing.Go(func() {
			d.ask("POST", "lifecycles/order/entities/o1/steps/pay", wire.Fire{Requester: "admin"}, nil)
		})
		for due := (wire.List[wire.Operation]{}); len(due.Items) == 0; { // until it waits for a worker
			d.want(d.ask("GET", "operations?state=due", nil, &due), 200, "")
		}
		d.want(d.ask("POST", "lifecycles/order/entities/o2/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/order/entities/o3/claims", wire.NewClaim{StepKey: "pay", Requester: "admin"}, nil, inW...), 201, "")

		other := holdfasttest.OpenOn(t, holdfasttest.At(at))
		own.WorkspaceColumn, own.Workspace = "", "other"
		one := newTestAPI(t, other, httpapi.Options{NoKeys: true, EntityTables: map[string]httpapi.EntityTable{"orders": own}})
		sweep := func() {
			if err := lifecycleengine.Sweep(t.Context(), engine.Of(other)); err != nil {
				t.Fatal(err)
			}
		}
		sweep()
		one.want(one.ask("GET", "lifecycles/order/entities/o1", nil, nil), 503, fault.Unavailable)
		var none wire.Tasks
		one.want(one.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Pay"}, WaitMs: new(wire.Millis)}, &none), 200, "")
		if len(none.Tasks) != 0 {
			t.Errorf("claimed %+v, want nothing", none)
		}
		holdfasttest.Advance(t, e, 6*time.Minute)
		sweep()
		wantRow(t, e, "o2", "paying 1 5 - -") // left to the other server
		var o3 wire.Entity
		one.want(one.ask("GET", "lifecycles/order/entities/o3", nil, &o3, inW...), 200, "")
		if o3.Status != "new" {
			t.Errorf("entity o3 is %+v, want its expired claim released", o3)
		}
		if err := lifecycleengine.Sweep(t.Context(), engine.Of(e)); err != nil {
			t.Fatal(err)
		}
		wantRow(t, e, "o2", "new 2 5 - -")
		var tasks wire.Tasks
		d.want(d.ask("POST", "tasks/claim", wire.ClaimTasks{Worker: "w", Handlers: []string{"Pay"}}, &tasks), 200, "")
		if len(tasks.Tasks) != 1 || tasks.Tasks[0].Attempt != 1 {
			t.Fatalf("claimed %+v, want the first attempt of one task", tasks)
		}
		d.want(d.ask("POST", "tasks/"+tasks.Tasks[0].ID+"/complete", wire.CompleteTask{Epoch: tasks.Tasks[0].Epoch}, nil), 200, "")
		firing.Wait()
		wantRow(t, e, "o1", "paid 2 5 - -")
	})
}

// TestATableOfTheProgramsLifecycle verifies that a published lifecycle cannot have the table of one that the program defines:
// both would claim the same rows.
func TestATableOfTheProgramsLifecycle(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, _ *holdfast.Engine, at string) {
		sale := strings.NewReplacer(`"workflow": "order"`, `"workflow": "sale"`, `"entity_table": "orders"`, `"entity_table": {"name": "orders", "columns": {"id": "nr", "status": "state", "version": "rev"}}`,
			`, "action": "Pay"`, "").Replace(orderConfig)
		d := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(at), lifecycle.MustParse[json.RawMessage]([]byte(sale))), withOrders())
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		p := d.want(d.ask("PUT", "lifecycles/order", orderConfig, nil), 422, fault.Validation)
		if !strings.Contains(p.Detail, `lifecycle "sale" of this program`) {
			t.Errorf("got %q, want the name of the lifecycle", p.Detail)
		}
		resale := strings.Replace(sale, `"workflow": "sale"`, `"workflow": "resale"`, 1)
		other, err := holdfast.Open(t.Context(), holdfasttest.At(at), holdfast.Config{}, lifecycle.MustParse[json.RawMessage]([]byte(sale)), lifecycle.MustParse[json.RawMessage]([]byte(resale)))
		if err == nil {
			_ = other.Close()
		}
		if fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), "same table") {
			t.Errorf("two lifecycles of the program: got error %v, want a validation error", err)
		}
	})
}

// TestADeclaredTableIsCheckedAtStart verifies that a table that cannot be used is an error at start.
func TestADeclaredTableIsCheckedAtStart(t *testing.T) {
	onOwnTable(t, ordersTable, func(t *testing.T, e *holdfast.Engine, at string) {
		schema := "main"
		if strings.HasSuffix(t.Name(), "postgres") {
			schema = "public"
		}
		type declared struct {
			tables map[string]httpapi.EntityTable
			part   string
		}
		cases := map[string]declared{
			"no table":      {map[string]httpapi.EntityTable{"bills": {}}, "does not exist"},
			"no column":     {map[string]httpapi.EntityTable{"orders": {}}, "has no column"},
			"no write":      {map[string]httpapi.EntityTable{"orders": {ID: "nr", Status: "state", Version: "rev", Write: []string{"colour"}}}, "colour"},
			"write of id":   {map[string]httpapi.EntityTable{"orders": {ID: "nr", Status: "state", Version: "rev", Write: []string{"nr"}}}, "two purposes"},
			"the same":      {map[string]httpapi.EntityTable{"a": {Table: "orders", ID: "nr", Status: "state", Version: "rev"}, "b": {Table: "orders", ID: "nr", Status: "state", Version: "rev"}}, "same table"},
			"with schema":   {map[string]httpapi.EntityTable{"a": {Table: "orders", ID: "nr", Status: "state", Version: "rev"}, "b": {Table: schema + ".orders", ID: "nr", Status: "state", Version: "rev"}}, "same table"},
			"two workspace": {map[string]httpapi.EntityTable{"orders": {ID: "nr", Status: "state", Version: "rev", Workspace: "w", WorkspaceColumn: "note"}}, "keep one"},
		}
		if schema == "public" { // SQLite has neither partitions nor inheritance
			const columns = "(nr text PRIMARY KEY, state text NOT NULL, rev bigint NOT NULL DEFAULT 0)"
			sqlOn(t, e, "CREATE TABLE parted "+columns+" PARTITION BY LIST (nr)", "CREATE TABLE half PARTITION OF parted DEFAULT PARTITION BY LIST (nr)",
				"CREATE TABLE quarter PARTITION OF half DEFAULT", "CREATE TABLE parent "+columns, "CREATE TABLE mother "+columns, "CREATE TABLE child (PRIMARY KEY (nr)) INHERITS (parent, mother)")
			for _, two := range [][2]string{{"parted", "half"}, {"parted", "quarter"}, {"quarter", "half"}, {"parent", "child"}, {"parent", "mother"}} {
				cases[two[0]+" and "+two[1]] = declared{map[string]httpapi.EntityTable{"a": {Table: two[0], ID: "nr", Status: "state", Version: "rev"},
					"b": {Table: two[1], ID: "nr", Status: "state", Version: "rev"}}, "share rows"}
			}
		}
		for about, c := range cases {
			other, err := holdfast.Open(t.Context(), holdfasttest.At(at), holdfast.Config{}, httpapi.New(httpapi.Options{NoKeys: true, EntityTables: c.tables}))
			if err == nil {
				_ = other.Close()
			}
			if fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), c.part) {
				t.Errorf("%s: got error %v, want a validation error with %q", about, err, c.part)
			}
		}
	})
}

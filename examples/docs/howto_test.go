package docs_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/webhook"
)

// visit sends requests to the program of docs/how-to/embed.md.
func visit(h http.Handler) {
	for _, request := range []string{"POST /orders/7", "POST /orders/7", "GET /readyz"} {
		method, target, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		fmt.Println(request, w.Code)
	}
}

// database is a SQLite file with the tables of a user, and a pool of the user on it.
func database(t *testing.T, statements ...string) (path string, db *sql.DB) {
	t.Helper()
	path = holdfasttest.SQLite(t)
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return path, db
}

// [row]
const ownConfig = `
workflow: invoice
owning_module: billing
entity_table: invoices
columns: {id: id, status: state, version: lock_version}
status_types: [open, closing, closed]
initial_status: open
janitor: standard
steps:
  - step_id: 10
    step_key: close
    status: open
    successful_claim_state: {admin: [closing, open]}
    successful_state: {admin: closed}
    action: {admin: Close}
`

// Row has the columns that the action reads. The names in the tags are the names of the columns.
type Row struct {
	Cents int64 `json:"cents"`
}

// [/row]

func TestOwnTables(t *testing.T) {
	ctx := t.Context()
	text, err := os.ReadFile("invoices.sql")
	if err != nil {
		t.Fatal(err)
	}
	path, db := database(t, string(text))
	// [action]
	invoices := lifecycle.MustParse[Row]([]byte(ownConfig)).
		Action("Close", func(_ context.Context, a *lifecycle.Act[Row]) error {
			a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { // in the transaction that sets state and lock_version
				_, err := sqlite.Raw(tx).ExecContext(ctx, `INSERT INTO bookings (invoice, cents) VALUES (?, ?)`, a.Entity.ID, a.Entity.Data.Cents)
				return err
			})
			return nil
		}, lifecycle.Transactional())
	// [/action]
	hf := holdfasttest.OpenOn(t, holdfasttest.At(path), invoices)
	// [insert]
	// Rows are inserted, listed and deleted with SQL.
	_, err = db.ExecContext(ctx, `INSERT INTO invoices (id, cents) VALUES ('i1', 1200)`)
	// [hide]
	if err != nil {
		t.Fatal(err)
	}
	// [/hide]
	invoice, err := invoices.Fire(ctx, hf, "i1", "close", "admin")
	// [/insert]
	if err != nil || invoice.Status != "closed" {
		t.Error(invoice, err)
	}
	if err := joined(ctx, hf, db); err != nil {
		t.Error(err)
	}
	var bookings int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM bookings`).Scan(&bookings); bookings != 2 || err != nil {
		t.Error(bookings, err)
	}
}

// [join]
func joined(ctx context.Context, hf *holdfast.Engine, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	joined, err := sqlite.Join(hf, tx) // before the transaction reads
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO bookings (invoice, cents) VALUES ('i2', 700)`); err != nil {
		return err
	}
	if _, err := stream.Append(ctx, joined, "ledger", stream.Any, stream.Event{Name: "booked"}); err != nil {
		return err // the transaction is still usable
	}
	return tx.Commit() // both, or neither
}

// [/join]

// [steps]
// pay is an endpoint that fires a step. The operation of the step belongs to the request's key.
func pay(hf *holdfast.Engine, invoices *lifecycle.Lifecycle[Invoice]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		invoice, err := invoices.Fire(r.Context(), hf, r.PathValue("id"), "pay", "admin")
		if err != nil {
			http.Error(w, err.Error(), fault.CodeOf(err).Status())
			return
		}
		fmt.Fprint(w, invoice.Status)
	}
}

// [/steps]

// [commit]
// place is an endpoint that writes. Its writes and the key are committed together.
func place(w http.ResponseWriter, r *http.Request) {
	err := idem.Commit(r.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := sqlite.Raw(tx).ExecContext(ctx, `INSERT INTO orders (id) VALUES (?)`, r.PathValue("id")); err != nil {
			return err
		}
		_, err := stream.Append(ctx, tx, "order-"+r.PathValue("id"), stream.None, stream.Event{Name: "placed"})
		return err
	})
	if err != nil {
		http.Error(w, err.Error(), fault.CodeOf(err).Status())
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// [/commit]

func TestEndpoints(t *testing.T) {
	ctx := t.Context()
	path, _ := database(t, `CREATE TABLE orders (id text PRIMARY KEY)`)
	invoices := lifecycle.MustParse[Invoice]([]byte(invoiceConfig)).Action("Charge", charge, lifecycle.Journaled()).
		AfterEffect("MailReceipt", func(context.Context, *lifecycle.Act[Invoice]) error { return nil }, lifecycle.Idempotent())
	hf := holdfasttest.OpenOn(t, holdfasttest.At(path), invoices)
	if _, err := invoices.Create(ctx, hf, "i1", Invoice{}); err != nil {
		t.Fatal(err)
	}
	// [routes]
	once := idem.Middleware(hf, idem.Options{User: func(r *http.Request) string { return r.Header.Get("X-Account") }}) // who is signed in
	mux := http.NewServeMux()
	mux.Handle("POST /invoices/{id}/pay", once(pay(hf, invoices)))
	mux.Handle("POST /orders/{id}", once(http.HandlerFunc(place)))
	// [/routes]
	for _, target := range []string{"/invoices/i1/pay", "/orders/o1"} {
		for i := range 2 {
			r := httptest.NewRequest(http.MethodPost, target, nil)
			r.Header.Set("Idempotency-Key", target)
			r.Header.Set("X-Account", "u17")
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if w.Code >= 300 || (w.Header().Get("Idempotency-Replayed") == "true") != (i == 1) {
				t.Errorf("%s: %d %s %v", target, w.Code, w.Body, w.Header())
			}
		}
	}
}

// [incoming]
// incoming receives the webhooks of a payment service that follows Standard Webhooks. A message that is delivered twice has
// the same id, and its signal is stored once.
func incoming(hf *holdfast.Engine, verifier *webhook.Verifier, runOf func(body []byte) (id string, p Payment)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := verifier.Verify(r.Header, body); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		id, payment := runOf(body)
		err = run.Send(r.Context(), hf, id, "payment", payment, run.SignalID(r.Header.Get("Webhook-Id")))
		if err != nil {
			http.Error(w, err.Error(), fault.CodeOf(err).Status())
		}
	}
}

// [/incoming]

func TestIncomingWebhooks(t *testing.T) {
	ctx := t.Context()
	hf := holdfasttest.Open(t, chase)
	r, _, err := chase.Start(ctx, hf, Bill{ID: "b1", Cents: 900})
	if err != nil {
		t.Fatal(err)
	}
	secret := webhook.NewSecret()
	verifier, err := webhook.NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	receive := incoming(hf, verifier, func([]byte) (string, Payment) { return r.ID, Payment{Cents: 900} })
	body := `{"type": "payment.succeeded"}`
	for range 2 {
		request := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(body))
		if err := webhook.Sign(request.Header, "msg_1", time.Now(), []byte(body), secret); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		receive(w, request)
		if w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		t.Fatal(err)
	}
	if r, err = run.Get(ctx, hf, r.ID); r.Status != run.Completed || err != nil {
		t.Error(r.Status, err)
	}
}

// [forget]
// forget deletes what Holdfast has about a person, in a program that stores it in the places below.
func forget(ctx context.Context, hf *holdfast.Engine, vault *stream.Vault, person string) error {
	if _, err := vault.Forget(ctx, hf, person); err != nil { // events that were encrypted with the person's key
		return err
	}
	if _, err := scope.In[map[string]any](hf, scope.User, person).Delete(ctx); err != nil { // their state
		return err
	}
	_, err := stream.Close(ctx, hf, "visits-"+person, stream.Tombstone) // a stream about the person alone
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil
	}
	return err
}

// [/forget]

func TestForget(t *testing.T) {
	ctx := t.Context()
	hf := holdfasttest.Open(t)
	vault, err := stream.NewVault([]byte("32 random bytes, out of a secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vault.Append(ctx, hf, "customer-7", stream.Any, stream.Event{Name: "moved", Subject: "ada", Data: []byte(`{"city": "Paris"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Append(ctx, hf, "visits-ada", stream.Any, stream.Event{Name: "visited"}); err != nil {
		t.Fatal(err)
	}
	for _, person := range []string{"ada", "bob"} {
		if err := forget(ctx, hf, vault, person); err != nil {
			t.Error(err)
		}
	}
	for e, err := range vault.Read(ctx, hf, "customer-7", 0) {
		if !e.Forgotten || string(e.Data) != "null" || err != nil {
			t.Error(e, err)
		}
	}
}

// [jobs]
// sorting is what a River worker for the job kind "sort" becomes: a run of one task.
var sorting = run.Define("sort", "1",
	run.Task("sort", func(_ context.Context, numbers []int) (int, error) {
		return len(numbers), nil
	}, run.Idempotent(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 20})))

// enqueue starts the run in your transaction, as InsertTx does. The key makes it unique.
func enqueue(ctx context.Context, hf *holdfast.Engine, tx *sql.Tx, order string) error {
	joined, err := sqlite.Join(hf, tx) // postgres.Join for a pgx.Tx
	if err != nil {
		return err
	}
	_, _, err = sorting.Start(ctx, joined, []int{3, 1, 2}, run.Key("sort-"+order))
	return err
}

// [/jobs]

func TestJobs(t *testing.T) {
	ctx := t.Context()
	path, db := database(t)
	hf := holdfasttest.OpenOn(t, holdfasttest.At(path), sorting)
	for _, commit := range []bool{false, true, true} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = enqueue(ctx, hf, tx, "7")
		if commit {
			err = errors.Join(err, tx.Commit())
		} else {
			err = errors.Join(err, tx.Rollback())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		t.Fatal(err)
	}
	all, err := holdfast.Collect(run.List(ctx, hf, run.Filter{}))
	if len(all) != 1 || all[0].Status != run.Completed || err != nil {
		t.Error(all, err)
	}
}

// [workflow]
// order is what a workflow function with two activities, a timer and a signal becomes.
var order = run.Define("order", "1",
	run.Task("reserve", func(context.Context, Bill) (string, error) { return "reserved", nil }, run.Idempotent()),
	run.Signal("paid", "payment", run.Timeout(72*time.Hour), run.OnTimeout("release")),
	run.Task("ship", func(context.Context, Bill) (string, error) { return "shipped", nil }, run.Journaled(), run.Next("end")),
	run.Task("release", func(context.Context, Bill) (string, error) { return "released", nil }, run.Idempotent()),
)

// [/workflow]

func TestWorkflow(t *testing.T) {
	ctx := t.Context()
	for _, paid := range []bool{true, false} {
		hf := holdfasttest.Open(t, order)
		r, _, err := order.Start(ctx, hf, Bill{ID: "b1"})
		if err != nil {
			t.Fatal(err)
		}
		settle := func() {
			if _, err := holdfasttest.Settle(ctx, hf); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		want := `"released"`
		if paid {
			want = `"shipped"`
			if err := run.Send(ctx, hf, r.ID, "payment", Payment{Cents: 900}); err != nil {
				t.Fatal(err)
			}
		} else {
			holdfasttest.Advance(t, hf, 73*time.Hour)
		}
		settle()
		if r, err = run.Get(ctx, hf, r.ID); r.Status != run.Completed || string(r.Output) != want || err != nil {
			t.Errorf("got %s %s, want %s: %v", r.Status, r.Output, want, err)
		}
	}
}

// TestLeaving verifies that the queries of docs/how-to/leave.md read what Holdfast has stored, on both databases.
func TestLeaving(t *testing.T) {
	invoices := lifecycle.MustParse[Invoice]([]byte(invoiceConfig)).Action("Charge", charge, lifecycle.Journaled()).
		AfterEffect("MailReceipt", func(context.Context, *lifecycle.Act[Invoice]) error { return nil }, lifecycle.Idempotent())
	fill := func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		_, err := invoices.Create(ctx, hf, "i1", Invoice{Cents: 1200})
		_, failed := invoices.Fire(ctx, hf, "i1", "pay", "admin")
		_, appended := stream.Append(ctx, hf, "account-7", stream.None, stream.Event{Name: "opened"})
		_, _, started := sorting.Start(ctx, hf, []int{1}, run.Key("k"))
		_, changed := scope.In[Cart](hf, scope.User, "ada").Inc(ctx, "cents", 1)
		_, put := batch.PutWallet(ctx, hf, "acme")
		_, credited := batch.Credit(ctx, hf, "acme", 5, "r1")
		_, settled := holdfasttest.Settle(ctx, hf)
		if err := errors.Join(err, failed, appended, started, changed, put, credited, settled); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		hf := holdfasttest.Open(t, invoices, sorting)
		fill(t, hf)
		for _, q := range queries(t, "leave_sqlite.sql") {
			err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				rows, err := sqlite.Raw(tx).QueryContext(ctx, q)
				if err != nil {
					return err
				}
				defer rows.Close()
				if !rows.Next() {
					return errors.New("no row")
				}
				return rows.Err()
			})
			if err != nil {
				t.Errorf("%s: %v", q, err)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t)), invoices, sorting)
		fill(t, hf)
		for _, q := range queries(t, "leave_postgres.sql") {
			err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				rows, err := postgres.Raw(tx).Query(ctx, q)
				if err != nil {
					return err
				}
				defer rows.Close()
				if !rows.Next() {
					return errors.Join(errors.New("no row"), rows.Err())
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", q, err)
			}
		}
	})
}

// queries returns the statements of a file.
func queries(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for q := range strings.SplitSeq(string(text), ";\n") {
		if strings.TrimSpace(q) != "" {
			all = append(all, q)
		}
	}
	if len(all) < 5 {
		t.Fatalf("%s has %d queries", file, len(all))
	}
	return all
}

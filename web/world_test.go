package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/web"
	"github.com/holdfast-go/holdfast/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browser.Main(holdfasttest.Main(m))) }

// world is a server with API keys, and what is in it.
type world struct {
	*client.Client
	t      testing.TB
	api    *httpapi.API
	engine *holdfast.Engine
	flying atomic.Int64                  // requests to the API that have no response yet, without event streams
	broken atomic.Bool                   // reads fail
	frozen atomic.Bool                   // changes are refused
	lose   atomic.Bool                   // the response to the next change is lost
	late   atomic.Pointer[chan struct{}] // until it is closed, responses with the inbox are not sent

	mu    sync.Mutex
	sent  []string // requests that change something
	url   string
	admin string   // a key
	pages []string // the address of each page
}

// each runs a test against a server with API keys, on one database, or at level crash on each.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	on(t, testlevel.OneDatabase(t), f)
}

// onBoth runs a test that divides the pages between the databases.
func onBoth(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	on(t, []string{"sqlite", "postgres"}, f)
}

func on(t *testing.T, databases []string, f func(t *testing.T, w *world)) {
	t.Helper()
	eachServer(t, databases, httpapi.Options{SecretKeys: [][]byte{make([]byte, 32)}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, func() []holdfast.Part { return []holdfast.Part{stream.Feed(stream.FeedOptions{})} }, f)
}

// eachServer runs a test against a server with the options and parts on each of the databases.
func eachServer(t *testing.T, databases []string, o httpapi.Options, parts func() []holdfast.Part, f func(t *testing.T, w *world)) {
	t.Helper()
	o.Dashboard = web.Handler()
	for _, name := range databases {
		db := map[string]func(testing.TB) string{"sqlite": holdfasttest.SQLite, "postgres": holdfasttest.PostgreSQL}[name]
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, api: httpapi.New(o)}
			w.engine = holdfasttest.OpenOn(t, holdfasttest.At(db(t)), append(parts(), w.api)...)
			srv := httptest.NewServer(http.HandlerFunc(w.serve))
			t.Cleanup(srv.Close)
			t.Cleanup(w.api.Stop)
			w.url = srv.URL
			var err error
			if !o.NoKeys {
				w.admin = w.key("admin", keys.Admin)
			}
			if w.Client, err = client.New(srv.URL, client.Options{APIKey: w.admin}); err != nil {
				t.Fatal(err)
			}
			f(t, w)
		})
	}
}

// serve serves the API and the dashboard. Its reads fail, or a response is lost, if they are to.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/requests-in-flight" {
		_, _ = fmt.Fprint(rw, w.flying.Load())
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/v1/") && !strings.Contains(r.Header.Get("Accept"), "event-stream") {
		w.flying.Add(1)
		defer w.flying.Add(-1)
	}
	if w.broken.Load() && r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/v1/") && r.URL.Path != "/api/v1/session" {
		ctx, cancel := context.WithDeadline(r.Context(), time.Unix(0, 0)) // the database does not respond in time
		defer cancel()
		r = r.WithContext(ctx)
	}
	if path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v1"); ok && r.Method != http.MethodGet {
		w.mu.Lock()
		w.sent = append(w.sent, r.Method+" "+path)
		w.mu.Unlock()
		if w.frozen.Load() {
			rw.Header().Set("Content-Type", "application/problem+json")
			rw.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprint(rw, `{"code": "CONFLICT", "detail": "nothing changes in this test"}`)
			return
		}
	}
	if free := w.late.Load(); free != nil && r.URL.Path == "/api/v1/inbox" {
		was := httptest.NewRecorder()
		w.api.ServeHTTP(was, r)
		<-*free
		rw.Header().Set("Content-Type", was.Header().Get("Content-Type"))
		_, _ = rw.Write(was.Body.Bytes())
		return
	}
	if r.Method != http.MethodGet && w.lose.Swap(false) {
		w.api.ServeHTTP(httptest.NewRecorder(), r)
		rw.Header().Set("Content-Length", "1000") // a browser repeats a request by itself if nothing of the response has arrived
		rw.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}
	w.api.ServeHTTP(rw, r)
}

// takeSent returns the requests that change something, since the last call.
func (w *world) takeSent() (sent []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent, w.sent = w.sent, nil
	return sent
}

// key creates an API key.
func (w *world) key(name string, role keys.Role) string {
	w.t.Helper()
	_, text, err := keys.Create(w.t.Context(), engine.Of(w.engine), keys.CreateArgs{Name: name, Role: role, Requesters: []string{"*"}, By: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// logIn opens the dashboard and logs in as a person does.
func (w *world) logIn(p *browser.Page, key string) {
	w.t.Helper()
	p.Navigate(w.url)
	p.Click("input[type=password]")
	p.Type(key)
	p.Press("Enter")
	p.Wait(`document.querySelector("nav a[aria-current]")`, time.Minute)
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// fill puts one of everything into the world, with what text returns for each field that a caller can write.
func (w *world) fill(ctx context.Context, text func(field string) string) {
	t := w.t
	t.Helper()
	testkit.Run(t, w.engine)
	no := false
	page := func(parts ...string) {
		for i := range parts {
			parts[i] = url.PathEscape(parts[i])
		}
		w.pages = append(w.pages, "/"+strings.Join(parts, "/"))
	}
	leased := func(handler string, lease wire.Millis) wire.Task {
		t.Helper()
		got := must(w.ClaimTasks(ctx, wire.ClaimTasks{Worker: text("worker"), Handlers: []string{handler}, Limit: 1, LeaseMs: lease}))(t)
		if len(got.Tasks) != 1 {
			t.Fatalf("claimed %+v of %s, want one task", got, handler)
		}
		return got.Tasks[0]
	}
	one := func(handler string) wire.Task { t.Helper(); return leased(handler, 600_000) }
	for _, p := range []string{"", "overview", "lifecycles", "runs", "definitions", "approvals", "batches", "wallets", "streams", "reactions", "scopes", "operations", "races", "bulk", "handlers", "webhooks", "nodes", "keys", "secrets", "audit"} {
		page(p)
	}

	// A lifecycle with an entity whose step is held, and callers that were refused.
	do, entity, stat := text("handler"), text("entity"), text("status")
	must(w.PutHandler(ctx, do, wire.PutHandler{Kind: "worker", Safety: "opaque"}))(t)
	page("handlers", do)
	config := map[string]any{"workflow": "job", "owning_module": "shop", "initial_status": stat, "status_types": []string{stat, "doing", "done"}, "janitor": map[string]any{"stuck_after": "1h"},
		"steps": []any{map[string]any{"step_id": 1, "step_key": "do", "status": stat, "successful_claim_state": map[string]any{"admin": []string{"doing", stat}}, "successful_state": map[string]any{"admin": "done"}, "action": map[string]any{"admin": do}}}}
	must(w.PutLifecycle(ctx, "job", raw(config)))(t)
	page("lifecycles", "job")
	must(w.CreateEntity(ctx, "job", wire.NewEntity{ID: &entity, Data: raw(map[string]any{text("data"): text("data"), "amount": 100})}))(t)
	page("lifecycles", "job", entity)
	for _, view := range []string{"timeline", "race", "travel", "answers"} {
		w.pages = append(w.pages, "/lifecycles/job/"+url.PathEscape(entity)+"?view="+view)
	}
	must(w.FireStep(ctx, "job", entity, "do", wire.Fire{Requester: "admin", Input: raw(text("input"))}, client.Key(text("key")), client.Wait(0)))(t)
	page("requests", text("key"))
	x := one(do)
	_, _ = w.JournalTaskEffect(ctx, x.ID, wire.EffectCall{Epoch: x.Epoch, Name: text("effect")})
	for range 3 {
		_, _ = w.FireStep(ctx, "job", entity, "do", wire.Fire{Requester: "admin"}, client.Wait(0))
	}

	// Entities whose operations are uncertain, with a result that came too late, and due.
	late := text("entity2")
	must(w.CreateEntity(ctx, "job", wire.NewEntity{ID: &late}))(t)
	must(w.FireStep(ctx, "job", late, "do", wire.Fire{Requester: "admin"}, client.Wait(0)))(t)
	x = leased(do, 1000)
	testkit.Eventually(t, "uncertain operation", func() bool {
		must(w.RunMaintenance(ctx))(t)
		return must(w.GetEntity(ctx, "job", late))(t).Claim.Uncertain
	})
	if _, err := w.CompleteTask(ctx, x.ID, wire.CompleteTask{Epoch: x.Epoch, Output: raw(text("output"))}); err == nil {
		t.Error("a late result was accepted")
	}
	page("lifecycles", "job", late)
	due := text("entity3")
	must(w.CreateEntity(ctx, "job", wire.NewEntity{ID: &due}))(t)
	must(w.FireStep(ctx, "job", due, "do", wire.Fire{Requester: "admin"}, client.Wait(0)))(t)
	page("lifecycles", "job", due)
	free := text("entity4")
	must(w.CreateEntity(ctx, "job", wire.NewEntity{ID: &free}))(t)
	must(w.FireStep(ctx, "job", free, "do", wire.Fire{Requester: "admin"}, client.Wait(0)))(t)
	must(w.WithdrawOperation(ctx, must(w.GetEntity(ctx, "job", free))(t).Claim.Operation, wire.Withdraw{Reason: text("reason")}))(t)
	page("lifecycles", "job", free)
	for o, err := range w.ListOperations(ctx, client.OperationFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		page("operations", o.ID)
	}

	// A stream that blocks a reaction.
	mail, name := text("handler2"), text("stream")
	must(w.PutHandler(ctx, mail, wire.PutHandler{Kind: "worker", Safety: "idempotent"}))(t)
	reaction := text("reaction")
	must(w.PutReaction(ctx, reaction, wire.PutReaction{Events: []string{text("event")}, Handler: mail}))(t)
	page("reactions", reaction)
	for i := range 3 {
		must(w.AppendEvents(ctx, name, wire.Append{Events: []wire.NewEvent{{Name: text("event"), Data: raw(map[string]any{"n": i, "text": text("data")}), Correlation: text("correlation"), Actor: text("actor")}}}))(t)
	}
	page("streams", name)
	w.pages = append(w.pages, "/streams?correlation="+url.QueryEscape(text("correlation")))
	x = one(mail)
	must(w.FailTask(ctx, x.ID, wire.FailTask{Epoch: x.Epoch, Message: text("message"), Retryable: &no}))(t)

	// A run that waits for an approval, and one that has failed.
	must(w.PutDefinition(ctx, raw(map[string]any{"name": "ask", "version": "1", "steps": []any{map[string]any{"name": "ok", "type": "approval", "prompt": text("prompt"), "requesters": []string{text("requester")}, "timeoutMs": 3600000}}})))(t)
	must(w.PutDefinition(ctx, raw(map[string]any{"name": "pay", "version": "1", "steps": []any{map[string]any{"name": "charge", "type": "task", "handler": mail}}})))(t)
	page("definitions", "ask@1")
	r := must(w.StartRun(ctx, wire.StartRun{DefinitionID: "ask@1", Input: raw(map[string]any{"text": text("input")}), IdempotencyKey: new(text("key2"))}))(t)
	page("runs", r.Run.ID)
	must(w.SignalRun(ctx, r.Run.ID, wire.Signal{Type: text("signal"), Payload: raw(text("data"))}))(t)
	must(w.StartRun(ctx, wire.StartRun{DefinitionID: "ask@1", Input: raw(map[string]any{})}))(t)
	approvals, decided := []wire.Approval(nil), 0
	testkit.Eventually(t, "two approvals", func() bool {
		approvals = nil
		for a, err := range w.ListApprovals(ctx, client.ApprovalFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			approvals = append(approvals, a)
		}
		return len(approvals) == 2
	})
	for _, a := range approvals {
		if a.RunID != r.Run.ID {
			must(w.DecideApproval(ctx, a.ID, wire.Decide{Decision: "edited", Content: raw(map[string]any{text("data"): text("data")}), By: text("actor")}))(t)
			decided++
		}
		page("approvals", a.ID)
	}
	if decided != 1 {
		t.Fatalf("decided %d of %+v", decided, approvals)
	}
	r = must(w.StartRun(ctx, wire.StartRun{DefinitionID: "pay@1", Input: raw(map[string]any{})}))(t)
	page("runs", r.Run.ID)
	x = one(mail)
	must(w.FailTask(ctx, x.ID, wire.FailTask{Epoch: x.Epoch, Message: text("message"), Retryable: &no}))(t)

	// A run that a bulk pauses, and one that runs. A worker holds the steps of both: a run that nobody has begun cannot be paused.
	idle := text("handler3")
	must(w.PutHandler(ctx, idle, wire.PutHandler{Kind: "worker", Safety: "idempotent"}))(t)
	must(w.PutDefinition(ctx, raw(map[string]any{"name": "ship", "version": "1", "steps": []any{map[string]any{"name": "pack", "type": "task", "handler": idle}}})))(t)
	begin := func() string {
		r := must(w.StartRun(ctx, wire.StartRun{DefinitionID: "ship@1", Input: raw(map[string]any{})}))(t)
		one(idle)
		return r.Run.ID
	}
	id := begin()
	b := must(w.StartBulk(ctx, wire.NewBulk{Action: "run.pause", IDs: []string{id}}))(t)
	page("bulk", b.Bulk.ID)
	page("runs", id)
	page("runs", begin())

	// A batch that waits for its wallet.
	wallet, batch := text("wallet"), text("batch")
	must(w.PutWallet(ctx, wallet, wire.PutWallet{}))(t)
	must(w.CreditWallet(ctx, wallet, wire.Credit{Points: 3, Reference: text("reference")}))(t)
	page("wallets", wallet)
	cost := int64(10)
	must(w.CreateBatch(ctx, wire.NewBatch{ID: &batch, Wallet: wallet, Handler: mail, Items: []wire.NewItem{{Key: text("item"), Cost: &cost, Input: raw(text("input"))}}}))(t)
	page("batches", batch)
	must(w.ClaimTasks(ctx, wire.ClaimTasks{Worker: "w", Handlers: []string{mail}, WaitMs: new(wire.Millis(0))}))(t)

	// A batch that is open, with an item that succeeded and one that failed.
	scan, open := text("handler4"), text("batch2")
	must(w.PutHandler(ctx, scan, wire.PutHandler{Kind: "worker", Safety: "idempotent"}))(t)
	must(w.PutWallet(ctx, text("wallet2"), wire.PutWallet{AllowNegative: true}))(t)
	must(w.CreateBatch(ctx, wire.NewBatch{ID: &open, Wallet: text("wallet2"), Handler: scan, Open: true, Items: []wire.NewItem{{Key: text("item"), Cost: &cost}, {Key: text("item2"), Cost: &cost}}}))(t)
	page("batches", open)
	x = one(scan)
	must(w.CompleteTask(ctx, x.ID, wire.CompleteTask{Epoch: x.Epoch, Output: raw(text("output"))}))(t)
	x = one(scan)
	must(w.FailTask(ctx, x.ID, wire.FailTask{Epoch: x.Epoch, Message: text("message"), Retryable: &no}))(t)

	scope := text("scope")
	must(w.PutScope(ctx, "cart", scope, raw(map[string]any{text("data"): text("data")})))(t)
	must(w.PatchScope(ctx, "cart", scope, raw(map[string]any{"n": 1})))(t)
	page("scopes", "cart")
	page("scopes", "cart", scope)
	hook := must(w.CreateWebhook(ctx, wire.NewWebhook{Name: text("name"), URL: "https://127.0.0.1:1/hook"}))(t)
	page("webhooks", hook.ID)
	k := must(w.CreateKey(ctx, wire.NewKey{Name: text("name"), Role: "read", Requesters: []string{text("requester")}}))(t)
	page("keys", k.ID)
	must(w.PutSecret(ctx, "billing-token", wire.PutSecret{Value: "a value that no page shows"}))(t)
	page("secrets", "billing-token")
}

// plain returns a name that a person could have chosen.
func plain(field string) string {
	names := map[string]string{"entity": "order-1017", "entity2": "order-1018", "entity3": "order-1019", "entity4": "order-1020", "handler3": "Pack", "handler4": "Scan", "batch2": "scans-12", "wallet2": "birch", "status": "open", "handler": "Charge", "handler2": "SendMail", "stream": "orders/1017", "reaction": "confirmations", "event": "order.paid", "worker": "worker-1", "wallet": "acme", "batch": "mailing-7", "scope": "customer-42",
		"prompt": "Refund 120.00 to customer 42?", "label": "Refund", "message": "the mail server refused the address", "key": "click-8812", "key2": "refund-1017", "actor": "clerk@example.com", "requester": "finance", "reason": "the mail server is back", "reference": "invoice 2026-11"}
	if n, ok := names[field]; ok {
		return n
	}
	return field
}

// hostile returns a text that runs code if it is ever read as HTML, as a URL or as an attribute. It contains no slash, which ids must not have.
func hostile(field string) string {
	return fmt.Sprintf(`%s'"><img src=x onerror=ran=1><svg onload=ran=1>javascript:ran=1{{ran=1}}`, field)
}

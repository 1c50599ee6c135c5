package httpapi_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

// Values of secrets. The characters of the first are written in other ways in JSON and in URLs; the letters of each occur nowhere else.
const (
	firstValue  = `tok<"&\>/%+Qzvxjwkfirstsecretvalue`
	secondValue = `tok<"&\>/%+Qzvxjwksecondsecretvalue`
)

// forms returns how a value could be written.
func forms(value string) (all []string) {
	letters := value[strings.IndexByte(value, 'Q')+1:]
	all = []string{letters, hex.EncodeToString([]byte(letters))}
	for shift := range 3 { // in base64, depending on what precedes it
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + letters + "xx"))
		all = append(all, text[4:len(text)-4])
	}
	escaped := ""
	for _, c := range letters {
		escaped += fmt.Sprintf(`\u%04x`, c)
	}
	return append(all, escaped)
}

// echo is a receiver that returns the headers that it got, in many ways.
type echo struct {
	*httptest.Server
	mu        sync.Mutex
	got       map[string][]http.Header // by path
	elsewhere string                   // where it redirects to
}

func newEcho(t *testing.T) *echo {
	e := &echo{got: make(map[string][]http.Header)}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *echo) calls(path string) []http.Header {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got[path])
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	e.mu.Lock()
	e.got[r.URL.Path] = append(e.got[r.URL.Path], r.Header.Clone())
	e.mu.Unlock()
	value := r.Header.Get("X-Token")
	escaped := ""
	for _, c := range value {
		escaped += fmt.Sprintf(`\u%04x`, c)
	}
	all, _ := json.Marshal(r.Header)
	switch r.URL.Path {
	case "/echo":
		fmt.Fprintf(w, `{"output": {"headers": %s, "escaped": "%s", "n": 12345678901}}`, all, escaped)
	case "/state":
		fmt.Fprintf(w, `{"state": {"headers": %s, "escaped": "%s"}}`, all, escaped)
	case "/refuse":
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"message": "bad token %s"}`, escaped)
	case "/fail":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"message": "bad token %s", "more": %s}`, escaped, all)
	case "/text":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, value)
	case "/redirect":
		http.Redirect(w, r, e.elsewhere+"/echo", http.StatusTemporaryRedirect)
	case "/within":
		http.Redirect(w, r, "/echo", http.StatusTemporaryRedirect)
	case "/nowhere":
		w.Header().Set("Location", "http://127.0.0.1:1/?token="+url.QueryEscape(value))
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "/no":
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// TestASecretIsReadableNowhere verifies that the value of a secret reaches the receivers of calls and nothing else: no response of the
// API, no metric, no line of the log, no span and no byte of the database has it, whatever became of the calls and of the secret.
func TestASecretIsReadableNowhere(t *testing.T) {
	testlevel.Long(t)
	storetest.OnEach(t, func(t *testing.T, db string) {
		log, spans := new(lockedText), tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
		o := httpapi.Options{SecretKeys: [][]byte{sealingKey}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Traces: provider,
			Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		hf, err := holdfast.Open(t.Context(), holdfasttest.At(db), holdfast.Config{Log: o.Log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hf.Close() })
		d, api, stop := running(t, hf, o)
		keyOf := func(role keys.Role) string {
			_, text, err := keys.Create(t.Context(), engine.Of(hf), keys.CreateArgs{Name: string(role), Role: role, Requesters: []string{"*"}, By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		d = d.as(keyOf(keys.Admin))
		reader := d.as(keyOf(keys.Read))

		there, far := newEcho(t), newEcho(t)
		there.elsewhere = far.URL // another port is another origin
		signing := webhook.NewSecret()
		d.putSecret("token", firstValue, 201)
		d.putSecret("sign", signing, 201)
		headers := map[string]string{"x-token": "${secret:token}", "Authorization": "Bearer ${secret:token}", "X-Plain": "plain"}
		for _, name := range []string{"echo", "state", "refuse", "fail", "redirect", "within", "nowhere", "no"} {
			d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "http", URL: there.URL + "/" + name, Safety: "idempotent", Secret: "secret:sign", Headers: headers}, nil), 201, "")
		}
		d.define(`{"name":"tasks","version":"1","steps":[{"name":"do","type":"task","handler":"echo"},{"name":"again","type":"task","handler":"within","input":"=steps.do.output"},{"name":"far","type":"task","handler":"redirect"}]}`)
		d.define(`{"name":"failing","version":"1","steps":[{"name":"do","type":"task","handler":"fail","retry":{"maxAttempts":1}}]}`)
		d.define(`{"name":"refused","version":"1","steps":[{"name":"do","type":"task","handler":"refuse"}]}`)
		const called = `{"name":%q,"version":"1","steps":[{"name":"do","type":"http","url":%q,"method":%q,"safety":"idempotent","retry":{"maxAttempts":1},"headers":{"X-Token":"${secret:token}","Authorization":"Bearer ${secret:token}"}}]}`
		for _, name := range []string{"echo", "text", "fail", "redirect", "nowhere"} {
			method := "POST"
			if name == "redirect" || name == "nowhere" { // a call with a body is not redirected
				method = "GET"
			}
			d.define(fmt.Sprintf(called, "call-"+name, there.URL+"/"+name, method))
		}
		hook := d.hook(wire.NewWebhook{URL: there.URL + "/hook", Events: []string{"paid"}, Secret: "secret:sign", Headers: headers})
		away := d.hook(wire.NewWebhook{URL: there.URL + "/redirect", Events: []string{"paid"}, Headers: headers})
		bad := d.hook(wire.NewWebhook{URL: there.URL + "/nowhere", Events: []string{"paid"}, Headers: headers})
		d.want(d.ask("PUT", "reactions/react", wire.PutReaction{Events: []string{"paid"}, Handler: "fail"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/doc", `{"workflow":"doc","owning_module":"m","janitor":{},"initial_status":"new","status_types":["new","busy","done"],"steps":[
			{"step_id":1,"step_key":"ok","status":"new","successful_claim_state":["busy","new"],"successful_state":"done","action":"state"},
			{"step_id":2,"step_key":"refuse","status":"new","successful_claim_state":["busy","new"],"successful_state":"done","action":"refuse"}]}`, nil), 201, "")

		for round, value := range []string{firstValue, secondValue} {
			for _, x := range []struct{ definition, status string }{{"tasks@1", "COMPLETED"}, {"failing@1", "FAILED"}, {"refused@1", "FAILED"}, {"call-echo@1", "COMPLETED"}, {"call-text@1", "FAILED"},
				{"call-fail@1", "FAILED"}, {"call-nowhere@1", "FAILED"}, {"call-redirect@1", "COMPLETED"}} {
				r := d.start(x.definition, `{}`)
				if r = d.runEnds(r.ID, x.status); x.status == "COMPLETED" && !strings.Contains(string(r.Output)+string(r.State), "secret") && x.definition == "call-echo@1" {
					t.Errorf("the output of %s does not name the secret: %s", x.definition, r.Output)
				}
			}
			entity := fmt.Sprint("e", round)
			for _, step := range []string{"refuse", "ok"} {
				if step == "refuse" {
					d.want(d.ask("POST", "lifecycles/doc/entities", wire.NewEntity{ID: &entity}, nil), 201, "")
				}
				d.ask("POST", "lifecycles/doc/entities/"+entity+"/steps/"+step, wire.Fire{Requester: "admin"}, nil)
			}
			name := fmt.Sprint("orders-", round)
			d.emit(name, "paid")
			d.awaitPosition(hook, name, "is done", func(p wire.Position) bool { return p.Watermark == 0 && p.LeasedBy == "" })
			d.awaitPosition(away, name, "is done", func(p wire.Position) bool { return p.Watermark == 0 && p.LeasedBy == "" })
			d.awaitPosition(bad, name, "failed", func(p wire.Position) bool { return p.Blocked || p.Error != "" })
			last := func(path string) http.Header {
				all := there.calls(path)
				if len(all) == 0 {
					t.Fatalf("%s was not called", path)
				}
				return all[len(all)-1]
			}
			for _, path := range []string{"/echo", "/state", "/hook", "/fail"} {
				if h := last(path); h.Get("X-Token") != value || h.Get("Authorization") != "Bearer "+value {
					t.Errorf("%s got the headers %v", path, h)
				}
			}
			for _, h := range far.calls("/echo") {
				if text := fmt.Sprint(h); strings.Contains(text, value) || strings.Contains(text, "Bearer") {
					t.Errorf("the host that a call was redirected to got the headers %v", h)
				}
			}
			if len(far.calls("/echo")) < 3*(round+1) {
				t.Error("no call was redirected to the other host")
			}
			if round == 0 {
				d.want(d.ask("PUT", "secrets/token", wire.PutSecret{Value: secondValue, OverlapMs: 3_600_000, ExpectedVersion: new(int64(1))}, nil, "Idempotency-Key", "rotate"), 200, "")
			}
		}
		d.want(d.ask("DELETE", "secrets/token", nil, nil), 409, fault.Conflict)
		d.want(d.ask("PUT", "secrets/token", wire.PutSecret{Value: secondValue + "\n"}, nil), 400, fault.Validation)
		d.want(reader.ask("PUT", "secrets/token", wire.PutSecret{Value: secondValue}, nil), 403, fault.Forbidden)
		d.putSecret("gone", firstValue, 201)
		d.want(d.ask("DELETE", "secrets/gone", nil, nil), 204, "")

		check := func(what, text string) {
			t.Helper()
			for i, value := range []string{firstValue, secondValue, "Q" + signing[10:40]} {
				for _, form := range forms(value) {
					if at := strings.Index(text, form); at >= 0 {
						t.Errorf("%s has secret %d as %.12s…: %.300s", what, i+1, form, text[max(0, at-100):at])
						break
					}
				}
			}
		}
		for _, as := range []*testAPI{reader, d} {
			crawled := as.crawl(api.Routes(), check)
			for _, id := range []string{"listRuns", "getRun", "listSteps", "getDefinition", "getHandler", "getWebhook", "getSecret", "listSecrets", "listPositions", "readEntityTimeline", "getEntity",
				"readEntityHistory", "readStream", "readActivity", "listInbox"} {
				if !crawled[id] {
					t.Errorf("%s returned nothing: %v", id, crawled)
				}
			}
			if as == d && !crawled["listAudit"] {
				t.Error("the audit returned nothing")
			}
		}
		resp, err := http.Get(d.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		check("/metrics", textOf(resp))
		stop()
		check("the log", log.String())
		traced := ""
		for _, s := range spans.Ended() {
			traced += fmt.Sprintln(s.Name(), s.Attributes(), s.Events(), s.Status())
		}
		if traced == "" || log.String() == "" {
			t.Error("there are no spans or no log")
		}
		check("the spans", traced)
		if err := hf.Close(); err != nil {
			t.Fatal(err)
		}
		everything := storedBytes(t, db)
		if !strings.Contains(everything, "${secret:token}") {
			t.Error("the dump of the database lacks the references")
		}
		check("the database", everything)
	})
}

// crawl sends every GET request of the API, with all ids that responses have, and returns which routes succeeded.
func (d *testAPI) crawl(routes []httpapi.Route, check func(what, text string)) map[string]bool {
	d.t.Helper()
	pool, done, ok := map[string]bool{"default": true}, map[string]bool{}, map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, r := range routes {
			if r.Method != "GET" {
				continue
			}
			for _, path := range paths(strings.Split(r.Path, "/"), pool) {
				if done[path] {
					continue
				}
				done[path] = true
				resp := d.ask("GET", path, nil, nil)
				text := textOf(resp)
				check(r.ID, text)
				var v any
				if resp.StatusCode != 200 || json.Unmarshal([]byte(text), &v) != nil {
					continue
				}
				ok[r.ID] = true
				before := len(pool)
				harvest(v, pool)
				grown = grown || len(pool) > before
			}
		}
	}
	return ok
}

// paths fills in the parameters of a path. Those with several are of the lifecycle.
func paths(parts []string, pool map[string]bool) (all []string) {
	several := strings.Count(strings.Join(parts, "/"), "{") > 1
	all = []string{""}
	for i, p := range parts {
		var next []string
		for _, done := range all {
			switch {
			case !strings.HasPrefix(p, "{"):
				next = append(next, strings.TrimPrefix(done+"/"+p, "/"))
			case several && i == 1:
				next = append(next, done+"/doc")
			default:
				for one := range pool {
					next = append(next, done+"/"+url.PathEscape(one))
				}
			}
		}
		all = next
	}
	return all
}

// harvest collects the strings that may be ids.
func harvest(v any, pool map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			harvest(x, pool)
		}
	case map[string]any:
		for name, x := range v {
			s, ok := x.(string)
			if ok && s != "" && !strings.ContainsAny(s, " ?#") && slices.Contains([]string{"id", "name", "stream", "operation", "lifecycle", "reaction", "definitionId"}, name) {
				pool[s] = true
			}
			harvest(x, pool)
		}
	}
}

// storedBytes returns all that a database stores.
func storedBytes(t *testing.T, db string) string {
	t.Helper()
	if path, ok := strings.CutPrefix(db, "sqlite:"); ok || !strings.Contains(db, "://") {
		all, err := filepath.Glob(path + "*")
		if err != nil || len(all) == 0 {
			t.Fatal(path, err)
		}
		text := ""
		for _, one := range all {
			raw, err := os.ReadFile(one)
			if err != nil {
				t.Fatal(err)
			}
			text += string(raw)
		}
		return text
	}
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, table := range tables {
		var all *string
		if err := conn.QueryRow(t.Context(), `SELECT string_agg(x::text, E'\n') FROM `+table+` AS x`).Scan(&all); err != nil {
			t.Fatal(err)
		}
		if all != nil {
			text += *all
		}
	}
	return text
}

// lockedText is a log.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedText) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedText) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// putSecret stores a secret.
func (d *testAPI) putSecret(name, value string, status int) (s wire.Secret) {
	d.t.Helper()
	d.want(d.ask("PUT", "secrets/"+name, wire.PutSecret{Value: value}, &s), status, "")
	return s
}

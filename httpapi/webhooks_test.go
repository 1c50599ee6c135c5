package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

// sealingKey encrypts the secrets of the tests.
var sealingKey = bytes.Repeat([]byte{7}, 32)

// hooked allows calls to the tests' own receivers.
var hooked = httpapi.Options{NoKeys: true, SecretKeys: [][]byte{sealingKey}, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}

// received is a received message.
type received struct {
	header http.Header
	body   []byte
	wire.WebhookMessage
}

func (r received) id() string { return r.header.Get(webhook.HeaderID) }

// receiver receives messages, with scripted responses.
type receiver struct {
	*httptest.Server
	got chan received
}

// receive starts a receiver. answer returns its status; nil means 200.
func receive(t *testing.T, answer func(received) int) *receiver {
	t.Helper()
	r := &receiver{got: make(chan received, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		m := received{header: req.Header}
		var err error
		if m.body, err = io.ReadAll(req.Body); err == nil {
			err = json.Unmarshal(m.body, &m.WebhookMessage)
		}
		if err != nil || req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s: %v", req.Method, m.body, err)
		}
		r.got <- m
		if answer != nil {
			w.WriteHeader(answer(m))
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// next waits for a message.
func (r *receiver) next(t *testing.T) received {
	t.Helper()
	select {
	case m := <-r.got:
		return m
	case <-t.Context().Done():
	case <-time.After(time.Minute):
	}
	t.Fatal("no message arrived")
	return received{}
}

// running serves an API and runs its engine, until the test ends or it is stopped.
func running(t *testing.T, e *holdfast.Engine, o httpapi.Options) (d *testAPI, api *httpapi.API, stop func()) {
	t.Helper()
	api = httpapi.On(e, o)
	srv := httptest.NewServer(api)
	halt := testkit.Run(t, e)
	stop = sync.OnceFunc(func() {
		srv.Close()
		api.Stop()
		halt()
	})
	t.Cleanup(stop)
	return &testAPI{t: t, engine: e, url: srv.URL, client: http.DefaultClient, header: http.Header{}}, api, stop
}

func eachHooked(t *testing.T, f func(t *testing.T, d *testAPI)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		d, _, _ := running(t, e, hooked)
		f(t, d)
	})
}

// hook creates a webhook.
func (d *testAPI) hook(n wire.NewWebhook, headers ...string) wire.CreatedWebhook {
	d.t.Helper()
	var w wire.CreatedWebhook
	d.want(d.ask("POST", "webhooks", n, &w, headers...), 201, "")
	return w
}

// emit appends events to a stream.
func (d *testAPI) emit(name string, events ...string) {
	d.t.Helper()
	all := make([]stream.Event, len(events))
	for i, e := range events {
		all[i] = stream.Event{Name: e, Data: []byte(`{"cents":9007199254740993}`)}
	}
	if _, err := stream.Append(context.Background(), d.engine, name, stream.Any, all...); err != nil {
		d.t.Fatal(err)
	}
}

// awaitPosition waits until the position of a webhook on a stream satisfies so.
func (d *testAPI) awaitPosition(w wire.CreatedWebhook, name, what string, so func(wire.Position) bool) wire.Position {
	d.t.Helper()
	var all wire.List[wire.Position]
	for begun := clock.Now(); clock.Since(begun) < time.Minute; _ = clock.Wait(d.t.Context(), 10*time.Millisecond) {
		d.want(d.ask("GET", "reactions/"+w.Reaction+"/streams", nil, &all), 200, "")
		for _, p := range all.Items {
			if p.Stream == name && so(p) {
				return p
			}
		}
	}
	d.t.Fatalf("timed out waiting until stream %s %s: %+v", name, what, all.Items)
	return wire.Position{}
}

// signed fails unless a message is signed with the secrets, verified by our package and by the
// public library, and with none of the others.
func signed(t *testing.T, m received, with, without []string) {
	t.Helper()
	for i, secret := range append(append([]string{}, with...), without...) {
		v, err := webhook.NewVerifier(secret)
		if err != nil {
			t.Fatal(err)
		}
		public, err := standard.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{v.Verify(m.header, m.body), public.Verify(m.body, m.header)} {
			if (err == nil) != (i < len(with)) {
				t.Errorf("secret %d, with %d valid ones: %v", i, len(with), err)
			}
		}
	}
	if n := len(strings.Fields(m.header.Get(webhook.HeaderSignature))); n != len(with) {
		t.Errorf("got %d signatures, want %d", n, len(with))
	}
}

func TestAWebhookGetsEachEventOnceInOrder(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		r := receive(t, nil)
		d.emit("orders-1", "before")
		w := d.hook(wire.NewWebhook{URL: r.URL, Name: "shop", Events: []string{"paid", "sent"}, Streams: "^orders-"})
		if w.Secret == "" || w.Source != "event" || w.Name != "shop" || w.CreatedAt == nil || w.Reaction != "$hook:"+w.ID {
			t.Errorf("created %+v", w)
		}
		const n = 20
		for i := range n {
			d.emit("orders-1", "paid", "other", "sent")
			d.emit("elsewhere", "paid")
			if i%5 == 0 {
				d.emit("orders-2", "paid")
			}
		}
		last, ids := map[string]int64{"orders-1": 0, "orders-2": -1}, map[string]bool{}
		for range 2*n + n/5 {
			m := r.next(t)
			signed(t, m, []string{w.Secret}, []string{webhook.NewSecret()})
			if before, ok := last[m.Data.Stream]; !ok || m.Data.Version <= before || ids[m.id()] {
				t.Errorf("after version %d got %s with id %s", before, m.body, m.id())
			}
			if m.Type != m.Data.Name || m.Type == "other" || m.Timestamp == nil || !m.Timestamp.Equal(m.Data.At.Time) || string(m.Data.Data) != `{"cents":9007199254740993}` {
				t.Errorf("got message %s", m.body)
			}
			if strings.Contains(m.id(), ".") {
				t.Errorf("got id %s, want it without a dot", m.id())
			}
			last[m.Data.Stream], ids[m.id()] = m.Data.Version, true
		}
		d.awaitPosition(w, "orders-1", "is done", func(p wire.Position) bool { return p.Watermark == 3*n && p.LeasedBy == "" })
		if len(r.got) > 0 {
			t.Errorf("%d messages arrived twice", len(r.got))
		}
	})
}

func TestAFailedMessageIsSentAgainAsTheSame(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		var mu sync.Mutex
		calls := 0
		r := receive(t, func(received) int {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return map[int]int{1: 500, 2: 404}[calls] + map[bool]int{true: 204}[calls > 2]
		})
		w := d.hook(wire.NewWebhook{URL: r.URL})
		d.emit("s", "a", "b")
		ids := []string{r.next(t).id()}
		for i := 1; i <= 2; i++ {
			p := d.awaitPosition(w, "s", "failed", func(p wire.Position) bool { return p.Retry == i && p.LeasedBy == "" })
			if !strings.Contains(p.Error, map[int]string{1: "500", 2: "404"}[i]) || p.Blocked {
				t.Errorf("got position %+v, want it unblocked with the status in its error", p)
			}
			holdfasttest.Advance(t, d.engine, time.Hour)
			m := r.next(t)
			signed(t, m, []string{w.Secret}, nil)
			ids = append(ids, m.id())
		}
		if ids[0] != ids[1] || ids[1] != ids[2] {
			t.Errorf("got ids %v, want the same for every attempt", ids)
		}
		if m := r.next(t); m.Type != "b" || m.id() == ids[0] {
			t.Errorf("got %s with id %s, want event b under a new id", m.body, m.id())
		}
		d.awaitPosition(w, "s", "is done", func(p wire.Position) bool { return p.Watermark == 1 && p.Retry == 0 && p.LeasedBy == "" })
		d.want(d.ask("POST", "reactions/"+w.Reaction+"/reset", wire.Repair{}, nil), 200, "")
		if m := r.next(t); m.Type != "a" || m.id() == ids[0] {
			t.Errorf("got %s after a reset, same id: %v, want event a under a new id", m.body, m.id() == ids[0])
		}
	})
}

// TestADeadWebhookHoldsUpNoOther verifies that a receiver that never responds, for many streams,
// delays no other webhook.
func TestADeadWebhookHoldsUpNoOther(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		release := make(chan struct{})
		dead := receive(t, func(received) int { <-release; return 500 })
		t.Cleanup(func() { close(release) })
		d, _, _ := running(t, e, hooked)
		alive := receive(t, nil)
		d.hook(wire.NewWebhook{URL: dead.URL})
		const streams = 100 // more than a node sends at once
		for i := range streams {
			d.emit(fmt.Sprintf("s-%d", i), "a")
		}
		dead.next(t)
		d.hook(wire.NewWebhook{URL: alive.URL})
		for i := range streams {
			d.emit(fmt.Sprintf("s-%d", i), "b")
		}
		for range streams {
			if m := alive.next(t); m.Type != "b" {
				t.Errorf("got %s, want event b", m.body)
			}
		}
	})
}

func TestASecretIsRotated(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		r := receive(t, nil)
		given := webhook.NewSecret()
		w := d.hook(wire.NewWebhook{URL: r.URL, Secret: given})
		if w.Secret != given {
			t.Errorf("got secret %s, want %s", w.Secret, given)
		}
		var second, third wire.CreatedWebhook
		d.want(d.ask("POST", "webhooks/"+w.ID+"/rotate", wire.RotateWebhook{OverlapMs: 60_000}, &second), 200, "")
		if second.Secret == "" || second.Secret == given || second.OverlapUntil == nil || second.ID != w.ID {
			t.Errorf("rotated to %+v", second)
		}
		d.emit("s", "a")
		signed(t, r.next(t), []string{given, second.Secret}, nil)
		d.awaitPosition(w, "s", "is done", func(p wire.Position) bool { return p.Watermark == 0 && p.LeasedBy == "" }) // otherwise its lease would expire
		holdfasttest.Advance(t, d.engine, time.Minute+time.Second)
		d.emit("s", "b")
		signed(t, r.next(t), []string{second.Secret}, []string{given})
		d.want(d.ask("POST", "webhooks/"+w.ID+"/rotate", nil, &third), 200, "")
		d.emit("s", "c")
		signed(t, r.next(t), []string{third.Secret}, []string{given, second.Secret})
		for _, bad := range []wire.RotateWebhook{{OverlapMs: -1}, {OverlapMs: 1 << 62}, {Secret: "whsec_c2hvcnQ="}, {Secret: "secret"}} {
			d.want(d.ask("POST", "webhooks/"+w.ID+"/rotate", bad, nil), 400, fault.Validation)
		}
		d.want(d.ask("POST", "webhooks/nothing/rotate", nil, nil), 404, fault.NotFound)
		var history wire.List[wire.Event]
		d.want(d.ask("GET", "streams/$webhook%2F"+w.ID+"/events", nil, &history), 200, "")
		if len(history.Items) != 3 || history.Items[0].Name != "created" || history.Items[2].Name != "rotated" || history.Items[2].Actor != "dev" {
			t.Errorf("got history %+v", history.Items)
		}
	})
}

func TestARemovedWebhookGetsNothing(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		r, other := receive(t, nil), receive(t, nil)
		w := d.hook(wire.NewWebhook{URL: r.URL})
		d.hook(wire.NewWebhook{URL: other.URL})
		d.emit("s", "a")
		r.next(t)
		other.next(t)
		d.want(d.ask("DELETE", "webhooks/"+w.ID, nil, nil, "Idempotency-Key", "k"), 204, "")
		d.want(d.ask("DELETE", "webhooks/"+w.ID, nil, nil, "Idempotency-Key", "k"), 204, "")
		d.want(d.ask("DELETE", "webhooks/"+w.ID, nil, nil), 404, fault.NotFound)
		d.want(d.ask("GET", "webhooks/"+w.ID, nil, nil), 404, fault.NotFound)
		d.want(d.ask("GET", "reactions/"+w.Reaction, nil, nil), 404, fault.NotFound)
		for range 5 {
			d.emit("s", "b")
			other.next(t)
		}
		if len(r.got) > 0 {
			t.Errorf("%d messages arrived after the webhook was removed", len(r.got))
		}
	})
}

func TestAnotherNodeGoesOn(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			r := receive(t, nil)
			first, err := holdfast.Open(t.Context(), db, holdfast.Config{})
			if err != nil {
				t.Fatal(err)
			}
			d, _, stop := running(t, first, hooked)
			w := d.hook(wire.NewWebhook{URL: r.URL})
			d.emit("s", "a")
			id := r.next(t).id()
			d.awaitPosition(w, "s", "is done", func(p wire.Position) bool { return p.Watermark == 0 && p.LeasedBy == "" })
			stop()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			second := holdfasttest.OpenOn(t, db)
			d.engine = second
			d.emit("s", "b")
			running(t, second, hooked)
			m := r.next(t)
			signed(t, m, []string{w.Secret}, nil)
			if m.Type != "b" || m.id() == id {
				t.Errorf("the second node sent %s with id %s, want event b under a new id", m.body, m.id())
			}
		})
	}
}

// databases opens fresh databases.
var databases = map[string]func(*testing.T) holdfast.Database{
	"sqlite":   func(t *testing.T) holdfast.Database { return holdfasttest.At(holdfasttest.SQLite(t)) },
	"postgres": func(t *testing.T) holdfast.Database { return holdfasttest.At(holdfasttest.PostgreSQL(t)) },
}

func TestAPrivateAddressIsRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		r := receive(t, nil)
		o := hooked
		o.AllowPrivate = nil
		api := httpapi.On(e, o)
		transport := api.WebhookClient().Transport.(*http.Transport)
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, r.Listener.Addr().String()) // what the name resolves to
		}
		d := serving(t, e, api)
		for _, u := range []string{r.URL, "https://127.0.0.1/", "https://localhost/", "https://169.254.169.254/", "http://example.com/", "ftp://example.com/", ""} {
			d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: u}, nil), 400, fault.Validation)
		}
		w := d.hook(wire.NewWebhook{URL: "https://receiver.example/"})
		d.emit("s", "a")
		p := d.awaitPosition(w, "s", "is blocked", func(p wire.Position) bool { return p.Blocked })
		if !strings.Contains(p.Error, "use a public address") || len(r.got) > 0 {
			t.Errorf("got position %+v, want an error about public addresses", p)
		}
	})
}

// serving runs an engine behind an existing API.
func serving(t *testing.T, e *holdfast.Engine, api *httpapi.API) *testAPI {
	t.Helper()
	srv := httptest.NewServer(api)
	testkit.Run(t, e)
	t.Cleanup(srv.Close)
	return &testAPI{t: t, engine: e, url: srv.URL, client: http.DefaultClient, header: http.Header{}}
}

// TestAReceiverThatIsGoneIsBlocked verifies that 410 blocks immediately, that this can be repaired,
// and that events about webhooks are not sent to webhooks, which would loop forever.
func TestAReceiverThatIsGoneIsBlocked(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		status := make(chan int, 1)
		r := receive(t, func(received) int { return <-status })
		w := d.hook(wire.NewWebhook{URL: r.URL, Source: "history"})
		if w.Streams != `^\$` || w.Source != "history" {
			t.Errorf("created %+v", w)
		}
		other := d.hook(wire.NewWebhook{URL: r.URL, Streams: "^nothing$"}) // its history is an event
		status <- 410
		if m := r.next(t); m.Data.Stream != "$webhook/"+other.ID || m.Type != "created" {
			t.Errorf("got %s, want event created of the other webhook", m.body)
		}
		blocked := func(p wire.Position) bool { return p.Blocked }
		if p := d.awaitPosition(w, "$webhook/"+other.ID, "is blocked", blocked); !strings.Contains(p.Error, "410") || p.Retry != 1 {
			t.Errorf("got position %+v, want error 410 after one retry", p)
		}
		d.awaitPosition(w, "$reaction/"+w.Reaction+"/$webhook/"+other.ID, "is passed over", func(p wire.Position) bool { return p.Watermark == 0 && !p.Blocked && p.LeasedBy == "" })
		if len(r.got) > 0 {
			t.Errorf("the webhook got an event about itself: %s", (<-r.got).body)
		}
		d.want(d.ask("GET", "reactions/"+w.Reaction, nil, nil), 200, "")
		d.want(d.ask("DELETE", "reactions/"+w.Reaction, nil, nil), 404, fault.NotFound)
		d.want(d.ask("POST", "reactions/"+w.Reaction+"/claim", wire.ClaimLeases{By: "me"}, nil), 404, fault.NotFound)
		d.want(d.ask("PUT", "reactions/"+w.Reaction, wire.PutReaction{Events: []string{"*"}}, nil), 400, fault.Validation)
		var done wire.Repaired
		d.want(d.ask("POST", "reactions/"+w.Reaction+"/unblock", wire.Repair{}, &done), 200, "")
		if len(done.Streams) != 1 {
			t.Errorf("unblocked %+v, want one stream", done)
		}
		status <- 200
		r.next(t)
		d.awaitPosition(w, "$webhook/"+other.ID, "goes on", func(p wire.Position) bool { return p.Watermark == 0 && !p.Blocked })
	})
}

func TestAnotherWorkspaceHasOtherWebhooks(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		r := receive(t, nil)
		w := d.hook(wire.NewWebhook{URL: r.URL})
		in := []string{"X-Holdfast-Workspace", "other"}
		theirs := d.hook(wire.NewWebhook{URL: r.URL, Name: "theirs"}, in...)
		for method, path := range map[string]string{"GET": "", "DELETE": "", "POST": "/rotate"} {
			d.want(d.ask(method, "webhooks/"+w.ID+path, nil, nil, in...), 404, fault.NotFound)
		}
		d.want(d.ask("GET", "reactions/"+w.Reaction+"/streams", nil, nil, in...), 404, fault.NotFound)
		var all wire.List[wire.Webhook]
		d.want(d.ask("GET", "webhooks", nil, &all, in...), 200, "")
		if len(all.Items) != 1 || all.Items[0].ID != theirs.ID {
			t.Errorf("listed %+v", all)
		}
		d.want(d.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "theirs"}}}, nil, in...), 201, "")
		m := r.next(t)
		signed(t, m, []string{theirs.Secret}, []string{w.Secret})
		d.emit("s", "ours")
		m = r.next(t)
		signed(t, m, []string{w.Secret}, []string{theirs.Secret})
	})
}

func TestARepeatedRequestMakesOneWebhook(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		n := wire.NewWebhook{URL: "http://127.0.0.1:1/", Name: "n"}
		first, again := d.hook(n, "Idempotency-Key", "k"), d.hook(n, "Idempotency-Key", "k")
		if first.Secret == "" || again.Secret != "" || first.ID != again.ID {
			t.Errorf("first call created %+v, second returned %+v, want the same id without the secret", first, again)
		}
		d.hook(wire.NewWebhook{URL: "http://127.0.0.1:1/"})
		var all wire.List[wire.Webhook]
		d.want(d.ask("GET", "webhooks?limit=1", nil, &all), 200, "")
		if len(all.Items) != 1 || all.Items[0].ID != first.ID || all.Next == nil {
			t.Fatalf("listed %+v", all)
		}
		d.want(d.ask("GET", "webhooks?cursor="+*all.Next, nil, &all), 200, "")
		if len(all.Items) != 1 || all.Next != nil {
			t.Errorf("listed %+v", all)
		}
		for _, bad := range []wire.NewWebhook{
			{URL: n.URL, Streams: "("}, {URL: n.URL, Source: "other"}, {URL: n.URL, Source: "history", Streams: "x"}, {URL: n.URL, Events: []string{""}},
			{URL: n.URL, Name: strings.Repeat("x", 5000)}, {URL: n.URL, Events: make([]string, 101)},
		} {
			d.want(d.ask("POST", "webhooks", bad, nil), 400, fault.Validation)
		}
	})
}

func TestWebhooksNeedAKey(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		o := hooked
		o.SecretKeys = nil
		d, _, _ := running(t, e, o)
		p := d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: "https://example.com/"}, nil), 503, fault.Unavailable)
		if !strings.Contains(p.Detail, "HOLDFAST_SECRET_KEY") {
			t.Errorf("got detail %q, want HOLDFAST_SECRET_KEY", p.Detail)
		}
		d.want(d.ask("GET", "webhooks", nil, nil), 200, "")
	})
	short := httpapi.New(httpapi.Options{SecretKeys: [][]byte{[]byte("short")}})
	if _, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, short); fault.CodeOf(err) != fault.Validation {
		t.Errorf("a short key: got %v, want a validation error", err)
	}
}

func TestOnlyAdminsChangeWebhooks(t *testing.T) {
	api := httpapi.On(holdfasttest.Open(t), hooked)
	for _, r := range api.Routes() {
		if !strings.HasPrefix(r.Path, "webhooks") {
			continue
		}
		for _, role := range allRoles {
			if want := r.Method == "GET" || role == keys.Admin; r.May(role) != want {
				t.Errorf("access of role %s to %s %s is %v", role, r.Method, r.Path, !want)
			}
		}
	}
}

// tables are those that could contain a secret.
var tables = []string{"webhook", "history", "event", "reaction", "follow", "request"}

// TestNoWebhookSecretIsKeptOrTold verifies that no secret is in the tables, nor in the log at debug
// level.
func TestNoWebhookSecretIsKeptOrTold(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lockedBuffer
			logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			e, err := holdfast.Open(t.Context(), open(t), holdfast.Config{Log: logger})
			if err != nil {
				t.Fatal(err)
			}
			o := hooked
			o.Log = logger
			d, _, stop := running(t, e, o)
			r := receive(t, func(m received) int { return map[string]int{"a": 200, "b": 410}[m.Type] })
			given := webhook.NewSecret()
			made := d.hook(wire.NewWebhook{URL: r.URL}, "Idempotency-Key", "k")
			secrets := []string{made.Secret, given}
			var next wire.CreatedWebhook
			d.want(d.ask("POST", "webhooks/"+made.ID+"/rotate", wire.RotateWebhook{OverlapMs: 60_000, Secret: given}, &next, "Idempotency-Key", "l"), 200, "")
			d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: r.URL, Secret: given + "x"}, nil), 400, fault.Validation)
			d.emit("s", "a", "b")
			signed(t, r.next(t), secrets, nil)
			d.awaitPosition(made, "s", "is blocked", func(p wire.Position) bool { return p.Blocked })
			told := ""
			for _, path := range []string{"webhooks", "webhooks/" + made.ID, "reactions/" + made.Reaction, "reactions/*/streams", "reactions"} {
				text, err := io.ReadAll(d.ask("GET", path, nil, nil).Body)
				if err != nil {
					t.Fatal(err)
				}
				told += string(text)
			}
			for _, table := range tables {
				told += dumpTable(t, e, table, name == "sqlite")
			}
			stop()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			told += log.String()
			if !strings.Contains(told, made.ID) || !strings.Contains(told, "reactions") {
				t.Fatal("the dump does not contain the webhook")
			}
			for _, secret := range secrets {
				text := strings.TrimPrefix(secret, "whsec_")
				for i := 0; i+12 <= len(text); i++ {
					if strings.Contains(told, text[i:i+12]) {
						t.Fatalf("part of a secret is in the database, the log or a response: %s", text[i:i+12])
					}
				}
			}
		})
	}
}

// dumpTable returns every row of a table as text.
func dumpTable(t *testing.T, e *holdfast.Engine, table string, lite bool) string {
	t.Helper()
	var b strings.Builder
	err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		b.Reset()
		if !lite {
			var text string
			err := postgres.Raw(tx).QueryRow(ctx, "SELECT coalesce(string_agg(row_to_json(k)::text, ' '), '') FROM holdfast."+table+" k").Scan(&text)
			b.WriteString(text)
			return err
		}
		rows, err := sqlite.Raw(tx).QueryContext(ctx, "SELECT * FROM holdfast_"+table)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		for rows.Next() {
			row := make([]any, len(columns))
			for i := range row {
				row[i] = new([]byte)
			}
			if err := rows.Scan(row...); err != nil {
				return err
			}
			for _, c := range row {
				fmt.Fprintf(&b, "%s ", *c.(*[]byte))
			}
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

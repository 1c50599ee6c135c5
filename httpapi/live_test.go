package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// live watches topics, from now on or after a message.
func (d *testAPI) live(topics, after string, headers ...string) *listener {
	d.t.Helper()
	return d.listen("live?watch="+url.QueryEscape(topics), append(headers, "Last-Event-ID", after)...)
}

// nextLive reads one message.
func (l *listener) nextLive() (m wire.Live) {
	l.t.Helper()
	e := l.next()
	if err := json.Unmarshal([]byte(e.text), &m); err != nil || m.Cursor != e.id || (e.event == "state") != (m.State != nil) {
		l.t.Fatalf("got %+v, %v", e, err)
	}
	return m
}

// until reads messages until one has what is wanted.
func (l *listener) until(what string, so func(wire.Live) bool) wire.Live {
	l.t.Helper()
	for n := 0; ; n++ {
		m := l.nextLive()
		if so(m) {
			return m
		}
		if n > 100 {
			l.t.Fatalf("%s: nothing in 100 messages, the last is %+v", what, m)
		}
	}
}

// changed reports whether a message has a change of a subject.
func changed(kind, subject string) func(wire.Live) bool {
	return func(m wire.Live) bool {
		for _, c := range m.Changes {
			if c.Kind == kind && c.Subject == subject {
				return true
			}
		}
		return false
	}
}

// TestEachTopicGetsItsChange verifies that a watcher of each topic gets its change or its state.
func TestEachTopicGetsItsChange(t *testing.T) {
	t.Parallel()
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.running()
		d.define(`{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"=\"Pay?\""}]}`)
		run := d.start("ask@1", "{}")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.worker("h", "")
		state := func(so func(*wire.LiveState) bool) func(wire.Live) bool {
			return func(m wire.Live) bool { return m.State != nil && so(m.State) }
		}
		cases := map[string]func(wire.Live) bool{
			"inbox":    state(func(s *wire.LiveState) bool { return s.Inbox != nil && len(s.Inbox.Items) == 2 }),
			"overview": state(func(s *wire.LiveState) bool { return s.Overview != nil && s.Overview.Entities.Counts["invoice"] == 1 }),
			"nodes":    state(func(s *wire.LiveState) bool { return s.Nodes != nil && len(*s.Nodes) == 1 }),
			"approvals": state(func(s *wire.LiveState) bool {
				return s.Approvals != nil && len(*s.Approvals) == 1 && (*s.Approvals)[0].RunID == run.ID
			}),
			"races": state(func(s *wire.LiveState) bool {
				return s.Races != nil && len(*s.Races) == 1 && (*s.Races)[0].Stream == "$scope/user/u/1" && (*s.Races)[0].Code == fault.Concurrency
			}),
			"wallet:w":          state(func(s *wire.LiveState) bool { return s.Wallets["w"] != nil && s.Wallets["w"].Balance == 5 }),
			"wallet:nobodys":    state(func(s *wire.LiveState) bool { w, ok := s.Wallets["nobodys"]; return ok && w == nil }),
			"lifecycle:invoice": changed("entity", "invoice/i/1"),
			"lifecycle:invoice,inbox": state(func(s *wire.LiveState) bool {
				return s.Counts["invoice"].Counts["open"] == 1
			}),
			"entity:invoice/i/1": changed("entity", "invoice/i/1"),
			"operations":         changed("entity", "invoice/i/1"),
			"runs":               changed("run", run.ID),
			"run:" + run.ID:      changed("run", run.ID),
			"batches": func(m wire.Live) bool {
				for _, c := range m.Changes {
					if c.Subject != "b" { // the bulk is created before the batch
						t.Errorf("batches: got a change of %s %s", c.Kind, c.Subject)
					}
				}
				return changed("batch", "b")(m)
			},
			"batch:b":               changed("batch", "b"),
			"bulks":                 func(m wire.Live) bool { return len(m.Changes) > 0 && m.Changes[0].Kind == "bulk" },
			"streams":               changed("stream", "s,1"),
			"stream:s%2C1,stream:x": changed("stream", "s,1"),
			"reactions":             changed("reaction", "r/s,1"),
			"reaction:r":            changed("reaction", "r/s,1"),
			"scopes":                changed("scope", "user/u/1"),
			"scope:user/u/1":        changed("scope", "user/u/1"),
			"webhooks":              func(m wire.Live) bool { return len(m.Changes) == 1 && m.Changes[0].Kind == "webhook" },
		}
		all := make(map[string]*listener)
		for topics := range cases {
			all[topics] = d.live(topics, "")
			if m := all[topics].nextLive(); len(m.Changes)+len(m.Folded) > 0 || m.Reset || m.State != nil {
				t.Errorf("%s: the first message is %+v", topics, m)
			}
		}
		none := d.live("entity:invoice/nobodys,stream:nobodys,run:nobodys,batch:nobodys,scope:user/nobodys,reaction:nobodys,lifecycle:nobodys", "")
		none.nextLive()
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i/1")}, nil), 201, "")
		d.want(d.ask("POST", "workflow-runs/"+run.ID+"/signals", wire.Signal{Type: "t"}, nil), 202, "")
		d.want(d.ask("POST", "wallets/w/credit", wire.Credit{Points: 5, Reference: "r"}, nil), 200, "")
		d.want(d.ask("POST", "bulk", wire.NewBulk{Action: "run.pause", IDs: []string{"nobodys"}}, nil), 202, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h"}, nil), 201, "")
		d.want(d.ask("POST", "streams/s%2C1/events", wire.Append{Events: []wire.NewEvent{{Name: "paid", Data: json.RawMessage(`{"a":1}`)}}}, nil), 201, "")
		d.want(d.ask("PUT", "scopes/user/u%2F1", `{"a":1}`, nil), 200, "")
		d.want(d.ask("PUT", "scopes/user/u%2F1", `{"a":2}`, nil, "If-Match", `"7"`), 412, fault.PreconditionFailed)
		d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: "https://example.com/", Events: []string{"x"}}, nil), 201, "")
		var held []wire.Lease
		testkit.Eventually(t, "the reaction has its event", func() bool { held = d.lease("r", 1); return len(held) == 1 })
		no := false
		d.want(d.ask("POST", "reactions/r/fail", wire.FailLease{Stream: "s,1", Epoch: held[0].Epoch, Token: held[0].Token, Message: "no", Retryable: &no}, nil), 200, "")
		for topics, so := range cases {
			all[topics].until(topics, so)
			all[topics].stop()
		}
		m := none.until("the state of an unknown lifecycle", func(m wire.Live) bool { return m.State != nil })
		if len(m.State.Counts["nobodys"].Counts) > 0 {
			t.Errorf("got %+v", m.State)
		}
		none.stop()
	}, invoices(nil))
}

// TestLiveResumes verifies that a watcher that reconnects gets each event once: on another node, and after its server was
// killed and another was opened on the same database; while two callers write all the time.
func TestLiveResumes(t *testing.T) {
	t.Parallel()
	storetest.OnEach(t, func(t *testing.T, at string) {
		serve := func() (*testAPI, func()) {
			e := holdfasttest.OpenOn(t, holdfasttest.At(at), invoices(nil), stream.Feed(stream.FeedOptions{}))
			api := httpapi.On(e, httpapi.Options{NoKeys: true})
			srv := httptest.NewServer(api)
			kill := sync.OnceFunc(func() {
				srv.CloseClientConnections()
				api.Stop()
				srv.Close()
				_ = e.Close() // a stop without a word is that of the connections
			})
			t.Cleanup(kill)
			return &testAPI{t: t, api: api, engine: e, url: srv.URL, client: http.DefaultClient, header: http.Header{}}, kill
		}
		writing := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(at), invoices(nil), stream.Feed(stream.FeedOptions{})), httpapi.Options{NoKeys: true})
		writing.running()
		turns, written := make(chan struct{}, 100), make([]int, 2)
		var writers sync.WaitGroup
		for i := range written {
			writers.Go(func() {
				for range turns {
					writing.want(writing.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(fmt.Sprint(i, "-", written[i]))}, nil), 201, "")
					writing.append(fmt.Sprint("s", i), 1)
					written[i]++
				}
			})
		}
		const topics = "lifecycle:invoice,streams,overview"
		told, cursor := make(map[string]int), ""
		take := func(l *listener) {
			t.Helper()
			m := l.nextLive()
			if len(m.Folded) > 0 || m.Reset {
				t.Errorf("got %+v, want all changes", m)
			}
			for _, c := range m.Changes {
				told[fmt.Sprint(c.Kind, " ", c.Subject, " ", c.Version)]++
			}
			cursor = m.Cursor
		}
		other, _ := serve()
		for range 3 {
			d, kill := serve()
			l := d.live(topics, cursor)
			for range 2 {
				take(l)
				for range 5 {
					turns <- struct{}{}
				}
			}
			kill()
			l = other.live(topics, cursor)
			take(l)
			l.stop()
		}
		close(turns)
		writers.Wait()
		d, _ := serve()
		l := d.live(topics, cursor)
		for want := 2 * (written[0] + written[1]); len(told) < want; {
			take(l)
		}
		l.stop()
		for name, n := range told {
			if n != 1 {
				t.Errorf("%s was told %d times", name, n)
			}
		}
	})
}

// TestLiveIsOfOneWorkspace verifies that a watcher gets nothing of other workspaces.
func TestLiveIsOfOneWorkspace(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		const topics = "lifecycle:invoice,streams,scopes,overview"
		l := d.live(topics, "", "X-Holdfast-Workspace", "mine")
		l.nextLive()
		for _, where := range []string{"other", "mine"} {
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(where)}, nil, "X-Holdfast-Workspace", where), 201, "")
			d.want(d.ask("PUT", "scopes/user/"+where, `{}`, nil, "X-Holdfast-Workspace", where), 200, "")
			d.want(d.ask("POST", "streams/"+where+"/events", exampleBodies["appendEvents"], nil, "X-Holdfast-Workspace", where), 201, "")
		}
		told, entities := make(map[string]bool), int64(0)
		for len(told) < 3 || entities == 0 {
			m := l.nextLive()
			for _, c := range m.Changes {
				told[c.Kind] = true
				if !strings.HasSuffix(c.Subject, "mine") {
					t.Errorf("got %+v", c)
				}
			}
			if m.State != nil && m.State.Overview != nil {
				entities = m.State.Overview.Entities.Counts["invoice"]
			}
		}
		if entities != 1 {
			t.Errorf("the overview has %d entities", entities)
		}
		l.stop()
	}, invoices(nil))
}

// TestLiveWithoutAStream verifies that a caller can also ask for what has changed since a cursor, and what is refused.
func TestLiveWithoutAStream(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		get := func(since string) (m wire.Live) {
			if since != "" {
				since = "&since=" + since
			}
			d.want(d.ask("GET", "live?watch=lifecycle:invoice,overview"+since, nil, &m), 200, "")
			return m
		}
		first := get("")
		if len(first.Changes) > 0 || first.State == nil || first.State.Overview == nil {
			t.Errorf("got %+v", first)
		}
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		second := get(first.Cursor)
		if len(second.Changes) != 1 || second.Changes[0].Subject != "invoice/i" || second.Changes[0].Events != 1 || second.At == nil {
			t.Errorf("got %+v", second)
		}
		if third := get(second.Cursor); len(third.Changes) > 0 {
			t.Errorf("got %+v again", third.Changes)
		}
		for i := range 101 {
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(fmt.Sprint("i", i))}, nil), 201, "")
		}
		if many := get(second.Cursor); len(many.Changes) > 0 || len(many.Folded) != 101 || many.Reset {
			t.Errorf("got %d changes and %d subjects, want only subjects", len(many.Changes), len(many.Folded))
		}
		for _, bad := range []string{"nothing", "entity:invoice", "entity:/", "run:", "runs:x", "inbox,,", "run:%25zz", "stream:a%2500"} {
			p := d.want(d.ask("GET", "live?watch="+bad, nil, nil), 400, fault.Validation)
			if !strings.Contains(p.Detail, "lifecycle:NAME") {
				t.Errorf("%q: the error %q does not list the topics", bad, p.Detail)
			}
			d.want(d.ask("GET", "live?watch="+bad, nil, nil, "Accept", "text/event-stream"), 400, fault.Validation)
		}
		d.want(d.ask("GET", "live", nil, nil), 400, fault.Validation)
		for _, bad := range []string{"x", "p1", first.Cursor[:len(first.Cursor)-2], strings.Repeat("A", 2000)} {
			d.want(d.ask("GET", "live?watch=inbox&since="+bad, nil, nil), 400, fault.Validation)
			d.want(d.ask("GET", "live?watch=inbox", nil, nil, "Accept", "text/event-stream", "Last-Event-ID", bad), 400, fault.Validation)
		}
	}, invoices(nil))
}

// TestLiveEndsWithItsKey verifies that a revoked key gets nothing more, and that Stop ends the stream.
func TestLiveEndsWithItsKey(t *testing.T) {
	t.Parallel()
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		d.running()
		_, admin := d.newKey("default", keys.Admin, 0)
		gone, text := d.newKey("default", keys.Read, 0)
		us, them := d.as(admin), d.as(text)
		l := d.live("streams", "", "Authorization", "Bearer "+text)
		l.nextLive()
		rest := d.live("streams", "", "Authorization", "Bearer "+admin)
		rest.nextLive()
		us.want(us.ask("DELETE", "keys/"+gone.ID, nil, nil), 200, "")
		testkit.Eventually(t, "the server, which caches a key for two seconds, refuses it", func() bool {
			return them.ask("GET", "events", nil, nil).StatusCode == http.StatusUnauthorized
		})
		us.append("s", 1)
		if text, err := io.ReadAll(l.in); err != nil || strings.Contains(string(text), "data") {
			t.Errorf("got %q, %v, want the end", text, err)
		}
		rest.until("its change", changed("stream", "s"))
		d.api.Stop()
		if _, err := io.ReadAll(rest.in); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	})
}

// countedReads is a database that counts its calls by verb.
type countedReads struct {
	store.Database
	mu sync.Mutex
	n  map[string]int
}

func (c *countedReads) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := c.Database.Open(ctx, o)
	return &countedReadsStore{s, c}, err
}

// take returns the counts since the last call.
func (c *countedReads) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = make(map[string]int)
	return n
}

type countedReadsStore struct {
	store.Store
	by *countedReads
}

func (s *countedReadsStore) Base() store.Store { return s.Store }

func (s *countedReadsStore) Do(ctx context.Context, c store.Command) error {
	s.by.mu.Lock()
	s.by.n[c.Decl().Name]++
	s.by.mu.Unlock()
	return s.Store.Do(ctx, c)
}

// TestFiftyWatchersReadOnce verifies that fifty watchers and fifty clients of GET feed cause fewer reads than there are watchers, until
// all of them have got a change, and the watchers a state.
func TestFiftyWatchersReadOnce(t *testing.T) {
	t.Parallel()
	storetest.OnEach(t, func(t *testing.T, at string) {
		db := &countedReads{Database: store.DatabaseOf(holdfasttest.At(at)), n: make(map[string]int)}
		d := newTestAPI(t, holdfasttest.OpenOn(t, store.HandleDatabase(db), invoices(nil), stream.Feed(stream.FeedOptions{})), httpapi.Options{NoKeys: true})
		all := make([]*listener, 50)
		for i := range all {
			all[i] = d.live("lifecycle:invoice,overview", "")
		}
		for _, l := range all {
			l.until("the overview", func(m wire.Live) bool { return m.State != nil && m.State.Overview != nil })
		}
		followers := make([]*listener, 50)
		for i := range followers {
			followers[i] = d.watch("")
		}
		for _, id := range []string{"first", "i"} { // with the first, the followers have reached the present
			db.take()
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: &id}, nil), 201, "")
			for _, l := range followers {
				if e := l.next(); e.data.Stream != "$entity/invoice/"+id {
					t.Fatalf("got %+v, want the event of %s", e, id)
				}
			}
		}
		for _, l := range all {
			got, counted := false, false
			for !got || !counted {
				m := l.nextLive()
				got = got || changed("entity", "invoice/i")(m)
				counted = counted || m.State != nil && m.State.Overview != nil && m.State.Overview.Entities.Counts["invoice"] == 2
			}
		}
		n := db.take()
		for _, verb := range []string{"history.list_new", "feed.read", "overview.count_live"} {
			if n[verb] == 0 || n[verb] >= len(all) {
				t.Errorf("%s was called %d times, want fewer than there are watchers: %v", verb, n[verb], n)
			}
		}
	})
}

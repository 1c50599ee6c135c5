package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/wire"
)

// pagesOf reads a list to its end, page by page.
func pagesOf[T any](d *testAPI, path string) (all []T) {
	d.t.Helper()
	for at := path; ; {
		var page wire.List[T]
		d.want(d.ask("GET", at, nil, &page), 200, "")
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		at = path + "&cursor=" + *page.Next
	}
}

// TestTheFeedOfEverything verifies that an observer of a workspace gets its histories and events
// from now on, and continues after a reconnect, without those of other workspaces; and that the
// same can be read page by page.
func TestTheFeedOfEverything(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		create := func(id, where string) {
			t.Helper()
			d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(id)}, nil, "X-Holdfast-Workspace", where), 201, "")
		}
		create("before", "default")
		l := d.watch("")
		create("i1", "other")
		create("i1", "default")
		d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		var told []string
		var last string
		for range 2 {
			e := l.next()
			told, last = append(told, e.data.Stream), e.id
			if (e.data.Position == nil) != strings.HasPrefix(e.data.Stream, "$") {
				t.Errorf("got event %+v", e.data)
			}
		}
		slices.Sort(told)
		if !slices.Equal(told, []string{"$entity/invoice/i1", "s"}) {
			t.Errorf("got events of %q", told)
		}
		l.stop()
		create("i2", "default")
		l = d.watch(last)
		e := l.next()
		if e.data.Stream != "$entity/invoice/i2" { // nothing is repeated
			t.Fatalf("got event %+v", e.data)
		}
		for _, name := range []string{"s", "$entity/invoice/i2"} { // whole, however long they are
			long := strings.Repeat("x", 20_000)
			if name == "s" {
				d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"long","data":"`+long+`"}]}`, nil), 201, "")
			} else if _, err := entities.Transition(t.Context(), engine.Of(d.engine), entities.TransitionArgs{Lifecycle: "invoice", ID: "i2", From: []string{"open"}, To: "open", Event: "noted", Note: []byte(`{"text":"` + long + `"}`)}); err != nil {
				t.Fatal(err)
			}
			if e := l.next(); e.data.Stream != name || !strings.Contains(string(e.data.Data), long) {
				t.Errorf("got %.200s, want the event of %s with its data", e.text, name)
			}
		}
		l.stop()

		told = nil
		for _, e := range pagesOf[wire.Event](d, "feed?limit=2") {
			told = append(told, e.Stream)
		}
		if slices.Sort(told); !slices.Equal(told, []string{"$entity/invoice/before", "$entity/invoice/i1", "$entity/invoice/i2", "$entity/invoice/i2", "s", "s"}) {
			t.Errorf("got events of %q", told)
		}
		d.want(d.ask("GET", "feed?cursor=p7", nil, nil), 400, fault.Validation)
		d.want(d.ask("GET", "feed", nil, nil, "Accept", "text/event-stream", "Last-Event-ID", "nonsense"), 400, fault.Validation)
	}, invoices(nil))
}

// TestIdleClientsOfTheFeedLeaveRoom verifies that clients which have received a large event and wait for the next leave the room
// for large messages to others.
func TestIdleClientsOfTheFeedLeaveRoom(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		long := strings.Repeat("x", 1_000_000)
		clients := make([]*listener, room.Bytes/(room.AnswerWeight*len(long))+1) // one more than the room has place for at once
		for i := range clients {
			clients[i] = d.watch("")
		}
		d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"long","data":"`+long+`"}]}`, nil), 201, "")
		for _, l := range clients {
			if e := l.next(); len(e.data.Data) < len(long) {
				t.Errorf("got %.200s, want the event with its data", e.text)
			}
		}
	})
}

// TestWorkspaces verifies that a server without keys lists and creates all workspaces, and that a
// key sees only its own.
func TestWorkspaces(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for i, status := range []int{201, 200} {
			var made wire.Workspace
			d.want(d.ask("POST", "workspaces", wire.NewWorkspace{Name: "acme"}, &made), status, "")
			if made.Name != "acme" || made.CreatedAt == nil {
				t.Errorf("request %d: created %+v", i, made)
			}
		}
		d.want(d.ask("POST", "workspaces", wire.NewWorkspace{Name: "a b"}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "workspaces", wire.NewWorkspace{}, nil), 400, fault.Validation)
		var names []string
		for _, w := range pagesOf[wire.Workspace](d, "workspaces?limit=1") {
			names = append(names, w.Name)
		}
		if !slices.Contains(names, "acme") || !slices.Contains(names, "default") || !slices.IsSorted(names) {
			t.Errorf("listed workspaces %q", names)
		}

		locked := newTestAPI(t, d.engine, httpapi.Options{})
		_, locked.key = locked.newKey("acme", keys.Admin, 0)
		var page wire.List[wire.Workspace]
		locked.want(locked.ask("GET", "workspaces", nil, &page), 200, "")
		if len(page.Items) != 1 || page.Items[0].Name != "acme" {
			t.Errorf("a key lists workspaces %+v, want only acme", page.Items)
		}
		locked.want(locked.ask("POST", "workspaces", wire.NewWorkspace{Name: "acme"}, nil), 200, "")
		locked.want(locked.ask("POST", "workspaces", wire.NewWorkspace{Name: "default"}, nil), 403, fault.Forbidden)
		locked.want(locked.ask("POST", "workspaces", wire.NewWorkspace{Name: "new"}, nil), 403, fault.Forbidden)
		locked.want(locked.ask("GET", "streams/s/events", nil, nil, "X-Holdfast-Workspace", "default"), http.StatusForbidden, fault.Forbidden)
		locked.want(locked.ask("GET", "workspaces", nil, nil, "X-Holdfast-Workspace", "acme"), 200, "")
	})
}

// TestEveryWorkspaceHasItsFeed verifies that every workspace has its feed from the start, also for
// a listener that connects before there are events.
func TestEveryWorkspaceHasItsFeed(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.running()
		for _, path := range []string{"events", "feed"} {
			space := "space-" + path
			l := d.listen(path, "X-Holdfast-Workspace", space)
			d.want(d.ask("POST", "streams/s/events", `{"events":[{"name":"first"}]}`, nil, "X-Holdfast-Workspace", space), 201, "")
			for e := l.next(); e.event != "first"; e = l.next() {
				t.Logf("got event %+v", e)
			}
			l.stop()
		}
	})
}

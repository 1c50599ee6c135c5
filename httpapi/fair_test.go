package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/batches"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// hanging is an endpoint that answers those of big not before it is told to, and notes who called.
type hanging struct {
	big     atomic.Int64
	grew    chan struct{} // of each call of big
	small   chan string
	release chan struct{}
}

func (h *hanging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/big") {
		h.big.Add(1)
		select {
		case h.grew <- struct{}{}:
		default:
		}
		select {
		case <-h.release:
		case <-r.Context().Done():
		}
	} else {
		h.small <- r.URL.Path
	}
	_, _ = w.Write([]byte(`{}`))
}

// Verifies that a workspace whose URLs all hang, with more to do than a node does at once, holds up no other: what another
// has is called at once, and none of the first beyond its share.
func TestAWorkspaceThatHangsHoldsUpNoOther(t *testing.T) {
	const units, share = 140, 64 // more than a node does at once, and what one workspace and handler has of it
	work := map[string]struct {
		prepare func(d *door, in, url string)
		one     func(d *door, in string, from, n int)
	}{
		"items": {
			func(d *door, in, url string) {
				d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil, "X-Holdfast-Workspace", in), 200, "")
				d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: url}, nil, "X-Holdfast-Workspace", in), 201, "")
			},
			func(d *door, in string, from, n int) {
				var keys []string
				for i := range n {
					keys = append(keys, fmt.Sprint("k", from+i))
				}
				d.want(d.ask("POST", "batches", wire.NewBatch{ID: fmt.Sprint("b", from), Wallet: "w", Handler: "h", Parallel: 1000, Items: newItems(1, keys...)}, nil, "X-Holdfast-Workspace", in), 201, "")
			},
		},
		"steps": {
			func(d *door, in, url string) {
				d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: url, Safety: "idempotent"}, nil, "X-Holdfast-Workspace", in), 201, "")
				d.want(d.ask("POST", "workflow-definitions", oneTask("w", "h"), nil, "X-Holdfast-Workspace", in), 201, "")
			}, startRuns,
		},
		"http steps": {
			func(d *door, in, url string) {
				d.want(d.ask("POST", "workflow-definitions", fmt.Sprintf(`{"name":"w","version":"1","steps":[{"name":"do","type":"http","url":%q,"method":"POST"}]}`, url), nil, "X-Holdfast-Workspace", in), 201, "")
			}, startRuns,
		},
		"reactions": {
			func(d *door, in, url string) {
				d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: url, Safety: "idempotent"}, nil, "X-Holdfast-Workspace", in), 201, "")
				d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"paid"}, Handler: "h"}, nil, "X-Holdfast-Workspace", in), 201, "")
			}, appendSome,
		},
		"webhooks": {
			func(d *door, in, url string) {
				for i := 0; in == "big" && i < share/8 || i < 1; i++ { // one has eight at the most
					d.hook(wire.NewWebhook{URL: url, Events: []string{"paid"}}, "X-Holdfast-Workspace", in)
				}
			}, func(d *door, in string, from, n int) { appendSome(d, in, from, min(n, 8)) },
		},
	}
	for what, w := range work {
		t.Run(what, func(t *testing.T) {
			eachDoor(t, elsewhere, func(t *testing.T, d *door) {
				far := &hanging{grew: make(chan struct{}, units), small: make(chan string, 10), release: make(chan struct{})}
				srv := httptest.NewServer(far)
				t.Cleanup(srv.Close)
				t.Cleanup(sync.OnceFunc(func() { close(far.release) }))
				w.prepare(d, "big", srv.URL+"/big")
				w.prepare(d, "small", srv.URL+"/small")
				d.running()
				w.one(d, "big", 0, units)
				for range share {
					select {
					case <-far.grew:
					case <-time.After(time.Minute):
						t.Fatalf("of big, %d were called", far.big.Load())
					}
				}
				for n := range 3 {
					w.one(d, "small", units+n, 1)
					select {
					case <-far.small:
					case <-time.After(time.Minute):
						t.Fatalf("nothing of small was called while %d calls of big hang", far.big.Load())
					}
				}
				if n := far.big.Load(); n != share {
					t.Errorf("%d calls of big at once", n)
				}
			}, httpapi.Handlers(elsewhere))
		})
	}
}

func startRuns(d *door, in string, _, n int) {
	for range n {
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, nil, "X-Holdfast-Workspace", in), 201, "")
	}
}

func appendSome(d *door, in string, from, n int) {
	for i := range n {
		d.want(d.ask("POST", fmt.Sprintf("streams/s%d/events", from+i), `{"events":[{"name":"paid"}]}`, nil, "X-Holdfast-Workspace", in), 201, "")
	}
}

// Verifies that what is due in one workspace comes in its turn, however much is due in another, and for longer.
func TestEachWorkspaceHasItsTurn(t *testing.T) {
	in := func(w string) []string { return []string{"X-Holdfast-Workspace", w} }
	eachDoor(t, elsewhere, func(t *testing.T, d *door) {
		for _, w := range []string{"big", "small"} {
			d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil, in(w)...), 200, "")
			d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil, in(w)...), 201, "")
			d.want(d.ask("POST", "workflow-definitions", oneTask("w", "h"), nil, in(w)...), 201, "")
			n := map[string]int{"big": 20, "small": 1}[w]
			startRuns(d, w, 0, n)
			for i := range n {
				d.want(d.ask("POST", "batches", wire.NewBatch{ID: fmt.Sprint("b", i), Wallet: "w", Handler: "h", Parallel: 1000, Items: newItems(1, "x", "y", "z")}, nil, in(w)...), 201, "")
			}
		}
		var order hold.Order
		finder := runs.Finder{Order: &order}
		var steps []string
		for range 4 { // who was served last comes last
			all, err := finder.Find(t.Context(), d.engine, store.Place{}, []string{"h"}, "worker", 10, nil)
			if err != nil || len(all) < 11 {
				t.Fatalf("found %d, %v", len(all), err)
			}
			if !slices.ContainsFunc(all[:2], func(l runs.Live) bool { return l.Run.Workspace == "small" }) {
				t.Errorf("small comes after %s, %s", all[0].Run.Workspace, all[1].Run.Workspace)
			}
			order.Served(all[0].Run.Workspace)
			steps = append(steps, all[0].Run.Workspace)
		}
		if slices.Sort(steps); !slices.Equal(steps, []string{"big", "big", "small", "small"}) {
			t.Errorf("first came %q", steps)
		}
		taken, err := batches.Take(t.Context(), d.engine, batches.Ask{Handlers: []string{"h"}, Kind: "worker", Holder: "me", Limit: 1000, All: true,
			Room: hold.NewRoom(4, func() bool { return false }, nil)})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, x := range taken {
			got[x.Workspace]++
		}
		if got["big"] != 2 || got["small"] == 0 {
			t.Errorf("taken were %v", got)
		}
	})
}

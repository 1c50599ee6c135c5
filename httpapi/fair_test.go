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

	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// hanging is an endpoint that delays responses to big until it is released, and records its
// callers.
type hanging struct {
	url     string
	big     atomic.Int64
	grew    chan struct{} // receives for each call of big
	small   chan string
	release chan struct{}
}

// share is the part of a node's capacity that one workspace and handler gets.
const share = 64

func newHanging(t *testing.T) *hanging {
	h := &hanging{grew: make(chan struct{}, 1000), small: make(chan string, 10), release: make(chan struct{})}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	t.Cleanup(sync.OnceFunc(func() { close(h.release) }))
	h.url = srv.URL
	return h
}

// fills waits until big uses its share.
func (h *hanging) fills(t *testing.T) {
	t.Helper()
	for range share {
		select {
		case <-h.grew:
		case <-time.After(time.Minute):
			t.Fatalf("only %d calls of big arrived", h.big.Load())
		}
	}
}

// comes waits for a call of small.
func (h *hanging) comes(t *testing.T) {
	t.Helper()
	select {
	case <-h.small:
	case <-time.After(time.Minute):
		t.Fatalf("no call of small arrived while %d calls of big were open", h.big.Load())
	}
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

// TestAWorkspaceThatHangsHoldsUpNoOther verifies that a workspace whose URLs all hang, with more
// work than a node does at once, delays no other workspace: work of another is called immediately,
// and the first one does not exceed its share.
func TestAWorkspaceThatHangsHoldsUpNoOther(t *testing.T) {
	const units = 140 // more than a node does at once
	work := map[string]struct {
		prepare func(d *testAPI, in, url string)
		one     func(d *testAPI, in string, from, n int)
	}{
		"items": {
			func(d *testAPI, in, url string) {
				d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil, "X-Holdfast-Workspace", in), 200, "")
				d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: url}, nil, "X-Holdfast-Workspace", in), 201, "")
			},
			func(d *testAPI, in string, from, n int) {
				var keys []string
				for i := range n {
					keys = append(keys, fmt.Sprint("k", from+i))
				}
				d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(fmt.Sprint("b", from)), Wallet: "w", Handler: "h", Parallel: 1000, Items: newItems(1, keys...)}, nil, "X-Holdfast-Workspace", in), 201, "")
			},
		},
		"steps": {
			func(d *testAPI, in, url string) {
				d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: url, Safety: "idempotent"}, nil, "X-Holdfast-Workspace", in), 201, "")
				d.want(d.ask("POST", "workflow-definitions", oneTask("w", "h"), nil, "X-Holdfast-Workspace", in), 201, "")
			}, startRuns,
		},
		"http steps": {
			func(d *testAPI, in, url string) {
				d.want(d.ask("POST", "workflow-definitions", fmt.Sprintf(`{"name":"w","version":"1","steps":[{"name":"do","type":"http","url":%q,"method":"POST"}]}`, url), nil, "X-Holdfast-Workspace", in), 201, "")
			}, startRuns,
		},
		"reactions": {
			func(d *testAPI, in, url string) {
				d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: url, Safety: "idempotent"}, nil, "X-Holdfast-Workspace", in), 201, "")
				d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"paid"}, Handler: "h"}, nil, "X-Holdfast-Workspace", in), 201, "")
			}, appendSome,
		},
		"webhooks": {
			func(d *testAPI, in, url string) {
				for i := 0; in == "big" && i < share/8 || i < 1; i++ { // each has at most eight
					d.hook(wire.NewWebhook{URL: url, Events: []string{"paid"}}, "X-Holdfast-Workspace", in)
				}
			}, func(d *testAPI, in string, from, n int) { appendSome(d, in, from, min(n, 8)) },
		},
	}
	for what, w := range work {
		t.Run(what, func(t *testing.T) {
			eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
				far := newHanging(t)
				w.prepare(d, "big", far.url+"/big")
				w.prepare(d, "small", far.url+"/small")
				d.running()
				w.one(d, "big", 0, units)
				far.fills(t)
				for n := range 3 {
					w.one(d, "small", units+n, 1)
					far.comes(t)
				}
				if n := far.big.Load(); n != share {
					t.Errorf("got %d concurrent calls of big, want %d", n, share)
				}
			})
		})
	}
}

// TestAHandlerThatHangsHoldsUpNoOther verifies that a hanging handler with more work than a node
// does at once delays no other handler of its workspace, whether that is the only workspace or not.
func TestAHandlerThatHangsHoldsUpNoOther(t *testing.T) {
	work := map[string]struct {
		prepare func(d *testAPI, name, url string)
		one     func(d *testAPI, name string, from, n int)
	}{
		"items": {
			func(d *testAPI, name, url string) {
				d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
				d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "http", URL: url}, nil), 201, "")
			},
			func(d *testAPI, name string, from, n int) {
				for i := range (n-1)/5 + 1 { // of more batches than one poll reads
					d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(fmt.Sprint("b", from+i)), Wallet: "w", Handler: name, Parallel: 1000, Items: newItems(1, "k1", "k2", "k3", "k4", "k5")}, nil), 201, "")
				}
			},
		},
		"steps": {
			func(d *testAPI, name, url string) {
				d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "http", URL: url, Safety: "idempotent"}, nil), 201, "")
				d.want(d.ask("POST", "workflow-definitions", oneTask("w"+name, name), nil), 201, "")
			},
			func(d *testAPI, name string, _, n int) {
				for range n {
					d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w" + name + "@1"}, nil), 201, "")
				}
			},
		},
		"reactions": {
			func(d *testAPI, name, url string) {
				d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "http", URL: url, Safety: "idempotent"}, nil), 201, "")
				d.want(d.ask("PUT", "reactions/r"+name, wire.PutReaction{Events: []string{"e" + name}, Handler: name}, nil), 201, "")
			},
			func(d *testAPI, name string, from, n int) {
				for i := range n {
					d.want(d.ask("POST", fmt.Sprintf("streams/s%d/events", from+i), `{"events":[{"name":"e`+name+`"}]}`, nil), 201, "")
				}
			},
		},
	}
	for what, w := range work {
		t.Run(what, func(t *testing.T) {
			eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
				far := newHanging(t)
				w.prepare(d, "h1", far.url+"/big")
				w.prepare(d, "h2", far.url+"/small")
				d.running()
				w.one(d, "h1", 0, 200)
				far.fills(t)
				w.one(d, "h2", 1000, 1)
				far.comes(t)
			})
		})
	}
}

// TestStepsOfWorkersAreInNobodysWay verifies that steps that wait for workers under the same
// handler name in many other workspaces delay nothing.
func TestStepsOfWorkersAreInNobodysWay(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		far := newHanging(t)
		prepare := func(in string, h wire.PutHandler) {
			d.want(d.ask("PUT", "handlers/h", h, nil, "X-Holdfast-Workspace", in), 201, "")
			d.want(d.ask("POST", "workflow-definitions", oneTask("w", "h"), nil, "X-Holdfast-Workspace", in), 201, "")
		}
		prepare("big", wire.PutHandler{Kind: "http", URL: far.url + "/big", Safety: "idempotent"})
		prepare("small", wire.PutHandler{Kind: "http", URL: far.url + "/small", Safety: "idempotent"})
		for i := range 70 { // more than get a turn in one round
			prepare(fmt.Sprint("v", i), wire.PutHandler{Kind: "worker", Safety: "idempotent"})
			startRuns(d, fmt.Sprint("v", i), 0, 1)
		}
		d.running()
		startRuns(d, "big", 0, 200)
		far.fills(t)
		for range 3 {
			startRuns(d, "small", 0, 1)
			far.comes(t)
		}
	})
}

// TestManyWorkspacesHaveTheirTurn verifies that of many workspaces with much work each gets one
// turn before any gets three.
func TestManyWorkspacesHaveTheirTurn(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		const others = 40
		for i := range others + 1 {
			in, n := fmt.Sprint("w", i), 4
			if i == 0 {
				n = 60
			}
			d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil, "X-Holdfast-Workspace", in), 201, "")
			d.want(d.ask("POST", "workflow-definitions", oneTask("w", "h"), nil, "X-Holdfast-Workspace", in), 201, "")
			startRuns(d, in, 0, n)
		}
		var order lease.Order
		finder := runengine.Finder{Order: &order}
		had := make(map[string]int)
		for n := 0; len(had) <= others; {
			all, _, err := finder.Find(t.Context(), engine.Of(d.engine), store.Partition{}, []string{"h"}, "worker", 50)
			if err != nil || len(all) == 0 {
				t.Fatalf("claimed %d steps, %v", len(all), err)
			}
			for i := range all { // as if each were handed out and replaced by a new one
				n++
				order.Served(all[i].Run.Workspace)
				if had[all[i].Run.Workspace]++; len(had) <= others && n > 2*(others+1) {
					t.Fatalf("only %d of %d workspaces had a turn in %d claims", len(had), others+1, n)
				}
			}
		}
	})
}

func startRuns(d *testAPI, in string, _, n int) {
	for range n {
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "w@1"}, nil, "X-Holdfast-Workspace", in), 201, "")
	}
}

func appendSome(d *testAPI, in string, from, n int) {
	for i := range n {
		d.want(d.ask("POST", fmt.Sprintf("streams/s%d/events", from+i), `{"events":[{"name":"paid"}]}`, nil, "X-Holdfast-Workspace", in), 201, "")
	}
}

// TestEachWorkspaceHasItsTurn verifies that due work of one workspace gets its turn, however much
// is due in another, and for how long.
func TestEachWorkspaceHasItsTurn(t *testing.T) {
	in := func(w string) []string { return []string{"X-Holdfast-Workspace", w} }
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		for _, w := range []string{"big", "small"} {
			d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil, in(w)...), 200, "")
			d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil, in(w)...), 201, "")
			d.want(d.ask("POST", "workflow-definitions", oneTask("w", "h"), nil, in(w)...), 201, "")
			n := map[string]int{"big": 20, "small": 1}[w]
			startRuns(d, w, 0, n)
			for i := range n {
				d.want(d.ask("POST", "batches", wire.NewBatch{ID: new(fmt.Sprint("b", i)), Wallet: "w", Handler: "h", Parallel: 1000, Items: newItems(1, "x", "y", "z")}, nil, in(w)...), 201, "")
			}
		}
		var order lease.Order
		finder := runengine.Finder{Order: &order}
		var steps []string
		for range 4 { // the last one served comes last
			all, _, err := finder.Find(t.Context(), engine.Of(d.engine), store.Partition{}, []string{"h"}, "worker", 10)
			if err != nil || len(all) < 6 {
				t.Fatalf("claimed %d steps, %v, want at least 6", len(all), err)
			}
			if !slices.ContainsFunc(all[:2], func(l runengine.ClaimedStep) bool { return l.Run.Workspace == "small" }) {
				t.Errorf("small is not among the first two: %s, %s", all[0].Run.Workspace, all[1].Run.Workspace)
			}
			order.Served(all[0].Run.Workspace)
			steps = append(steps, all[0].Run.Workspace)
		}
		if slices.Sort(steps); !slices.Equal(steps, []string{"big", "big", "small", "small"}) {
			t.Errorf("first claimed %q, want two steps of big and two of small", steps)
		}
		taken, err := batchengine.Take(t.Context(), engine.Of(d.engine), batchengine.Ask{Handlers: []string{"h"}, Kind: "worker", Holder: "me", Limit: 1000, All: true,
			Room: lease.NewCapacity(4, func() bool { return false }, nil)})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, x := range taken {
			got[x.Workspace]++
		}
		if got["big"] != 2 || got["small"] == 0 {
			t.Errorf("claimed %v, want 2 of big and at least one of small", got)
		}
	})
}

package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// large is a document close to the maximum size.
var large = json.RawMessage(`{"text":"` + strings.Repeat("x", 1_000_000) + `"}`)

const largeOnes = 12

// pagesOf reads a list to its end, and returns the number of elements per page and the names of the
// elements. It checks that no page exceeds the bound by more than one element.
func (d *testAPI) pagesOf(path string, most int, name func(json.RawMessage) string) (pages []int, names []string) {
	d.t.Helper()
	if !strings.Contains(path, "?") {
		path += "?limit=1000"
	}
	for cursor := ""; ; {
		resp := d.ask("GET", path+cursor, nil, nil)
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			d.t.Fatalf("GET %s: %d %v %.300s", path, resp.StatusCode, err, text)
		}
		if len(text) > store.PageBytes+most+100_000 {
			d.t.Errorf("a page of %s has %d bytes, more than the limit", path, len(text))
		}
		var l wire.List[json.RawMessage]
		if err := json.Unmarshal(text, &l); err != nil {
			d.t.Fatal(err)
		}
		for _, x := range l.Items {
			names = append(names, name(x))
		}
		if pages = append(pages, len(l.Items)); l.Next == nil {
			return pages, names
		}
		if len(l.Items) == 0 {
			d.t.Fatalf("a page of %s is empty but has a next page", path)
		}
		cursor = "&cursor=" + *l.Next
	}
}

// field names an element by its fields.
func field(names ...string) func(json.RawMessage) string {
	return func(x json.RawMessage) string {
		var all map[string]json.RawMessage
		_ = json.Unmarshal(x, &all)
		var parts []string
		for _, n := range names {
			parts = append(parts, strings.Trim(string(all[n]), `"`))
		}
		return strings.Join(parts, "/")
	}
}

// TestAPageIsBoundedByItsBytes verifies that a page of every list with potentially large elements
// ends after 8 MiB plus at most one element, whatever the limit is, and that following next reads
// each element once, in order.
func TestAPageIsBoundedByItsBytes(t *testing.T) {
	some := testlevel.Some(t, []string{"stream", "operations"}) // the others are read in the same way
	for _, k := range []struct {
		kind    string
		name    func(json.RawMessage) string
		most    int // size of an element in bytes
		prepare func(d *testAPI) (path string, names []string)
	}{
		{"stream", field("version"), 1e6, func(d *testAPI) (string, []string) { return "streams/s/events", largeStream(d) }},
		{"stream backward", field("version"), 1e6, func(d *testAPI) (string, []string) {
			all := largeStream(d)
			slices.Reverse(all)
			return "streams/s/events?limit=1000&backward=true", all
		}},
		{"events", field("version"), 1e6, func(d *testAPI) (string, []string) { return "events", largeFeed(d) }},
		{"feed", field("version"), 1e6, func(d *testAPI) (string, []string) { return "feed", largeFeed(d) }},
		{"entities", field("id"), 1e6, func(d *testAPI) (string, []string) {
			all := largeNames("e%02d")
			for _, id := range all {
				d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(id), Data: large}, nil), 201, "")
			}
			return "lifecycles/invoice/entities", all
		}},
		{"operations", field("subject"), 1e6, func(d *testAPI) (path string, all []string) {
			for _, id := range largeNames("e%02d") {
				d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
				var c wire.Claimed
				d.want(d.ask("POST", "lifecycles/invoice/entities/"+id+"/claims", wire.NewClaim{StepKey: "close", Requester: "admin"}, &c), 201, "")
				d.want(d.ask("POST", "claims/"+c.Claim.Token+"/effects", wire.EffectCall{Name: "x"}, nil), 200, "")
				d.want(d.ask("POST", "claims/"+c.Claim.Token+"/effects", wire.EffectCall{Name: "x", Result: large}, nil), 200, "")
				all = append(all, "invoice/"+id)
			}
			return "operations", all
		}},
		{"runs", field("id"), 3e6, func(d *testAPI) (path string, all []string) {
			d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
			d.want(d.ask("POST", "workflow-definitions", json.RawMessage(oneTask("big", "h")), nil), 201, "")
			for range largeOnes {
				all = append(all, d.start("big@1", string(large)).ID)
			}
			slices.Reverse(all)
			return "workflow-runs", all
		}},
		{"steps", field("name"), 2e6, func(d *testAPI) (string, []string) {
			all := largeNames("s%02d")
			d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
			steps := `{"name":"` + strings.Join(all, `","type":"task","handler":"h"},{"name":"`) + `","type":"task","handler":"h"}`
			d.want(d.ask("POST", "workflow-definitions", json.RawMessage(`{"name":"long","version":"1","steps":[`+steps+`]}`), nil), 201, "")
			id := d.start("long@1", `{}`).ID
			for range largeOnes {
				for _, x := range d.claimItems("h", 1) {
					d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, Output: large}, nil), 200, "")
				}
			}
			return "workflow-runs/" + id + "/steps", all
		}},
		{"items", field("key"), 1e6, func(d *testAPI) (string, []string) {
			all := largeNames("i%02d")
			d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
			d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
			d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "h", Parallel: largeOnes, Items: newItems(1, all...)}, nil), 201, "")
			for _, x := range d.claimItems("h", largeOnes) {
				d.want(d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch, Output: large}, nil), 200, "")
			}
			return "batches/b/items", all
		}},
	} {
		t.Run(k.kind, func(t *testing.T) {
			if !slices.Contains(some, k.kind) {
				testlevel.Long(t)
			}
			eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
				path, want := k.prepare(d)
				pages, got := d.pagesOf(path, k.most, k.name)
				if !slices.Equal(got, want) {
					t.Errorf("read %q, want %q", got, want)
				}
				if len(pages) < 2 || pages[0] == largeOnes {
					t.Errorf("%d large elements came in pages of %v, want at least 2 pages", largeOnes, pages)
				}
			}, invoices(nil))
		})
	}
}

func largeNames(format string) (all []string) {
	for i := range largeOnes {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// largeStream appends large events.
func largeStream(d *testAPI) []string {
	for range largeOnes {
		if _, err := stream.Append(d.t.Context(), d.engine, "s", stream.Any, stream.Event{Name: "n", Data: large}); err != nil {
			d.t.Fatal(err)
		}
	}
	return largeNames("%d")
}

// largeFeed is largeStream with positions in the feed.
func largeFeed(d *testAPI) []string {
	d.running()
	all := largeStream(d)
	for {
		_, err := stream.GetFeedCursor(d.t.Context(), d.engine, "s", largeOnes-1)
		if err == nil {
			return all
		}
		if !errors.Is(err, holdfast.ErrNotFound) || clock.Wait(d.t.Context(), 10*time.Millisecond) != nil {
			d.t.Fatal(err)
		}
	}
}

// TestAClaimIsBoundedByItsBytes verifies that a claim of tasks returns at most a page plus the
// tasks that are taken at once, and that it takes no task that it does not return.
func TestAClaimIsBoundedByItsBytes(t *testing.T) {
	testlevel.Long(t)
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const tasks = 20
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}, Handler: "h"}, nil), 201, "")
		for i := range tasks {
			if _, err := stream.Append(t.Context(), d.engine, fmt.Sprint("s", i), stream.Any, stream.Event{Name: "n", Data: large}); err != nil {
				t.Fatal(err)
			}
		}
		seen := make(map[string]bool)
		for _, want := range []int{16, tasks - 16, 0} {
			some := d.claimItems("h", 1000)
			if len(some) != want {
				t.Errorf("claimed %d tasks of 1 MB, want %d", len(some), want)
			}
			for _, x := range some {
				if seen[x.Context.Event.Stream] || x.Attempt != 1 {
					t.Errorf("the event of %s was delivered twice", x.Context.Event.Stream)
				}
				seen[x.Context.Event.Stream] = true
			}
		}
		if len(seen) != tasks {
			t.Errorf("%d of %d tasks were delivered", len(seen), tasks)
		}
	})
}

// TestAClaimOfStreamsIsBoundedByItsBytes verifies that a claim of a reaction's streams returns at
// most a page plus one event per stream, and that each event is shown once, in order.
func TestAClaimOfStreamsIsBoundedByItsBytes(t *testing.T) {
	testlevel.Long(t)
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		for i := range 2 * largeOnes {
			if _, err := stream.Append(t.Context(), d.engine, fmt.Sprint("s", i%2), stream.Any, stream.Event{Name: "n", Data: large}); err != nil {
				t.Fatal(err)
			}
		}
		next := make(map[string]int64)
		for rounds := 0; next["s0"]+next["s1"] < 2*largeOnes; rounds++ {
			var got wire.Leases
			d.want(d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "w", Limit: 1000}, &got), 200, "")
			shown := 0
			var acks []wire.Ack
			for _, l := range got.Leases {
				for _, e := range l.Events {
					if e.Version != next[l.Stream] {
						t.Fatalf("%s shows version %d, want %d", l.Stream, e.Version, next[l.Stream])
					}
					next[l.Stream]++
				}
				shown += len(l.Events)
				acks = append(acks, wire.Ack{Stream: l.Stream, Epoch: l.Epoch, Token: l.Token, Version: next[l.Stream] - 1})
			}
			if shown == 0 || shown > store.PageBytes/len(large)+1+len(got.Leases) {
				t.Fatalf("round %d shows %d events of 1 MB in %d streams", rounds, shown, len(got.Leases))
			}
			d.acks("r", acks...)
		}
	})
}

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/wire"
)

const notDelivered = "NOT_DELIVERED"

// acks acknowledges several leases, and returns the results as "stream status delivered".
func (d *testAPI) acks(reaction string, all ...wire.Ack) (told []string) {
	d.t.Helper()
	var done struct {
		Results []struct {
			Stream, Status string
			Delivered      *int64
		}
	}
	d.want(d.ask("POST", "reactions/"+reaction+"/ack", wire.Acks{Acks: all}, &done), 200, "")
	for _, r := range done.Results {
		one := r.Stream + " " + r.Status
		if r.Delivered != nil {
			one += fmt.Sprint(" ", *r.Delivered)
		}
		told = append(told, one)
	}
	return told
}

func wantResults(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// wantShown claims a stream, checks the versions that the lease shows, and returns the lease.
func (d *testAPI) wantShown(reaction, name string, from, to int64) wire.Lease {
	d.t.Helper()
	all := d.lease(reaction, 1)
	if len(all) != 1 || all[0].Stream != name || len(all[0].Events) == 0 {
		d.t.Fatalf("claimed %+v, want %s from %d to %d", all, name, from, to)
	}
	if shown := all[0].Events; shown[0].Version != from || shown[len(shown)-1].Version != to {
		d.t.Errorf("%s shows events from %d to %d, want %d to %d", name, shown[0].Version, shown[len(shown)-1].Version, from, to)
	}
	return all[0]
}

// TestAnAckGoesNoFurtherThanItsLease verifies that an ack of a version that the lease did not show
// is refused with its own code: because the lease shows a part of a long stream, because the event
// was appended after the claim, or because it does not exist yet. The lease stays valid, can be
// renewed and acknowledged, and every event is shown.
func TestAnAckGoesNoFurtherThanItsLease(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.append("s", 150)
		l := d.wantShown("r", "s", 0, 99)
		for _, beyond := range []int64{100, 149, 150, 1000, 1<<62 + 1} {
			wantResults(t, "of 100 shown", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: beyond}), "s "+notDelivered+" 99")
		}
		d.want(d.ask("POST", "reactions/r/renew", wire.RenewLease{Stream: "s", Epoch: l.Epoch, Token: l.Token, LeaseMs: 120_000}, nil), 200, "")
		wantResults(t, "after a renewal", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 100}), "s "+notDelivered+" 99")
		if more := d.lease("r", 1); len(more) != 0 {
			t.Fatalf("claimed again while leased: %+v", more)
		}
		wantResults(t, "in between", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 40}), "s acked")
		wantResults(t, "under the lease that was ended so", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 99}), "s LEASE_LOST")

		l = d.wantShown("r", "s", 41, 140)
		wantResults(t, "at the last", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 140}), "s acked")
		wantResults(t, "again", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 140}), "s acked")

		l = d.wantShown("r", "s", 141, 149)
		d.append("s", 2)
		d.append("other", 1)
		d.lease("r", 1) // collects the due notices of both
		wantResults(t, "appended after the claim", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 150}), "s "+notDelivered+" 149")
		wantResults(t, "below", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 10}), "s acked")
		l = d.wantShown("r", "s", 141, 151)
		wantResults(t, "the rest", d.acks("r", wire.Ack{Stream: "s", Epoch: l.Epoch, Token: l.Token, Version: 151}), "s acked")
	})
}

// TestAnAckBeyondLeavesTheOthersOfItsCall verifies that refused acks leave the other acks of the
// same call valid, also under an Idempotency-Key, where a repetition returns the same response.
func TestAnAckBeyondLeavesTheOthersOfItsCall(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"n"}}, nil), 201, "")
		held := map[string]wire.Lease{}
		for _, name := range []string{"a", "b", "c", "d"} {
			d.append(name, 2)
			d.want(d.ask("POST", "streams/"+name+"/events", wire.Append{Events: []wire.NewEvent{{Name: "unwanted"}}}, nil), 201, "")
			held[name] = d.wantShown("r", name, 0, 1)
		}
		ack := func(name string, version int64) wire.Ack {
			return wire.Ack{Stream: name, Epoch: held[name].Epoch, Token: held[name].Token, Version: version}
		}
		call := []wire.Ack{ack("a", 1), ack("b", 7), ack("c", 1), ack("d", 0), {Stream: "e", Epoch: 1, Token: held["a"].Token, Version: 9}}
		call[2].Epoch++
		want := []string{"a acked", "b " + notDelivered + " 1", "c LEASE_LOST", "d acked", "e LEASE_LOST"}
		d.header.Set("Idempotency-Key", "k")
		wantResults(t, "under a key", d.acks("r", call...), want...)
		wantResults(t, "replayed", d.acks("r", call...), want...)
		d.header.Del("Idempotency-Key")
		wantResults(t, "again", d.acks("r", call...), want...)
		wantResults(t, "mended", d.acks("r", ack("b", 1), ack("c", 1)), "b acked", "c acked")
		d.wantShown("r", "d", 1, 1)
		if more := d.lease("r", 9); len(more) != 0 {
			t.Errorf("claimed %+v, want none left", more)
		}
	})
}

// TestALateAckIsLostHoweverFarItGoes verifies that a holder that has lost its lease gets
// LEASE_LOST, also for a version that the lease did not show; that versions shown to the next
// holder count only for that one; and that repairs of a leased stream do not change that.
func TestALateAckIsLostHoweverFarItGoes(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
		d.append("s", 120)
		first := d.wantShown("r", "s", 0, 99)
		for _, how := range []string{"unblock", "skip", "reset"} {
			d.want(d.ask("POST", "reactions/r/"+how, `{}`, nil), 200, "")
		}
		wantResults(t, "beside repairs", d.acks("r", wire.Ack{Stream: "s", Epoch: first.Epoch, Token: first.Token, Version: 100}), "s "+notDelivered+" 99")
		holdfasttest.Advance(t, d.engine, 3*time.Minute)
		wantResults(t, "it has run out", d.acks("r", wire.Ack{Stream: "s", Epoch: first.Epoch, Token: first.Token, Version: 119}), "s LEASE_LOST")
		engine.Of(d.engine).Round(context.Background())
		second := d.wantShown("r", "s", 0, 99)
		wantResults(t, "another has it", d.acks("r", wire.Ack{Stream: "s", Epoch: first.Epoch, Token: first.Token, Version: 99}), "s LEASE_LOST")
		wantResults(t, "the other", d.acks("r", wire.Ack{Stream: "s", Epoch: second.Epoch, Token: second.Token, Version: 99}), "s acked")
		third := d.wantShown("r", "s", 100, 119)
		holdfasttest.Advance(t, d.engine, 3*time.Minute)
		d.want(d.ask("POST", "reactions/r/reset", `{}`, nil), 200, "") // the lease has expired, so a reset is allowed
		wantResults(t, "it was reset", d.acks("r", wire.Ack{Stream: "s", Epoch: third.Epoch, Token: third.Token, Version: 119}), "s LEASE_LOST")
		wantResults(t, "the epoch of the repair is nobody's", d.acks("r", wire.Ack{Stream: "s", Epoch: third.Epoch + 1, Token: third.Token, Version: 119}), "s LEASE_LOST")
		fourth := d.wantShown("r", "s", 0, 99)
		wantResults(t, "what was shown before the reset", d.acks("r", wire.Ack{Stream: "s", Epoch: fourth.Epoch, Token: fourth.Token, Version: 119}), "s "+notDelivered+" 99")
	})
}

// TestATaskThatWasNotGivenOutCannotBeEnded verifies that a worker that names a later event of its
// leased stream can neither complete nor fail nor renew it, and that its own task stays valid.
func TestATaskThatWasNotGivenOutCannotBeEnded(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Mail", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil), 201, "")
		retries, block := 0, false
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"n"}, Handler: "Mail", MaxRetries: &retries, BlockOnError: &block}, nil), 201, "")
		d.append("s", 4)
		for version := range int64(4) {
			task := d.one("Mail")
			if task.Context.Event.Version != version {
				t.Fatalf("claimed %+v, want version %d", task.Context.Event, version)
			}
			for later := version + 1; later < 4; later++ {
				id := lease.ID("rct_", "mail", "s", fmt.Sprint(later), "0")
				_, signature, _ := strings.Cut(task.ID, ".")
				for id, refusal := range map[string]fault.Code{id: fault.NotFound, id + "." + signature: fault.LeaseLost} {
					status := map[fault.Code]int{fault.NotFound: 404, fault.LeaseLost: 409}[refusal]
					d.want(d.ask("POST", "tasks/"+id+"/complete", wire.CompleteTask{Epoch: task.Epoch}, nil), status, refusal)
					d.want(d.ask("POST", "tasks/"+id+"/fail", wire.FailTask{Epoch: task.Epoch, Message: "no"}, nil), status, refusal)
					d.want(d.ask("POST", "tasks/"+id+"/renew", wire.Renew{Epoch: task.Epoch}, nil), status, refusal)
				}
			}
			d.want(d.ask("POST", "tasks/"+task.ID+"/complete", wire.CompleteTask{Epoch: task.Epoch}, nil), 200, "")
		}
	})
}

// TestAnAckWaitsForItsRow verifies on PostgreSQL that an ack whose row is locked for a moment, as
// by the collection of due notices under plain appends, waits and succeeds, with and without a key,
// and that other acks do not wait.
func TestAnAckWaitsForItsRow(t *testing.T) {
	t.Parallel()
	url := holdfasttest.PostgreSQL(t)
	d := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(url)), httpapi.Options{NoKeys: true})
	d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"*"}}, nil), 201, "")
	for _, key := range []string{"", "k"} {
		d.append("s", 1)
		d.append("t", 1)
		var acks []wire.Ack
		for _, l := range d.lease("r", 2) {
			acks = append(acks, wire.Ack{Stream: l.Stream, Epoch: l.Epoch, Token: l.Token, Version: l.Events[0].Version})
		}
		var done wire.Acked
		headers := []string{"Idempotency-Key", key}
		if key == "" {
			headers = nil
		}
		storetest.Queue(t, url, `SELECT 1 FROM holdfast.follow WHERE stream = 's' FOR UPDATE`, nil, func() {
			if at := d.position("r", "t"); key == "" && at.LeasedBy != "" {
				t.Errorf("position %+v is leased, want it free", at)
			}
		}, func() error {
			if resp := d.ask("POST", "reactions/r/ack", wire.Acks{Acks: acks}, &done, headers...); resp.StatusCode != 200 {
				return errors.New(textOf(resp))
			}
			return nil
		})
		if len(done.Results) != 2 || done.Results[0].Status != "acked" || done.Results[1].Status != "acked" {
			t.Errorf("got %+v, want both acked", done)
		}
	}
}

// TestAnOldDefinitionTakesNothing verifies that a claim by hand with a definition that was replaced
// meanwhile takes nothing: by the old definition it would not show the events that the new one
// selects, and would acknowledge them unseen.
func TestAnOldDefinitionTakesNothing(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"a"}}, nil), 201, "")
		old, err := reactions.Get(t.Context(), engine.Of(d.engine), "r")
		if err != nil {
			t.Fatal(err)
		}
		d.want(d.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"a", "b"}}, nil), 200, "")
		d.want(d.ask("POST", "streams/s/events", map[string]any{"events": []any{map[string]any{"name": "b", "data": map[string]any{}}}}, nil), 201, "")
		ask := reactions.Ask{Reactions: []reactions.Info{old}, Holder: "me", Limit: 10, Lease: time.Minute, Events: 100}
		if taken, err := reactions.TakeAsked(t.Context(), engine.Of(d.engine), ask); err != nil || len(taken) != 0 {
			t.Errorf("claimed %+v, %v, want nothing", taken, err)
		}
		var got wire.Leases
		d.want(d.ask("POST", "reactions/r/claim", wire.ClaimLeases{By: "me"}, &got), 200, "")
		if len(got.Leases) != 1 || len(got.Leases[0].Events) != 1 {
			t.Errorf("got leases %+v, want one with one event", got.Leases)
		}
	})
}

package httpapi_test

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// TestAStreamIsEndedByWhoWasGivenIt verifies that a stream claimed by hand is acknowledged, failed
// and renewed only with the token that it was handed out with: not with that of another stream,
// reaction, epoch or workspace, nor with a forged one.
func TestAStreamIsEndedByWhoWasGivenIt(t *testing.T) {
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		_, admin := d.newKey("default", keys.Admin, 0)
		_, text := d.newKey("default", keys.Worker, 0)
		_, thief := d.newKey("default", keys.Worker, 0)
		_, else1 := d.newKey("other", keys.Admin, 0)
		d = d.as(admin)
		w, other := d.as(text), d.as(else1)
		for _, in := range []*testAPI{d, other} {
			for _, name := range []string{"r", "q"} {
				in.want(in.ask("PUT", "reactions/"+name, wire.PutReaction{Events: []string{"n"}}, nil), 201, "")
			}
			for _, name := range []string{"s", "x"} {
				in.append(name, 2)
			}
		}
		lease := func(d *testAPI, reaction, stream string) wire.Lease {
			t.Helper()
			for _, l := range d.lease(reaction, 2) {
				if l.Stream == stream {
					return l
				}
			}
			t.Fatalf("stream %s was not claimed", stream)
			return wire.Lease{}
		}
		first := lease(w, "r", "s")
		d.want(d.ask("POST", "reactions/r/fail", wire.FailLease{Stream: "s", Epoch: first.Epoch, Token: first.Token, Message: "no"}, nil), 200, "")
		holdfasttest.Advance(t, d.engine, time.Hour)
		mine, of := lease(w, "r", "s"), lease(w, "q", "s")
		theirs := lease(other, "r", "s")
		for name, token := range map[string]string{"made up": "lse_AAAAAAAAAAAAAAAAAAAAAA", "of an epoch before": first.Token, "of another reaction": of.Token,
			"of another workspace": theirs.Token, "longer": mine.Token + "A", "shorter": mine.Token[:max(len(mine.Token)-1, 0)]} {
			m := d.as(thief)
			if resp := m.ask("POST", "reactions/r/renew", wire.RenewLease{Stream: "s", Epoch: mine.Epoch, Token: token}, nil); resp.StatusCode != 409 {
				t.Errorf("renew with token %s: got status %d %s, want 409", name, resp.StatusCode, textOf(resp))
			}
			if resp := m.ask("POST", "reactions/r/fail", wire.FailLease{Stream: "s", Epoch: mine.Epoch, Token: token, Message: "no"}, nil); resp.StatusCode != 409 {
				t.Errorf("fail with token %s: got status %d %s, want 409", name, resp.StatusCode, textOf(resp))
			}
			if told := m.ack("r", wire.Lease{Stream: "s", Epoch: mine.Epoch, Token: token}, 1); told != string(fault.LeaseLost) {
				t.Errorf("ack with token %s: got %s, want LEASE_LOST", name, told)
			}
		}
		for path, body := range map[string]any{"ack": wire.Acks{Acks: []wire.Ack{{Stream: "s", Epoch: mine.Epoch, Version: 1}}},
			"fail": wire.FailLease{Stream: "s", Epoch: mine.Epoch, Message: "no"}, "renew": wire.RenewLease{Stream: "s", Epoch: mine.Epoch}} {
			want := "/token"
			if path == "ack" {
				want = "/acks/0/token"
			}
			if p := d.want(d.ask("POST", "reactions/r/"+path, body, nil), 400, fault.Validation); p.Fields["pointer"] != want {
				t.Errorf("%s without a token: got problem pointer %v", path, p.Fields["pointer"])
			}
		}
		if p := d.position("r", "s"); p.Watermark != -1 || p.LeasedBy == "" || p.Retry != 1 {
			t.Errorf("got position %+v, want it leased with watermark -1 and retry 1", p)
		}
		// A refused one leaves the others of its call valid.
		var done wire.Acked
		x := wire.Ack{Stream: "x", Epoch: 1, Token: mine.Token}
		w.want(w.ask("POST", "reactions/r/ack", wire.Acks{Acks: []wire.Ack{x, {Stream: "s", Epoch: mine.Epoch, Token: mine.Token, Version: 1}}}, &done), 200, "")
		if len(done.Results) != 2 || done.Results[0].Status != string(fault.LeaseLost) || done.Results[1].Status != "acked" || done.Results[1].Stream != "s" {
			t.Errorf("got %+v, want one lost and one acked", done)
		}
		if p := d.position("r", "s"); p.Watermark != 1 {
			t.Errorf("got position %+v, want watermark 1", p)
		}
	})
}

// TestAProgramsReactionIsNotTakenByHand verifies that a reaction that a Go program serves can be
// neither claimed nor ended by hand, on a node with the program and on one without, also after it
// was put over HTTP, and that the program's commits stay.
func TestAProgramsReactionIsNotTakenByHand(t *testing.T) {
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			begun, let := make(chan struct{}, 10), make(chan struct{})
			react := stream.React("prog", stream.Select{Events: []string{"n"}}, func(ctx context.Context, d *stream.Delivery) error {
				begun <- struct{}{}
				<-let
				d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
					_, err := stream.Append(ctx, tx, "paid", stream.Any, stream.Event{Name: "booked"})
					return err
				})
				return nil
			}, stream.Options{})
			db := open(t)
			with := newTestAPI(t, holdfasttest.OpenOn(t, db, react, stream.Feed(stream.FeedOptions{})), elsewhere)
			without := newTestAPI(t, holdfasttest.OpenOn(t, db, stream.Feed(stream.FeedOptions{})), elsewhere)
			put := wire.PutReaction{Events: []string{"n"}}
			with.want(with.ask("PUT", "reactions/prog", put, nil, "X-Holdfast-Workspace", "other"), 201, "")
			testkit.Run(t, with.engine)
			free := sync.OnceFunc(func() { close(let) })
			t.Cleanup(free) // before the engine closes, which waits for the body
			with.append("s", 1)
			<-begun
			retries := 7
			for _, put.MaxRetries = range []*int{nil, nil, &retries} {
				var now wire.Reaction
				without.want(without.ask("PUT", "reactions/prog", put, &now), 200, "")
				if !now.Program {
					t.Errorf("put %+v, want program set", now)
				}
				for _, d := range []*testAPI{with, without} {
					d.want(d.ask("POST", "reactions/prog/claim", wire.ClaimLeases{By: "thief"}, nil), 409, fault.Conflict)
					for place := range int64(16) { // a stream's epochs begin with its partition
						epoch, token := place<<32+1, "lse_AAAAAAAAAAAAAAAAAAAAAA"
						var acked wire.Acked
						d.want(d.ask("POST", "reactions/prog/ack", wire.Acks{Acks: []wire.Ack{{Stream: "s", Epoch: epoch, Token: token}}}, &acked), 200, "")
						if acked.Results[0].Status != string(fault.LeaseLost) {
							t.Errorf("got %+v, want LEASE_LOST", acked)
						}
						d.want(d.ask("POST", "reactions/prog/fail", wire.FailLease{Stream: "s", Epoch: epoch, Token: token, Message: "no"}, nil), 409, fault.LeaseLost)
						d.want(d.ask("POST", "reactions/prog/renew", wire.RenewLease{Stream: "s", Epoch: epoch, Token: token}, nil), 409, fault.LeaseLost)
					}
				}
			}
			with.want(with.ask("POST", "reactions/prog/claim", wire.ClaimLeases{By: "thief"}, nil, "X-Holdfast-Workspace", "other"), 409, fault.Conflict) // it is served there, too
			free()
			with.awaitPosition(wire.CreatedWebhook{Webhook: wire.Webhook{Reaction: "prog"}}, "s", "is acknowledged", func(p wire.Position) bool { return p.Watermark == 0 })
			var paid wire.List[wire.Event]
			with.want(with.ask("GET", "streams/paid/events", nil, &paid), 200, "")
			if len(paid.Items) != 1 {
				t.Errorf("got events %+v of the program, want one", paid.Items)
			}
			// The program does not serve another selection.
			put.Events = []string{"m"}
			without.want(without.ask("PUT", "reactions/prog", put, nil), 200, "")
			with.want(with.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "m"}}}, nil), 201, "")
			if got := with.lease("prog", 1); len(got) != 1 {
				t.Errorf("claimed %+v, want one lease", got)
			}
		})
	}
}

// TestANodeThatCannotSignIsNotReady verifies that a node is not ready if its database has lost the
// key that signs task ids and stream tokens, before anything is claimed.
func TestANodeThatCannotSignIsNotReady(t *testing.T) {
	pg := func(t *testing.T, url, value string) error {
		return pgtest.Exec(context.WithoutCancel(t.Context()), url, `UPDATE holdfast.secret SET value = `+value)
	}
	lite := func(t *testing.T, path, value string) error {
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec(`UPDATE holdfast_secret SET value = ` + value)
		return err
	}
	for name, on := range map[string]struct {
		where       func(testing.TB) string
		set         func(t *testing.T, where, value string) error
		short, good string
	}{
		"sqlite":   {holdfasttest.SQLite, lite, `x'00'`, `randomblob(32)`},
		"postgres": {holdfasttest.PostgreSQL, pg, `'\x00'`, `uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())`},
	} {
		t.Run(name, func(t *testing.T) {
			where := on.where(t)
			d := newTestAPI(t, holdfasttest.OpenOn(t, holdfasttest.At(where)), elsewhere)
			if err := on.set(t, where, on.short); err != nil {
				t.Fatal(err)
			}
			ready := func() (int, string) {
				resp, err := http.Get(d.url + "/readyz")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				return resp.StatusCode, textOf(resp)
			}
			status, text := ready()
			if err := on.set(t, where, on.good); err != nil { // the next test uses this database, too
				t.Fatal(err)
			}
			if status != 503 || !strings.Contains(text, string(fault.DatabaseDamaged)) {
				t.Errorf("got status %d %s, want 503 DATABASE_DAMAGED", status, text)
			}
			if status, text := ready(); status != 200 {
				t.Errorf("after the repair: got status %d %s, want 200", status, text)
			}
		})
	}
}

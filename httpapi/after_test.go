package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

const tellReaction = "$after:note:Tell"

// sendNotes sends notes, each followed by the after-effect Tell.
func (d *testAPI) sendNotes(ids ...string) {
	d.t.Helper()
	for _, id := range ids {
		d.want(d.ask("POST", "lifecycles/note/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/note/entities/"+id+"/steps/send", wire.Fire{Requester: "admin"}, nil), 200, "")
	}
}

// advance advances the database's time and wakes the nodes.
func (d *testAPI) advance(by time.Duration) {
	d.t.Helper()
	holdfasttest.Advance(d.t, d.engine, by)
	engine.Of(d.engine).Hub().Wake([]string{store.DueTopic(tellReaction)})
}

// awaitAfterEffect waits until the position of a note's after-effect satisfies so.
func (d *testAPI) awaitAfterEffect(id, what string, so func(wire.Position) bool) wire.Position {
	d.t.Helper()
	return d.awaitPosition(wire.CreatedWebhook{Webhook: wire.Webhook{Reaction: tellReaction}}, "$entity/note/"+id, what, func(p wire.Position) bool { return p.LeasedBy == "" && so(p) })
}

// wantRepaired repairs the after-effect of notes.
func (d *testAPI) wantRepaired(how, reaction string, body any, ids ...string) {
	d.t.Helper()
	var done wire.Repaired
	d.want(d.ask("POST", "reactions/"+reaction+"/"+how, body, &done), 200, "")
	var got []string
	for _, s := range done.Streams {
		got = append(got, strings.TrimPrefix(s, "$entity/note/"))
	}
	if len(done.Held) > 0 || !slices.Equal(got, ids) {
		d.t.Errorf("%s changed %q, held %q, want %q", how, got, done.Held, ids)
	}
}

// wantMetrics fails unless the metrics contain the lines.
func (d *testAPI) wantMetrics(lines ...string) {
	d.t.Helper()
	resp, err := http.Get(d.url + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	page := textOf(resp)
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") {
			d.t.Errorf("the metrics lack %s", line)
		}
	}
}

// serveTell declares a URL as the handler of the after-effect Tell.
func (d *testAPI) serveTell(config string) *remote {
	d.t.Helper()
	d.running()
	far := &remote{status: 200, heard: make(chan struct{}, 100)}
	srv := httptest.NewServer(far)
	d.t.Cleanup(srv.Close)
	var made wire.Handler
	d.want(d.ask("PUT", "handlers/Tell", wire.PutHandler{Kind: "http", URL: srv.URL}, &made), 201, "")
	far.secret = made.Secret
	d.want(d.ask("PUT", "lifecycles/note", config, nil), 201, "")
	return far
}

// TestAURLOfAnAfterEffectIsOutOfOrder verifies that an after-effect whose URL is out of order in
// any way, including 4xx, for longer than a reaction is retried, is retried under the same key
// until it is delivered.
func TestAURLOfAnAfterEffectIsOutOfOrder(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		far := d.serveTell(tellConfig)
		answers := []int{404, 500, 403, 0, 422, 401, 429, 200}
		far.say(answers[0], "")
		d.sendNotes("n")
		for i := range answers {
			c := far.next(t)
			if c.Attempt != i+1 || c.IdempotencyKey != far.calls[0].IdempotencyKey {
				t.Errorf("call %d is %+v, want the next attempt under the same idempotency key", i, c)
			}
			if i == len(answers)-1 {
				break
			}
			p := d.awaitAfterEffect("n", "has failed", func(p wire.Position) bool { return p.Retry == i+1 })
			if p.Blocked || p.Error == "" {
				t.Fatalf("after status %d the position is %+v, want it unblocked with an error", answers[i], p)
			}
			far.say(answers[i+1], "")
			d.advance(20 * time.Minute)
		}
		d.awaitAfterEffect("n", "is delivered", func(p wire.Position) bool { return p.Watermark == p.Head && p.Retry == 0 })
	})
}

// TestARefusalThatBlocksAnAfterEffect verifies that a config can make a 4xx block immediately,
// except those that ask for a retry; that a blocked after-effect is listed and can be unblocked;
// and that metrics count both.
func TestARefusalThatBlocksAnAfterEffect(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		far := d.serveTell(strings.Replace(tellConfig, `"steps"`, `"after_effects": {"Tell": {"on_refusal": "block"}}, "steps"`, 1))
		far.say(429, "")
		d.sendNotes("n")
		first := far.next(t)
		d.awaitAfterEffect("n", "has failed", func(p wire.Position) bool { return p.Retry == 1 && !p.Blocked })
		for i, status := range []int{404, 422} {
			far.say(status, "")
			d.advance(20 * time.Minute)
			far.next(t)
			d.awaitAfterEffect("n", "is blocked", func(p wire.Position) bool { return p.Blocked })
			var all wire.List[wire.Position]
			d.want(d.ask("GET", "reactions/*/streams?blocked=true", nil, &all), 200, "")
			if len(all.Items) != 1 || all.Items[0].Reaction != tellReaction || all.Items[0].Error == "" {
				t.Errorf("listed blocked positions %+v, want one with an error", all.Items)
			}
			if i == 1 {
				far.say(200, "")
			}
			d.wantRepaired("unblock", tellReaction, wire.Repair{Streams: []string{"$entity/note/n"}}, "n")
			if i == 0 {
				far.next(t) // it is refused again
				d.awaitAfterEffect("n", "is blocked", func(p wire.Position) bool { return p.Blocked })
				d.wantRepaired("unblock", "*", `{}`, "n")
				far.next(t)
				d.awaitAfterEffect("n", "is blocked", func(p wire.Position) bool { return p.Blocked })
				far.say(422, "")
				d.wantRepaired("unblock", tellReaction, `{}`, "n")
			}
		}
		if c := far.next(t); c.IdempotencyKey != first.IdempotencyKey {
			t.Errorf("first call had idempotency key %q, second had %q, want the same", first.IdempotencyKey, c.IdempotencyKey)
		}
		d.awaitAfterEffect("n", "is delivered", func(p wire.Position) bool { return p.Watermark == p.Head })
		d.wantMetrics(`holdfast_reaction_streams_total{kind="afterEffect",what="blocked"} 4`, `holdfast_reaction_streams_total{kind="afterEffect",what="unblocked"} 4`)
	})
}

// TestAWorkersAfterEffectIsReleased verifies that an after-effect by workers is retried for longer
// than a reaction; that a worker can block it as non-retryable; that it is listed like a reaction,
// can be skipped, so that the next one continues, and reset as a new operation; and that it can be
// neither changed nor deleted over the API.
func TestAWorkersAfterEffectIsReleased(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Tell", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/note", tellConfig, nil), 201, "")
		d.sendNotes("a")
		fail := func(retryable bool, status string) wire.Task {
			t.Helper()
			x := d.one("Tell")
			var ended wire.EndedTask
			d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no mail", Retryable: &retryable}, &ended), 200, "")
			if ended.Status != status {
				t.Fatalf("attempt %d ended as %+v, want status %s", x.Attempt, ended, status)
			}
			return x
		}
		for range 6 {
			fail(true, "failed")
			d.advance(10 * time.Minute)
		}
		first := fail(false, "blocked")
		var list wire.List[wire.Reaction]
		d.want(d.ask("GET", "reactions", nil, &list), 200, "")
		if len(list.Items) != 1 || list.Items[0].Name != tellReaction || list.Items[0].Handler != "Tell" || list.Items[0].MaxRetries < 500 {
			t.Errorf("listed reactions %+v", list.Items)
		}
		d.want(d.ask("PUT", "reactions/"+tellReaction, wire.PutReaction{Events: []string{"*"}}, nil), 400, fault.Validation)
		d.want(d.ask("DELETE", "reactions/"+tellReaction, nil, nil), 404, fault.NotFound)
		d.wantRepaired("reset", "*", `{}`) // would send again what was sent
		d.wantRepaired("unblock", tellReaction, `{}`, "a")
		if again := d.one("Tell"); again.IdempotencyKey != first.IdempotencyKey {
			t.Errorf("first attempt had idempotency key %q, second had %q, want the same", first.IdempotencyKey, again.IdempotencyKey)
		} else {
			d.want(d.ask("POST", "tasks/"+again.ID+"/complete", wire.CompleteTask{Epoch: again.Epoch}, nil), 200, "")
		}
		d.sendNotes("b")
		fail(false, "blocked")
		d.wantRepaired("skip", tellReaction, wire.Repair{Filter: &wire.RepairFilter{Stream: "/b$"}}, "b")
		if more := d.claim("Tell", 0); len(more) > 0 {
			t.Errorf("claimed %+v, want nothing: it was skipped", more)
		}
		d.wantRepaired("reset", tellReaction, wire.Repair{Streams: []string{"$entity/note/a"}}, "a")
		if anew := d.one("Tell"); anew.Context.Entity.ID != "a" || anew.IdempotencyKey == first.IdempotencyKey {
			t.Errorf("claimed %+v after a reset, want entity a under a new idempotency key", anew)
		}
		d.wantMetrics(`holdfast_reaction_streams_total{kind="afterEffect",what="blocked"} 2`, `holdfast_reaction_streams_total{kind="afterEffect",what="skipped"} 1`,
			`holdfast_reaction_streams_total{kind="afterEffect",what="reset"} 1`)
	})
}

// TestAWorkersAfterEffectThatKills verifies that an after-effect that crashes its workers is
// blocked, and that skipping it skips exactly the event that crashed them, and not an earlier one.
func TestAWorkersAfterEffectThatKills(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "handlers/Tell", wire.PutHandler{Kind: "worker"}, nil), 201, "")
		d.want(d.ask("PUT", "lifecycles/note", tellConfig, nil), 201, "")
		d.sendNotes("a")
		for i := range 5 {
			x := d.one("Tell")
			if x.Attempt != i+1 {
				t.Errorf("claimed %+v, want the next attempt", x)
			}
			d.want(d.ask("POST", "tasks/"+x.ID+"/renew", wire.Renew{Epoch: x.Epoch}, nil), 200, "") // the worker was heard of
			d.advance(2 * time.Minute)
			engine.Of(d.engine).Round(t.Context())
		}
		p := d.awaitAfterEffect("a", "is blocked", func(p wire.Position) bool { return p.Blocked })
		if p.Deaths != 5 || p.Watermark != p.Head-1 {
			t.Errorf("got position %+v, want 5 deaths and the last event outstanding", p)
		}
		d.wantRepaired("skip", tellReaction, `{}`, "a")
		if more := d.claim("Tell", 0); len(more) > 0 {
			t.Errorf("claimed %+v, want nothing: it was skipped", more)
		}
		d.wantMetrics(fmt.Sprintf(`holdfast_reaction_streams_total{kind="afterEffect",what="blocked"} %d`, 1))
	})
}

// TestAnUncertainStepHasNoAfterEffect verifies that a step that a worker completes while one of its
// effects is unknown has no after-effect until it is resolved as a success, and then has one.
func TestAnUncertainStepHasNoAfterEffect(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		for _, name := range []string{"Do", "Tell"} {
			d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker", Safety: "journaled"}, nil), 201, "")
		}
		d.want(d.ask("PUT", "lifecycles/job", strings.Replace(jobConfig, `"action": "Do"`, `"action": "Do", "success_after_effect": "Tell"`, 1), nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities", wire.NewEntity{ID: new("j")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		x := d.one("Do")
		d.want(d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Epoch: x.Epoch, Name: "card"}, nil), 200, "")
		if resp := d.ask("POST", "tasks/"+x.ID+"/complete", wire.CompleteTask{Epoch: x.Epoch}, nil); resp.StatusCode < 300 {
			t.Fatalf("complete succeeded: %s", textOf(resp))
		}
		if got := d.claim("Tell", 0); len(got) != 0 {
			t.Errorf("claimed an after-effect of an unfinished step: %+v", got)
		}
		o := d.allUncertain(1)[0]
		d.want(d.ask("POST", "operations/"+o.ID+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "card", Happened: new(true)}}, Outcome: "success"}, nil), 200, "")
		tell := d.one("Tell")
		d.want(d.ask("POST", "tasks/"+tell.ID+"/complete", wire.CompleteTask{Epoch: tell.Epoch}, nil), 200, "")
		if got := d.claim("Tell", 0); len(got) != 0 {
			t.Errorf("claimed the after-effect again: %+v", got)
		}
	})
}

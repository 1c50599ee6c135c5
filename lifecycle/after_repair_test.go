package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
)

const mailOfPost = "$after:after:Mail"

// positions are where the after-effect Mail stands.
func (p *fxPost) positions() []stream.Position {
	p.Helper()
	all, err := holdfast.Collect(stream.ListPositions(context.Background(), p.e, stream.PositionFilter{Reaction: mailOfPost}))
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// until runs the engine until every position of the after-effect Mail is so.
func (p *fxPost) until(what string, so func(stream.Position) bool) {
	p.Helper()
	p.running(func() {
		p.Helper()
		testkit.Eventually(p, what, func() bool {
			all := p.positions()
			return len(all) >= len(p.fired) && !slices.ContainsFunc(all, func(at stream.Position) bool { return at.Holder != "" || !so(at) })
		})
	})
}

func (p *fxPost) fail(handler string, times int, ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.fails[id+"/"+handler] = times
	}
}

func (p *fxPost) fireAll(step, as string, ids ...string) {
	p.Helper()
	for _, id := range ids {
		p.fired[id] = true
		if _, err := p.l.Fire(p.Context(), p.e, id, step, as); err != nil {
			p.Fatal(err)
		}
	}
}

// TestAMailServiceThatIsDownForTwoHours verifies that after-effects that fail for two hours of database time
// are never blocked, are retried during that time, and are all delivered once the service is back. Their
// writes are applied once.
func TestAMailServiceThatIsDownForTwoHours(t *testing.T) {
	fxPosts(t, func(p *fxPost) {
		all := ids("m", 8)
		p.create(all...)
		p.fail("Mail", 1_000_000, all...)
		p.fireAll("close", "admin", all...)
		for n := range 13 { // the first is at once
			if n > 0 {
				holdfasttest.Advance(p, p.e, 10*time.Minute)
			}
			p.until(fmt.Sprintf("each was tried %d times", n+1), func(at stream.Position) bool {
				if at.Blocked {
					p.Fatalf("%s is blocked after %d failures", at.Stream, at.Failures)
				}
				return at.Failures > n
			})
		}
		p.fail("Mail", 0, all...)
		holdfasttest.Advance(p, p.e, 5*time.Minute)
		p.waitFor(len(all))
		p.until("nothing is left", func(at stream.Position) bool { return at.Watermark == at.Due })
		want := ids("m", 8)
		for i := range want {
			want[i] += "/Mail"
		}
		if got := p.credits(); !slices.Equal(got, want) {
			p.Errorf("got credits %q, want %q", got, want)
		}
		keys := make(map[string]bool)
		for _, d := range p.got() {
			keys[d] = true
		}
		if len(keys) != len(all) {
			p.Errorf("got %d distinct keys, want %d: %v", len(keys), len(all), keys)
		}
	})
}

// TestTheDefaultPolicySurvivesADay verifies that the shortest that the default policy can
// take, with every pause cut in half by jitter, is longer than a day.
func TestTheDefaultPolicySurvivesADay(t *testing.T) {
	fxPosts(t, func(p *fxPost) {
		x, err := reactions.Get(p.Context(), engine.Of(p.e), mailOfPost)
		if err != nil {
			p.Fatal(err)
		}
		b := x.Options.Backoff
		b.Steady = true
		var shortest time.Duration
		for n := range x.Options.MaxRetries {
			shortest += b.Pause(n+1) / 2
		}
		if shortest < 24*time.Hour || b.Max > 5*time.Minute {
			p.Errorf("blocks after %v at the earliest, with pauses of at most %v, want at least a day and at most 5m", shortest, b.Max)
		}
	})
}

// TestABlockedAfterEffectIsReleased verifies that a blocked after-effect is listed with its error; that
// unblocking delivers it under the same operation; that skipping continues with the next event; that a reset
// delivers all events again as another operation; that a repair of all reactions unblocks
// after-effects and resets none; and that Holdfast's own reactions cannot be repaired.
func TestABlockedAfterEffectIsReleased(t *testing.T) {
	fxPosts(t, func(p *fxPost) {
		history := func(id string) string { return entities.Stream("after", id) }
		p.mu.Lock()
		p.failure = holdfast.NonRetryable(errFx)
		p.mu.Unlock()
		all := []string{"again", "also", "passed"}
		p.create(append(all, "done")...)
		p.fail("Mail", 1, all...)
		p.fireAll("close", "admin", append(all, "done")...)
		p.until("all but one are blocked", func(at stream.Position) bool {
			return at.Blocked || at.Stream == history("done") && at.Watermark == at.Due
		})
		yes := true
		blocked, err := holdfast.Collect(stream.ListPositions(p.Context(), p.e, stream.PositionFilter{Blocked: &yes}))
		if err != nil || len(blocked) != len(all) || blocked[0].Reaction != mailOfPost || !strings.Contains(blocked[0].Error, errFx.Error()) {
			p.Fatalf("got blocked positions %+v, %v", blocked, err)
		}
		p.fireAll("archive", "admin", "passed", "also")
		repair := func(f func(context.Context, holdfast.Doer, string, stream.PositionFilter, ...stream.ActorOption) (stream.RepairResult, error), reaction string, by stream.PositionFilter, want ...string) {
			p.Helper()
			done, err := f(p.Context(), p.e, reaction, by)
			var got []string
			for _, at := range done.Repaired {
				got = append(got, strings.TrimPrefix(at.Stream, history("")))
			}
			if err != nil || len(done.Leased) > 0 || !slices.Equal(got, want) {
				p.Errorf("repaired %q, %v, want %q", got, err, want)
			}
		}
		repair(stream.Unblock, mailOfPost, stream.PositionFilter{Streams: []string{history("again")}}, "again")
		repair(stream.Skip, mailOfPost, stream.PositionFilter{Pattern: "passed$"}, "passed")
		repair(stream.Unblock, "*", stream.PositionFilter{}, "also")
		p.until("nothing is left", func(at stream.Position) bool { return at.Watermark == at.Due })
		want := []string{"again/Mail", "also/Mail", "also/Mail", "done/Mail", "passed/Mail"}
		if got := p.credits(); !slices.Equal(got, want) {
			p.Errorf("got credits %q, want %q", got, want)
		}
		repair(stream.Reset, "*", stream.PositionFilter{})
		repair(stream.Reset, mailOfPost, stream.PositionFilter{Streams: []string{history("done")}}, "done")
		p.until("nothing is left", func(at stream.Position) bool { return at.Watermark == at.Due })
		operation := p.operation("done")
		if got := slices.DeleteFunc(p.got(), func(d string) bool { return !strings.Contains(d, "of done ") }); !slices.Equal(got,
			[]string{"Mail close of done by admin: " + operation, "Mail close of done by admin: " + operation + "/1"}) {
			p.Errorf("got deliveries %q", got)
		}
		var names []string
		kept, err := holdfast.Collect(stream.Read(p.Context(), p.e, reactions.Stream(mailOfPost, history("passed")), 0))
		for _, e := range kept {
			names = append(names, e.Name)
		}
		if err != nil || !slices.Equal(names, []string{"blocked", "skipped"}) {
			p.Errorf("history of the skipped delivery is %q, %v, want blocked and skipped", names, err)
		}
		if _, err := stream.Unblock(p.Context(), p.e, "$feed", stream.PositionFilter{}); !errors.Is(err, fault.Of(fault.Forbidden)) {
			p.Errorf("unblock of the feed: got %v, want FORBIDDEN", err)
		}
	})
}

// TestATimeoutOfAnAfterEffect verifies that an after-effect that exceeds its timeout has failed and is
// retried like any failure. It does not count as a crash.
func TestATimeoutOfAnAfterEffect(t *testing.T) {
	fxEach(t, func(w *fxWorld) {
		p := newFxPost(w, lifecycle.Timeout(time.Millisecond))
		p.hangs = true
		if err := p.l.Register(w.Context(), w.e); err != nil {
			w.Fatal(err)
		}
		p.create("slow")
		p.fireAll("close", "admin", "slow")
		p.until("it has failed", func(at stream.Position) bool { return at.Failures > 0 && at.Crashes == 0 })
	})
}

// TestARetryPolicy verifies that a program and a config set how often an after-effect is delivered and with
// which delays, and that invalid policies are refused at the start.
func TestARetryPolicy(t *testing.T) {
	policy := holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Minute, MaxBackoff: time.Hour}
	const config = `"after_effects": {"Mail": {"max_attempts": 2, "backoff": "1m", "max_backoff": "1h"}}, "steps"`
	for name, made := range map[string]func(*fxWorld) *fxPost{
		"program": func(w *fxWorld) *fxPost { return newFxPost(w, lifecycle.WithRetry(policy)) },
		"config":  func(w *fxWorld) *fxPost { return newFxPostOf(w, strings.Replace(fxAfterConfig, `"steps"`, config, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			fxEach(t, func(w *fxWorld) {
				p := made(w)
				if err := p.l.Register(w.Context(), w.e); err != nil {
					w.Fatal(err)
				}
				p.create("bad")
				p.fail("Mail", 2, "bad")
				p.fireAll("close", "admin", "bad")
				p.until("it has failed", func(at stream.Position) bool { return at.Failures == 1 && !at.Blocked })
				holdfasttest.Advance(p, p.e, time.Minute)
				p.until("it is blocked", func(at stream.Position) bool { return at.Failures == 2 && at.Blocked })
				x, err := reactions.Get(p.Context(), engine.Of(p.e), mailOfPost)
				if b := x.Options.Backoff; err != nil || b.Base != time.Minute || b.Max != time.Hour || b.Kind != "exponential" {
					p.Errorf("got backoff %+v, %v", b, err)
				}
			})
		})
	}
	t.Run("refused", func(t *testing.T) {
		act := func(context.Context, *lifecycle.Act[bill]) error { return nil }
		fxEach(t, func(w *fxWorld) {
			for why, p := range map[string]*fxPost{
				"only one":     newFxPostOf(w, strings.Replace(fxAfterConfig, `"steps"`, config, 1), lifecycle.WithRetry(policy)),
				"MaxAttempts":  newFxPost(w, lifecycle.WithRetry(holdfast.RetryPolicy{MaxAttempts: -1})),
				"backoff":      newFxPost(w, lifecycle.WithRetry(holdfast.RetryPolicy{Backoff: time.Hour, MaxBackoff: time.Second})),
				"after-effect": {l: lifecycle.MustParse[bill]([]byte(invoices)).RecoveredBy().Action("Act", act).Action("Brief", act).Validation("May", act, lifecycle.SkipMissing())},
			} {
				if err := p.l.Register(w.Context(), w.e); !errors.Is(err, fault.Of(fault.Validation)) || !strings.Contains(err.Error(), why) {
					w.Errorf("got %v, want a validation error with %q", err, why)
				}
			}
		})
	})
}

// TestTheRowOfAnAfterEffectIsGone verifies that an after-effect is blocked at once, with the reason, if its
// row in a user table was deleted before the delivery. Others continue. It is delivered when the row is back,
// or can be skipped. With SkipMissing it is skipped automatically, and the skip is recorded.
func TestTheRowOfAnAfterEffectIsGone(t *testing.T) {
	config := strings.ReplaceAll(invoices, "successful_state: noted}", "successful_state: noted, success_after_effect: Mail}")
	mails := func(w *world, o ...lifecycle.HandlerOption) {
		w.l.AfterEffect("Mail", func(_ context.Context, a *lifecycle.Act[bill]) error { w.write(a, "mail"); return nil }, o...)
	}
	gone := func(t *testing.T, w *world) {
		w.makeOut()
		w.create("gone", "back", "here")
		for _, id := range []string{"gone", "back", "here"} {
			if _, err := w.fire(id, "skip"); err != nil {
				t.Fatal(err)
			}
		}
		w.exec(`DELETE FROM bills WHERE nr = 'gone' OR nr = 'back'`)
		w.run(w.e)
	}
	stands := func(t *testing.T, w *world, id, what string, so func(stream.Position) bool) stream.Position {
		t.Helper()
		var at stream.Position
		testkit.Eventually(t, id+" "+what, func() bool {
			all, err := holdfast.Collect(stream.ListPositions(context.Background(), w.e, stream.PositionFilter{Reaction: "$after:invoice:Mail", Streams: []string{entities.Stream("invoice", id)}}))
			if err != nil || len(all) != 1 || all[0].Holder != "" || !so(all[0]) {
				return false
			}
			at = all[0]
			return true
		})
		return at
	}
	blocked := func(at stream.Position) bool { return at.Blocked }
	handled := func(at stream.Position) bool { return !at.Blocked && at.Watermark == at.Due }
	t.Run("blocked", func(t *testing.T) {
		onEach(t, func(t *testing.T, db string) {
			w := unopened(t, db, inOwn(config))
			w.own = true
			mails(w)
			w.prepare(ownTable)
			w.open()
			gone(t, w)
			stands(t, w, "here", "is handled", handled)
			for _, id := range []string{"gone", "back"} {
				if at := stands(t, w, id, "is blocked", blocked); at.Failures != 1 || !strings.Contains(at.Error, "was deleted") {
					t.Errorf("got position %+v, want it blocked after one failure", at)
				}
			}
			w.exec(`INSERT INTO bills (nr, state, rev) VALUES ('back', 'noted', 1)`)
			if _, err := stream.Unblock(t.Context(), w.e, "*", stream.PositionFilter{Pattern: "back$"}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Skip(t.Context(), w.e, "*", stream.PositionFilter{Pattern: "gone$"}); err != nil {
				t.Fatal(err)
			}
			stands(t, w, "back", "is handled", handled)
			stands(t, w, "gone", "is handled", handled)
			w.written("here", "mail")
			w.written("back", "mail")
			w.written("gone")
		})
	})
	t.Run("skipped", func(t *testing.T) {
		onEach(t, func(t *testing.T, db string) {
			w := unopened(t, db, inOwn(config))
			w.own = true
			mails(w, lifecycle.SkipMissing())
			w.prepare(ownTable)
			w.open()
			gone(t, w)
			stands(t, w, "here", "is handled", handled)
			stands(t, w, "gone", "is handled", handled)
			all, err := holdfast.Collect(stream.Read(t.Context(), w.e, reactions.Stream("$after:invoice:Mail", entities.Stream("invoice", "gone")), 0))
			if err != nil || len(all) != 1 || all[0].Name != "skipped" || !strings.Contains(string(all[0].Data), "was deleted") {
				t.Errorf("history is %+v, %v, want skipped", all, err)
			}
			w.written("gone")
		})
	})
}

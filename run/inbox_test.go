package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// Verifies that a signal counts that came before the wait for it, that the same id is the
// same signal, that another content under it is refused, that each wait takes one, in the
// order in which they came, and that a run that is over takes none.
func TestSignalsEarlyTwiceAndLate(t *testing.T) {
	def := run.Define("two", "1",
		run.Remote("first", "w", run.Idempotent()),
		run.Signal("a", "news", run.Timeout(time.Hour)),
		run.Signal("b", "news", run.Timeout(time.Hour)),
		run.Signal("c", "other", run.Timeout(time.Hour)))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		for _, id := range []string{"1", "1", "2"} {
			b.ok(run.Send(b.ctx, e, b.id, "news", "n"+id, run.SignalID(id)))
		}
		if err := run.Send(b.ctx, e, b.id, "news", "other", run.SignalID("1")); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("another payload under the same id: got %v, want ErrConflict", err)
		}
		if err := run.Send(b.ctx, e, "run_none", "news", 1, run.SignalID("1")); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("signal to an unknown run: got %v, want ErrNotFound", err)
		}
		if err := run.Send(b.ctx, e, b.id, "news", "n", run.SignalID("")); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("signal with an empty id: got %v, want ErrValidation", err)
		}
		b.is("PENDING", "first", "PENDING")
		b.complete(b.take())
		b.tick()
		b.is("WAITING", "c", "WAITING")
		steps, err := holdfast.Collect(run.ListSteps(b.ctx, e, b.id))
		b.ok(err)
		if string(steps[1].Output) != `"n1"` || string(steps[2].Output) != `"n2"` {
			t.Errorf("the waits took %s and %s", steps[1].Output, steps[2].Output)
		}
		b.ok(run.Send(b.ctx, e, b.id, "news", "n2", run.SignalID("2"))) // again, and long taken
		b.ok(run.Send(b.ctx, e, b.id, "other", nil, run.SignalID("3")))
		b.tick()
		b.is("COMPLETED", "c", "COMPLETED")
		b.ok(run.Send(b.ctx, e, b.id, "other", nil, run.SignalID("3"))) // the same one was taken when it could be
		if err := run.Send(b.ctx, e, b.id, "other", nil, run.SignalID("4")); !errors.Is(err, holdfast.ErrInvalidTransition) {
			t.Errorf("signal to a finished run: got %v, want ErrInvalidTransition", err)
		}
	})
}

// Verifies that of a signal and a timeout one wins: if the wait ended by the signal, that was
// taken; if not, it is in the inbox still, or was refused.
func TestASignalRacesTheTimeout(t *testing.T) {
	def := run.Define("late", "1", run.Signal("a", "news", run.Timeout(time.Hour), run.OnTimeout("z")), run.Wait("y", time.Hour), run.Wait("z", time.Hour))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for i := range 20 {
			b := newBench(t, e, def)
			b.is("WAITING", "a", "WAITING")
			holdfasttest.Advance(t, e, time.Hour+time.Second)
			var sent error
			acts := []func(){func() { b.tick() }, func() { sent = run.Send(b.ctx, e, b.id, "news", 7, run.SignalID("1")) }}
			switch i % 3 {
			case 0:
				acts[0]()
				acts[1]()
			case 1:
				acts[1]()
				acts[0]()
			default:
				holdfasttest.Race(t, 2, func(i int) error { acts[i](); return nil })
				b.tick()
			}
			b.ok(sent)
			steps, err := holdfast.Collect(run.ListSteps(b.ctx, e, b.id))
			b.ok(err)
			in, late := steps[0].Status == "COMPLETED" && string(steps[0].Output) == "7" && steps[1].Name == "y", steps[0].Status == "FAILED" && steps[1].Name == "z"
			if in == late || i%3 == 0 && in || i%3 == 1 && late {
				t.Errorf("round %d: got steps %+v", i, steps)
			}
		}
	})
}

func approvalDefinition(version string, o ...run.StepOption) *run.Definition {
	return run.Define("asking", version, run.Approval("ask", "Yes?", append(o, run.Timeout(time.Hour), run.For("manager"))...), run.Remote("last", "w", run.Idempotent()))
}

// Verifies that of two who decide at once one does, that the other is told CONFLICT, as is the same decision again, and
// that nobody decides who may not, too late, or through a signal.
func TestAnApprovalIsDecidedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for range 10 {
			b := newBench(t, e, approvalDefinition("1"))
			id := runengine.ApprovalID(b.id, "ask", 1)
			if _, err := run.Decide(b.ctx, e, id, run.Decision{Status: run.Approved, Requester: "clerk"}, run.By("eve")); !errors.Is(err, holdfast.ErrForbidden) {
				t.Errorf("decision by a clerk: got %v, want ErrForbidden", err)
			}
			for _, forged := range []string{"ask", id, "approval", "approvalDecided"} {
				b.ok(run.Send(b.ctx, e, b.id, forged, map[string]string{"decision": "approved"}))
			}
			b.tick()
			b.is("WAITING", "ask", "WAITING")
			decisions := []string{"approved", "rejected"}
			won, lost := holdfasttest.Race(t, 2, func(i int) error {
				_, err := run.Decide(b.ctx, e, id, run.Decision{Status: run.ApprovalStatus(decisions[i]), Requester: "manager"}, run.By("p"+decisions[i]))
				return err
			})
			if won != 1 || !errors.Is(lost[0], holdfast.ErrConflict) {
				t.Fatalf("%d decisions won, want 1; errors %v", won, lost)
			}
			asked, err := run.GetApproval(b.ctx, e, id)
			b.ok(err)
			if listed, err := holdfast.Collect(run.ListApprovals(b.ctx, e, run.ApprovalFilter{Run: b.id})); err != nil || len(listed) != 1 || !reflect.DeepEqual(listed[0], asked) {
				t.Errorf("listed %+v, %v, want %+v", listed, err, asked)
			}
			if asked.ID != id || asked.Visit != 1 || asked.ExpiresAt.Sub(asked.CreatedAt) != time.Hour || asked.Actor != "p"+string(asked.Status) {
				t.Errorf("got approval %+v", asked)
			}
			again, err := run.Decide(b.ctx, e, id, run.Decision{Status: asked.Status, Requester: "manager"}, run.By(asked.Actor))
			if !errors.Is(err, holdfast.ErrConflict) || again.Status != asked.Status || again.Actor != asked.Actor {
				t.Errorf("the same decision again: got %+v, %v, want ErrConflict with the decision", again, err)
			}
			b.tick()
			l := b.live()
			if approved := asked.Status == "approved"; approved != (l.Step.Name == "last") || !approved && l.Run.Status != "FAILED" {
				t.Errorf("decision was %s, but the run is %s at %s", asked.Status, l.Run.Status, l.Step.Name)
			}
		}
	})
}

// Verifies that an approval that nobody decided in time is expired, for who asks and for who
// decides, also before anybody has looked; and that the run goes where the definition says.
func TestAnApprovalExpires(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for _, looked := range []bool{false, true} {
			b := newBench(t, e, approvalDefinition("2", run.OnTimeout("last")))
			holdfasttest.Advance(t, e, time.Hour+time.Second)
			if looked {
				b.tick()
			}
			if _, err := run.Decide(b.ctx, e, runengine.ApprovalID(b.id, "ask", 1), run.Decision{Status: run.Approved, Requester: "manager"}, run.By("ann")); !errors.Is(err, holdfast.ErrConflict) {
				t.Errorf("late decision (polled before: %v): got %v, want ErrConflict", looked, err)
			}
			asked, err := holdfast.Collect(run.ListApprovals(b.ctx, e, run.ApprovalFilter{Run: b.id}))
			b.ok(err)
			if len(asked) != 1 || asked[0].Status != "expired" {
				t.Errorf("got approvals %+v, want one expired", asked)
			}
			for status, want := range map[run.ApprovalStatus]int{run.Expired: 1, run.AwaitingDecision: 0} { // also before it is stored
				for _, f := range []run.ApprovalFilter{{Run: b.id, Status: status}, {Status: status}} {
					found, n := 0, 0
					for a, err := range run.ListApprovals(b.ctx, e, f) {
						b.ok(err)
						if n++; a.Run == b.id {
							found++
						}
						if a.Status != status {
							t.Errorf("%+v: listed %+v", f, a)
						}
					}
					if found != want {
						t.Errorf("%+v (polled before: %v): listed %d approvals of the run, want %d", f, looked, found, want)
					}
				}
			}
			b.tick()
			b.is("RUNNING", "last", "PENDING")
		}
	})
}

// Verifies what becomes of a rejection: it goes where the definition says, or a condition
// that follows looks at it, or the step has failed; and that retrying asks anew.
func TestARejection(t *testing.T) {
	cond := run.Define("cond", "1", run.Approval("ask", "Yes?"), run.If("ok", `steps.ask.output.decision == "approved"`, "last", "end"), run.Remote("last", "w"))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		reject := func(b *bench, visit int64) {
			t.Helper()
			_, err := run.Decide(b.ctx, e, runengine.ApprovalID(b.id, "ask", visit), run.Decision{Status: run.Rejected, Requester: "manager", Content: map[string]int{"why": 1}}, run.By("ann"))
			b.ok(err)
			b.tick()
		}
		b := newBench(t, e, approvalDefinition("3", run.OnReject("last")))
		reject(b, 1)
		b.is("RUNNING", "last", "PENDING")
		b = newBench(t, e, cond)
		reject(b, 1)
		b.is("COMPLETED", "ok", "COMPLETED")
		b = newBench(t, e, approvalDefinition("1"))
		reject(b, 1)
		b.is("FAILED", "ask", "FAILED")
		b.ok(b.do(runengine.Retry))
		b.is("WAITING", "ask", "WAITING")
		if l := b.live(); l.Step.Visit != 2 {
			t.Errorf("got visit %d, want 2", l.Step.Visit)
		}
		reject(b, 2)
		b.is("FAILED", "ask", "FAILED")
	})
}

// Verifies that attempts are counted across failures, deaths and nodes, that the pauses
// between them grow, within the cap and half of it, that what is not to be tried again is
// not, and that a retry by hand has as many attempts as the first.
func TestAttemptsAreCounted(t *testing.T) {
	def := run.Define("tries", "1", run.Remote("work", "w", run.Idempotent(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 4, Backoff: time.Second, Multiplier: 10, MaxBackoff: 30 * time.Second})))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, def)
		fail := func(final bool) {
			t.Helper()
			_, err := b.executor().Fail(b.ctx, engine.Of(e), b.take(), runengine.Failure{Message: "no", Final: final})
			b.ok(err)
		}
		for i, longest := range []time.Duration{time.Second, 10 * time.Second, 30 * time.Second} {
			fail(false)
			b.is("WAITING", "work", "WAITING")
			pause := b.pause()
			if pause < longest/2 || pause > longest {
				t.Errorf("after failure %d it waits %s", i+1, pause)
			}
			holdfasttest.Advance(t, e, longest)
			b.die() // which does not count as a failure
		}
		if l := b.live(); l.Step.Failures != 3 || l.Step.Crashes != 3 || l.Step.Attempts != 6 {
			t.Errorf("got %d failures, %d crashes, %d attempts, want 3, 3, 6", l.Step.Failures, l.Step.Crashes, l.Step.Attempts)
		}
		holdfasttest.Advance(t, e, time.Hour)
		fail(false)
		b.is("FAILED", "work", "FAILED")
		b.ok(b.do(runengine.Retry))
		fail(false)
		b.is("WAITING", "work", "WAITING")
		holdfasttest.Advance(t, e, time.Hour)
		fail(true)
		b.is("FAILED", "work", "FAILED")
	})
}

// pause returns how long the step waits, according to its history.
func (b *bench) pause() time.Duration {
	b.t.Helper()
	all, err := testkit.First(1, stream.ReadBackward(b.ctx, b.e, runengine.Stream(b.id), stream.Version(b.live().Run.Version)))
	b.ok(err)
	var data struct{ RetryInMs int64 }
	b.ok(json.Unmarshal(all[0].Data, &data))
	return time.Duration(data.RetryInMs) * time.Millisecond
}

// die claims the step and lets its lease expire.
func (b *bench) die() {
	b.t.Helper()
	_, err := runengine.Renew(b.ctx, engine.Of(b.e), b.take(), time.Minute) // it was heard of
	b.ok(err)
	holdfasttest.Advance(b.t, b.e, 2*time.Minute)
	at, err := engine.Of(b.e).Partition(b.ctx, store.Read)
	b.ok(err)
	n, err := b.executor().Expire(b.ctx, engine.Of(b.e), at)
	if b.ok(err); n != 1 {
		b.t.Fatalf("released %d leases, want 1", n)
	}
	holdfasttest.Advance(b.t, b.e, 10*time.Minute)
}

// Verifies that a step that kills whoever takes it ends FAILED after five of them, and that
// other runs go on meanwhile.
func TestAPoisonStepEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		poison, other := newBench(t, e, simple()), newBench(t, e, simple())
		for i := range 5 {
			if i < 2 {
				other.complete(other.takeOnly())
			}
			poison.dieOnly()
		}
		poison.is("FAILED", "first", "FAILED")
		if r := poison.live().Run; !strings.Contains(r.Error, "5 holders crashed") {
			t.Errorf("got run error %q", r.Error)
		}
		other.is("WAITING", "told", "WAITING")
	})
}

// takeOnly takes the step of this run, and of no other.
func (b *bench) takeOnly() *runengine.ClaimedStep {
	b.t.Helper()
	at, err := engine.Of(b.e).Partition(b.ctx, store.Read)
	b.ok(err)
	all, err := runengine.Ready(b.ctx, engine.Of(b.e), at, []string{"w"}, "", 100)
	b.ok(err)
	i := slices.IndexFunc(all, func(l runengine.ClaimedStep) bool { return l.Run.ID == b.id })
	if i < 0 {
		b.t.Fatalf("no step of the run is due: %+v", b.live())
	}
	l, ok, err := b.executor().Take(b.ctx, engine.Of(b.e), &all[i], runengine.Handled{}, runengine.Taker{Holder: "me", Lease: time.Minute})
	if b.ok(err); !ok {
		b.t.Fatal("the step was not claimed")
	}
	return &l
}

func (b *bench) dieOnly() {
	b.t.Helper()
	b.takeOnly()
	holdfasttest.Advance(b.t, b.e, 2*time.Minute)
	at, err := engine.Of(b.e).Partition(b.ctx, store.Read)
	b.ok(err)
	_, err = b.executor().Expire(b.ctx, engine.Of(b.e), at)
	b.ok(err)
	holdfasttest.Advance(b.t, b.e, 10*time.Minute)
}

// Verifies that pausing during a step loses nothing: what it brings is kept, with its state,
// and the run goes on from there when it is resumed.
func TestAPauseLosesNoResult(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		b := newBench(t, e, simple())
		l := b.take()
		b.ok(b.do(runengine.Pause))
		_, err := b.executor().Complete(b.ctx, engine.Of(e), l, runengine.Ended{Output: []byte(`{"a": 1}`), Patches: [][]byte{[]byte(`{"seen": true}`)}})
		b.ok(err)
		b.is("PAUSED", "first", "COMPLETED")
		_, err = b.executor().Complete(b.ctx, engine.Of(e), l, runengine.Ended{Output: []byte(`{"a": 1}`), Patches: [][]byte{[]byte(`{"seen": true}`)}}) // again
		b.ok(err)
		if _, err := b.executor().Complete(b.ctx, engine.Of(e), l, runengine.Ended{Output: []byte(`2`)}); fault.CodeOf(err) != fault.LeaseLost {
			t.Errorf("second completion: got %v, want LEASE_LOST", err)
		}
		b.ok(b.do(runengine.Resume))
		b.is("RUNNING", "second", "PENDING")
		var state map[string]bool
		if b.ok(json.Unmarshal(b.live().Run.State, &state)); !state["seen"] {
			t.Errorf("got state %v, want seen", state)
		}
	})
}

// Verifies that a run is started by the program's own transaction, exactly if that commits.
func TestARunStartsInATransaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		def := simple()
		for _, commits := range []bool{false, true} {
			var id string
			err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				r, created, err := def.Start(ctx, tx, order{"o", 1}, run.Key("k"))
				if err == nil && !created {
					err = errors.New("the run already existed")
				}
				if id = r.ID; err == nil && !commits {
					err = errors.New("no")
				}
				return err
			})
			_, found := run.Get(t.Context(), e, id)
			if (err == nil) != commits || (found == nil) != commits {
				t.Errorf("committed: %v, %v; get returned %v", commits, err, found)
			}
		}
	})
}

// exec runs a statement on our tables, written as SQLite's.
func (b *bench) exec(text string) {
	b.t.Helper()
	b.ok(b.e.Update(b.ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := storetest.Exec(ctx, tx, text)
		return err
	}))
}

// Verifies that the check finds runs that wait although their signal is there, as a program
// from before could leave them, that a node which runs wakes them, also behind a page of
// signals that nobody waits for, and leaves a run alone whose signal is not there.
func TestWhoSleptThroughASignalIsWoken(t *testing.T) {
	long, short := run.Define("long", "1", run.Signal("a", "news")), run.Define("short", "1", run.Signal("a", "news", run.Timeout(time.Hour)))
	eachAt(t, func(t *testing.T, e *holdfast.Engine, db string) {
		other := newBench(t, e, short)
		sleeper := func(def *run.Definition) *bench {
			b := newBench(t, e, def)
			b.ok(run.Send(b.ctx, e, b.id, "news", "n", run.SignalID("1")))
			b.exec(`UPDATE holdfast_step SET due_at = deadline WHERE run = '` + b.id + `'`)
			return b
		}
		deaf := []*bench{sleeper(long), sleeper(short)}
		other.exec(`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 600)
			INSERT INTO holdfast_signal (shard, workspace, run, id, n, type, payload, at)
			SELECT r.shard, r.workspace, r.id, 'x' || c.i, c.i, 'other', '1', r.created_at FROM holdfast_run AS r, c WHERE r.id = '` + other.id + `'`)
		found := func() string {
			r, err := e.Check(t.Context())
			other.ok(err)
			return r.String()
		}
		at := runengine.Inbox{}
		for page := range 2 {
			for _, b := range deaf {
				b.tick()
				b.is("WAITING", "a", "WAITING")
				if want := "I42: run " + b.id + " in workspace default: the run waits for a signal that has already arrived"; !strings.Contains(found(), want) {
					t.Errorf("page %d: want %s in\n%s", page, want, found())
				}
			}
			woken, next, err := runengine.LocalOf(engine.Of(e)).Executor.Rouse(t.Context(), engine.Of(e), 0, at)
			if at = next; err != nil || woken != 2*page || (at == runengine.Inbox{}) != (page == 1) {
				t.Errorf("page %d: woke %d runs, %v", page, woken, err)
			}
		}
		for _, b := range deaf {
			b.is("COMPLETED", "a", "COMPLETED")
			if out := b.live().Step.Output; string(out) != `"n"` {
				t.Errorf("the wait took %s, want \"n\"", out)
			}
		}
		other.is("WAITING", "a", "WAITING")
		if found() != "" {
			t.Errorf("after all were woken, check reports: %s", found())
		}
		other.exec(`DELETE FROM holdfast_signal WHERE type = 'other'`) // or it pauses behind them
		last := sleeper(short)
		testkit.Run(t, e)
		awaitStatus(t, e, last.id, "COMPLETED")
	}, long, short)
}

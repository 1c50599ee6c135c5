package run_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/run"
)

// walk is a run that is moved at random.
type walk struct {
	*bench
	at   store.Partition
	rnd  *rand.Rand
	held *runengine.ClaimedStep // what was taken last, perhaps long ago
	log  []string
	did  map[string]int // how often each move was made, and not refused
}

// move is an action on a run.
type move struct {
	name string
	do   func(w *walk) error
}

// byHolder are the moves of the current or a former holder of the step.
var byHolder = []move{
	{"complete", func(w *walk) error {
		_, err := w.executor().Complete(w.ctx, engine.Of(w.e), w.held, runengine.Ended{Output: []byte("1")})
		return err
	}},
	{"fail", func(w *walk) error { return w.fail(runengine.Failure{Message: "x", Reported: true}) }},
	{"fail untold", func(w *walk) error { return w.fail(runengine.Failure{Message: "x"}) }},
	{"fail for good", func(w *walk) error {
		return w.fail(runengine.Failure{Message: "x", Final: true, Reported: true, Unfired: true})
	}},
	{"park", func(w *walk) error { _, err := w.executor().Park(w.ctx, engine.Of(w.e), w.held, "x", nil); return err }},
	{"release", func(w *walk) error {
		_, err := w.executor().Release(w.ctx, engine.Of(w.e), w.held, false, nil)
		return err
	}},
	{"begin", func(w *walk) error {
		_, err := w.held.Book(engine.Of(w.e)).Begin(w.ctx, "x", 0, effects.Hold, nil)
		return err
	}},
	{"end", func(w *walk) error {
		_, _, err := w.held.Book(engine.Of(w.e)).End(w.ctx, "x", 0, effects.Done, nil, false)
		return err
	}},
}

// byFirer are the moves of the current or a former holder of a transition.
var byFirer = []move{
	{"pass", func(w *walk) error {
		_, err := w.executor().Pass(w.ctx, engine.Of(w.e), w.held, time.Second, nil)
		return err
	}},
	{"point", func(w *walk) error {
		return runengine.Point(w.ctx, engine.Of(w.e), w.held, fmt.Sprint("op", w.rnd.Int()))
	}},
}

// byOthers are the moves of everybody else, and of time.
var byOthers = []move{
	{"take", (*walk).takeDue},
	{"take", (*walk).takeDue},
	{"pause", func(w *walk) error { return w.do(runengine.Pause) }},
	{"resume", func(w *walk) error { return w.do(runengine.Resume) }},
	{"retry", func(w *walk) error { return w.do(runengine.Retry) }},
	{"cancel", func(w *walk) error {
		if w.rnd.IntN(20) > 0 { // or few would come to another end
			return nil
		}
		return w.do(runengine.Cancel)
	}},
	{"signal", func(w *walk) error { return run.Send(w.ctx, w.e, w.id, "news", 1) }},
	{"decide", func(w *walk) error {
		v := run.Decision{Status: []run.ApprovalStatus{run.Approved, run.Rejected}[w.rnd.IntN(2)]}
		_, err := run.Decide(w.ctx, w.e, runengine.ApprovalID(w.id, "k", w.live().Step.Visit), v, run.By("x"))
		return err
	}},
	{"tick", (*walk).ticks},
	{"later", func(w *walk) error {
		holdfasttest.Advance(w.t, w.e, time.Duration(w.rnd.IntN(90))*time.Second)
		return nil
	}},
	{"expire", func(w *walk) error { _, err := w.executor().Expire(w.ctx, engine.Of(w.e), w.at); return err }},
	{"resolve", func(w *walk) error {
		known := []effects.Resolution{{Name: effects.Body, State: effects.StateOf(w.rnd.IntN(2) == 0)}}
		return w.settle(known[:w.rnd.IntN(2)], []string{"", "success", "failure"}[w.rnd.IntN(3)])
	}},
	{"resolve not done", func(w *walk) error {
		return w.settle([]effects.Resolution{{Name: effects.Body, State: effects.NotDone}}, "")
	}},
}

func (w *walk) fail(f runengine.Failure) error {
	_, err := w.executor().Fail(w.ctx, engine.Of(w.e), w.held, f)
	return err
}

func (w *walk) settle(known []effects.Resolution, outcome string) error {
	l := w.live()
	_, err := w.executor().Resolve(w.ctx, engine.Of(w.e), l.Operation(), known, outcome, lease.Intervention{Actor: "ann"})
	return err
}

func (w *walk) takeDue() error {
	handlers := map[string]runengine.Handled{"w": {}, runengine.TransitionHandler: {}}
	all, err := w.executor().TakeDue(w.ctx, engine.Of(w.e), runengine.Ask{Handlers: handlers, Holder: "me", Limit: 10, Lease: time.Minute})
	if len(all) > 0 {
		w.held = &all[0]
	}
	return err
}

// ticks does what is due at the engine's own steps, and takes nothing.
func (w *walk) ticks() error {
	all, err := runengine.Ready(w.ctx, engine.Of(w.e), w.at, []string{""}, "", 10)
	for i := range all {
		_, _, failed := w.executor().Tick(w.ctx, engine.Of(w.e), &all[i], runengine.Taker{Holder: "me", Lease: time.Minute}, nil)
		err = errors.Join(err, failed)
	}
	return err
}

// moves are those that can be made now. Who has lost its hold seldom speaks.
func (w *walk) moves() []move {
	w.t.Helper()
	if w.held == nil || w.rnd.IntN(3) == 0 {
		return byOthers
	}
	s := w.live().Step
	lost := s.Holder == "" || s.Name != w.held.Step.Name || s.Visit != w.held.Step.Visit || s.Epoch != w.held.Step.Epoch
	switch {
	case lost && w.rnd.IntN(4) > 0:
		return byOthers
	case w.held.Step.Handler == runengine.TransitionHandler && w.rnd.IntN(2) == 0:
		return byFirer
	}
	return byHolder
}

// step makes one move.
func (w *walk) step() {
	w.t.Helper()
	all := w.moves()
	m := all[w.rnd.IntN(len(all))]
	err := m.do(w)
	if err == nil {
		w.did[m.name]++
	}
	w.log = append(w.log, fmt.Sprintf("%s %s", m.name, fault.CodeOf(err)))
	if fault.CodeOf(err) == fault.Internal {
		w.t.Fatalf("%s: %v\n%q", m.name, err, w.log)
	}
}

// broken returns what is wrong with the state of the run, or "".
func (w *walk) broken(l *runengine.ClaimedStep) string {
	w.t.Helper()
	s := l.Step
	due := s.Due.Year() > 2000
	switch {
	case runengine.Over(l.Run.Status) && (s.Holder != "" || due || s.Uncertain):
		return "it is over, and something is left of it"
	case s.Status == "CANCELLED" && s.Fired != "":
		return "it was cancelled over what it fired"
	case s.Status == "CANCELLED" && w.open(l):
		return "it was cancelled over an effect of which nothing is known"
	case runengine.Over(l.Run.Status):
		return ""
	case l.Run.Status == "PAUSED" && l.Run.CancelRequested && s.Holder == "" && !s.Uncertain && !due:
		return "it is paused and to be cancelled, and nobody will"
	case l.Run.Status == "PAUSED" && due && !l.Run.CancelRequested:
		return "it is paused, and due"
	case l.Run.Status == "PAUSED":
		return ""
	}
	person := s.Status == "WAITING" && (s.Type == "event" || s.Type == "approval") && s.Deadline.Year() < 2000
	if s.Holder == "" && !due && !s.Uncertain && !person {
		return "nobody will ever move it"
	}
	return ""
}

// open reports whether an effect has an unknown outcome.
func (w *walk) open(l *runengine.ClaimedStep) bool {
	w.t.Helper()
	journal, err := l.Journal(w.ctx, engine.Of(w.e))
	w.ok(err)
	for _, x := range journal {
		if x.State == effects.Begun {
			return true
		}
	}
	return false
}

// randomFrom is a definition with every type of step that needs a caller to move it. It begins
// at one of them and loops.
func randomFrom(first string) *run.Definition {
	return run.Define("random-"+first, "1",
		run.If("from", "input.cents > 0", first, "end"),
		run.Remote("a", "w", run.Opaque(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Second}), run.OnFailure("s")),
		run.Remote("b", "w", run.Journaled(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Second})),
		run.Signal("s", "news", run.Timeout(time.Hour), run.OnTimeout("k")),
		run.Approval("k", "?", run.Timeout(time.Hour)),
		run.Fire("f", "invoice", "i1", "close", "system"),
		run.If("again", "steps.f.visit < 3", "a", "end"))
}

// Verifies that whatever workers, people and time do to a run, in whatever order, also late
// and twice, it stands so that somebody moves it on or it is over, is never cancelled over
// something of which nobody knows whether it happened, and that nothing breaks inside. Each
// seed is a test of its own, in a workspace of its own: run it alone to replay it.
func TestRandomMoves(t *testing.T) {
	seeds, moves := testlevel.Pick(20, 40, 400), 100
	firsts := []string{"a", "b", "s", "k", "f"}
	e := holdfasttest.Open(t, run.Maintenance())
	did, walked := make(map[string]int), 0
	for seed := range uint64(seeds) {
		name := fmt.Sprint("seed", seed)
		t.Run(name, func(t *testing.T) {
			walked++
			ctx := holdfast.InWorkspace(t.Context(), name)
			b := &bench{t: t, ctx: ctx, e: e, def: randomFrom(firsts[seed%uint64(len(firsts))])}
			at, err := engine.Of(e).Partition(ctx, store.Read)
			b.ok(err)
			w := &walk{bench: b.start(), at: at, rnd: rand.New(rand.NewPCG(seed, 7)), did: did}
			w.walk(moves)
		})
	}
	for _, m := range slices.Concat(byOthers, byHolder, byFirer) {
		if walked == seeds && did[m.name] == 0 {
			t.Errorf("no walk reached move %s", m.name)
		}
	}
}

// walk makes the given number of moves, or fewer if the run ends.
func (w *walk) walk(moves int) {
	w.t.Helper()
	for range moves {
		w.step()
		l := w.live()
		if what := w.broken(&l); what != "" {
			w.t.Fatalf("%s: run is %s at step %s, %s\n%q", what, l.Run.Status, l.Step.Name, l.Step.Status, w.log)
		}
		if l.Run.Status == "COMPLETED" || l.Run.Status == "CANCELLED" {
			return
		}
	}
}

package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
)

const fxAfterConfig = `{
  "workflow": "after", "owning_module": "fx", "initial_status": "open",
  "status_types": ["open", "closing", "closed", "broken", "archived"],
  "steps": [
    {"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": ["closing", "open"],
     "successful_state": {"admin": "closed", "auditor": "closed", "guest": "closed"}, "action": "Close",
     "success_after_effect": {"admin": "Mail", "auditor": "Audit"}},
    {"step_id": 2, "step_key": "break", "status": "open", "successful_claim_state": ["breaking", "open"], "successful_state": "closed", "failed_state": "broken",
     "action": "Close", "success_after_effect": "Mail"},
    {"step_id": 3, "step_key": "archive", "status": ["closed", "broken"], "successful_state": "archived", "success_after_effect": "Mail"},
    {"step_id": 4, "step_key": "reopen", "status": "closed", "successful_state": "open", "action": "Close", "success_after_effect": {"auditor": "Audit"}}
  ]
}`

// fxPost is a lifecycle with after-effects that note what they were given.
type fxPost struct {
	*fxWorld
	l *lifecycle.Lifecycle[bill]

	mu        sync.Mutex
	delivered []string
	fired     map[string]bool // ids, by fireAll
	fails     map[string]int  // by id and handler: how often it fails
	failure   error           // of an after-effect that fails; nil is errFx
	hangs     bool            // after-effects wait for the end of their contexts
	close     error           // of the action
	stop      func()          // what the after-effect does instead
}

func newFxPost(w *fxWorld, mail ...lifecycle.HandlerOption) *fxPost {
	return newFxPostOf(w, fxAfterConfig, mail...)
}

func newFxPostOf(w *fxWorld, config string, mail ...lifecycle.HandlerOption) *fxPost {
	p := &fxPost{fxWorld: w, fails: make(map[string]int), fired: make(map[string]bool)}
	p.l = lifecycle.MustParse[bill]([]byte(strings.Replace(config, `"broken",`, `"broken", "breaking",`, 1))).RecoveredBy().
		Action("Close", func(context.Context, *fxAct) error { return p.close }, lifecycle.Transactional()).
		AfterEffect("Mail", p.after("Mail"), mail...).AfterEffect("Audit", p.after("Audit"))
	return p
}

// fxPosts runs a test with after-effects on both databases.
func fxPosts(t *testing.T, f func(*fxPost)) {
	t.Helper()
	fxEach(t, func(w *fxWorld) {
		p := newFxPost(w)
		if err := p.l.Register(w.Context(), w.e); err != nil {
			w.Fatal(err)
		}
		f(p)
	})
}

func (p *fxPost) after(handler string) fxBody {
	return func(ctx context.Context, a *fxAct) error {
		if p.hangs {
			<-ctx.Done()
			return ctx.Err()
		}
		if p.stop != nil {
			p.stop()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.delivered = append(p.delivered, fmt.Sprintf("%s %s of %s by %s: %s", handler, a.Step, a.Entity.ID, a.Requester, a.Operation))
		if key := a.Entity.ID + "/" + handler; p.fails[key] > 0 {
			p.fails[key]--
			a.WriteTx(credit("failed"))
			return cmp.Or(p.failure, errFx)
		}
		a.WriteTx(credit(a.Entity.ID + "/" + handler))
		return nil
	}
}

// credit writes what may be written once.
func credit(to string) func(context.Context, holdfast.Tx) error {
	return func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, "credits", stream.Any, stream.Event{Name: to})
		return err
	}
}

func (p *fxPost) credits() (all []string) {
	p.Helper()
	found, err := holdfast.Collect(stream.Read(context.Background(), p.e, "credits", 0))
	if err != nil {
		p.Fatal(err)
	}
	for _, e := range found {
		all = append(all, e.Name)
	}
	slices.Sort(all)
	return all
}

func (p *fxPost) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.delivered)
}

func (p *fxPost) create(ids ...string) {
	p.Helper()
	for _, id := range ids {
		if _, err := p.l.Create(p.Context(), p.e, id, bill{}); err != nil {
			p.Fatal(err)
		}
	}
}

// operation of the last event of an entity.
func (p *fxPost) operation(id string) string {
	p.Helper()
	all, err := holdfast.Collect(p.l.ReadHistory(context.Background(), p.e, id, 0))
	if err != nil || len(all) == 0 {
		p.Fatal(all, err)
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(string(all[len(all)-1].Data), " ", ""), `"operation":"`)
	operation, _, _ := strings.Cut(rest, `"`)
	return operation
}

// waitFor runs the engine until so much was credited.
func (p *fxPost) waitFor(credits int) {
	p.Helper()
	p.running(func() {
		p.Helper()
		testkit.Eventually(p, fmt.Sprintf("%d credits are written", credits), func() bool { return len(p.credits()) >= credits })
	})
}

// failed runs the engine until an after-effect of an entity has failed so often.
func (p *fxPost) failed(id string, times int) {
	p.Helper()
	p.running(func() {
		p.Helper()
		testkit.Eventually(p, fmt.Sprintf("it has failed %d times", times), func() bool {
			all, _, err := reactions.Query(context.Background(), engine.Of(p.e), reactions.Filter{}, reactions.Position{}, 100)
			return err == nil && slices.ContainsFunc(all, func(at reactions.Position) bool {
				return strings.HasSuffix(at.Stream, "/"+id) && at.Failures >= times && at.Holder == ""
			})
		})
	})
}

// TestAfterEffects verifies that an after-effect is delivered once, with its writes, under the operation of
// its step and with the input of the step; for the steps and requesters that declare it and no others; for
// steps with and without a claim; and not for a step that failed, was refused or moved to failed_state.
func TestAfterEffects(t *testing.T) {
	fxPosts(t, func(p *fxPost) {
		p.create("a", "b", "c", "d", "e")
		fire := func(id, step, as string) string {
			p.Helper()
			if _, err := p.l.Fire(p.Context(), p.e, id, step, as); err != nil {
				p.Fatal(id, step, as, err)
			}
			return p.operation(id)
		}
		p.close = errFx
		for _, step := range []string{"close", "break"} {
			if _, err := p.l.Fire(p.Context(), p.e, "d", step, "admin"); !errors.Is(err, holdfast.ErrActionFailed) {
				p.Fatal(err)
			}
		}
		p.close = holdfast.Invalid("no")
		if _, err := p.l.Fire(p.Context(), p.e, "e", "close", "admin"); !errors.Is(err, holdfast.ErrActionInvalid) {
			p.Fatal(err)
		}
		p.close = nil
		want := []string{
			"Mail close of a by admin: " + fire("a", "close", "admin"),
			"Audit close of b by auditor: " + fire("b", "close", "auditor"),
		}
		fire("c", "close", "guest")
		fire("a", "reopen", "admin")
		want = append(want, "Audit reopen of b by auditor: "+fire("b", "reopen", "auditor"))
		want = append(want, "Mail archive of c by guest: "+fire("c", "archive", "guest"))
		p.waitFor(len(want))
		p.create("last")
		want = append(want, "Mail break of last by guest: "+fire("last", "break", "guest"))
		p.waitFor(len(want)) // nothing else came meanwhile
		got := p.got()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			p.Errorf("got deliveries\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if credits := p.credits(); !slices.Equal(credits, []string{"a/Mail", "b/Audit", "b/Audit", "c/Mail", "last/Mail"}) {
			p.Errorf("got credits %q", credits)
		}
	})
}

// TestAFailingAfterEffect verifies that a failing after-effect is delivered again under the same operation,
// and that the writes of a failed delivery are not applied; that other after-effects are delivered in the
// meantime, for other entities and of other handlers; and that the step stays settled.
func TestAFailingAfterEffect(t *testing.T) {
	fxPosts(t, func(p *fxPost) {
		p.create("bad", "good", "other")
		p.fails["bad/Mail"] = 1 << 30 // until the test has seen it fail
		for id, as := range map[string]string{"bad": "admin", "good": "admin", "other": "auditor"} {
			if e, err := p.l.Fire(p.Context(), p.e, id, "close", as); err != nil || e.Status != "closed" {
				p.Fatal(e, err)
			}
		}
		operation := p.operation("bad")
		p.waitFor(2)
		if credits := p.credits(); !slices.Equal(credits, []string{"good/Mail", "other/Audit"}) {
			p.Fatalf("got credits %q", credits)
		}
		p.failed("bad", 1)
		holdfasttest.Advance(p, p.e, time.Hour)
		p.failed("bad", 2)
		failed := len(p.got()) - 2 // the engine does not run now
		p.mu.Lock()
		p.fails["bad/Mail"] = 0
		p.mu.Unlock()
		holdfasttest.Advance(p, p.e, time.Hour)
		p.waitFor(3)
		if credits := p.credits(); !slices.Equal(credits, []string{"bad/Mail", "good/Mail", "other/Audit"}) {
			p.Errorf("got credits %q", credits)
		}
		tries := 0
		for _, d := range p.got() {
			if d == "Mail close of bad by admin: "+operation {
				tries++
			}
		}
		if tries != failed+1 || len(p.got()) != tries+2 {
			p.Errorf("got deliveries %q", p.got())
		}
	})
}

// TestAfterEffectOfWhatAPersonResolved verifies that a step that a person settles as a success has its
// after-effect once, and that a step that a person ends as failed has none.
func TestAfterEffectOfWhatAPersonResolved(t *testing.T) {
	fxPosts(t, func(p *fxPost) {
		p.create("a", "b")
		for id, o := range map[string]lifecycle.Outcome{"a": lifecycle.Success, "b": lifecycle.Failure} {
			c, err := p.l.Claim(p.Context(), p.e, id, "close", "admin", lifecycle.Input(map[string]int{"n": 1}))
			if err != nil {
				p.Fatal(err)
			}
			if err := fxBegin(p.fxWorld, c, p.l.Name(), id); err != nil {
				p.Fatal(err)
			}
			if _, err := c.Fail(p.Context(), "who knows"); err != nil {
				p.Fatal(err)
			}
			if _, err := p.resolve(c.Operation(), o, holdfast.Resolution{Name: "card", State: holdfast.EffectDone}); err != nil {
				p.Fatal(err)
			}
		}
		operation := p.operation("a")
		p.waitFor(1)
		if got := p.got(); !slices.Equal(got, []string{"Mail close of a by admin: " + operation}) {
			p.Errorf("got deliveries %q", got)
		}
	})
}

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// Verifies that a body that runs longer than its lease, at level check three times as long, keeps its claim: it is
// renewed while the body runs, janitors that go round all the time do not take it, and
// it settles.
func TestALongBodyIsRenewed(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		const lease = 2 * time.Second // long enough for a busy machine to renew
		leases := testlevel.Pick[time.Duration](1, 3, 3)
		w.makeOut()
		w.create("i")
		var first time.Time
		w.act("i", func(ctx context.Context, a *lifecycle.Act[bill]) error {
			first = a.Entity.Claimed.Until
			w.write(a, "me")
			testkit.Eventually(t, fmt.Sprintf("the hold is extended by %d leases", leases), func() bool {
				w.round()
				c := w.get("i").Claimed
				if c == nil || c.Epoch != a.Entity.Claimed.Epoch {
					t.Errorf("got claim %+v, want the same epoch", c)
					return true
				}
				return c.Until.Sub(first) > leases*lease
			})
			return ctx.Err()
		})
		if got, err := w.fire("i", "close", lifecycle.Lease(lease)); err != nil || got.Status != "closed" || got.Version != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		w.happened("i", "closed", "created", "claimed", "settled/close")
		w.written("i", "me")
	})
}

// Verifies that a body that did not notice that its lease expired can write nothing: a settle is refused with
// LEASE_LOST, its writes are not committed, and a failure does not release the next holder's claim.
func TestAHolderThatLostItsHoldWritesNothing(t *testing.T) {
	for _, how := range []string{"success", "failure"} {
		t.Run(how, func(t *testing.T) {
			everywhere(t, invoices, func(t *testing.T, w *world) {
				w.makeOut()
				w.create("i")
				goOn, done := w.held("i", "try", func(_ context.Context, a *lifecycle.Act[bill]) error {
					w.write(a, "old")
					return nil
				})
				w.advance(time.Hour)
				w.round()
				w.free("i", "open")
				next, nextDone := w.held("i", "close", func(_ context.Context, a *lifecycle.Act[bill]) error {
					w.write(a, "new")
					return nil
				})
				if how == "success" {
					goOn <- nil
				} else {
					goOn <- errOwn
				}
				err := <-done
				if !errors.Is(err, holdfast.ErrLeaseLost) || (how == "failure" && !errors.Is(err, errOwn)) {
					t.Errorf("the old holder got %v, want ErrLeaseLost", err)
				}
				if got := w.get("i"); got.Status != "closing" || got.Claimed == nil || got.Claimed.Epoch != 2 {
					t.Errorf("got new claim %+v, want epoch 2", got)
				}
				w.written("i")
				next <- nil
				if err := <-nextDone; err != nil {
					t.Errorf("the new holder got %v", err)
				}
				w.happened("i", "closed", "created", "claimed", "recovered", "claimed", "settled/close")
				w.written("i", "new")
			})
		})
	}
}

// Verifies that a row of Holdfast's own table that was edited into a claim status is leased in the next round
// of the janitor and, after stuck_after, reverted to the revert_to of that claim; and that other writes to
// the row do not delay this.
func TestARowEditedIntoAClaimIsAdopted(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		w.create("a", "b", "c", "untouched")
		w.round() // a round before the edit must not put off the one after it
		for id, status := range map[string]string{"a": "closing", "b": "trying"} {
			w.exec(`UPDATE holdfast_entity SET status = $1 WHERE id = $2`, status, id)
		}
		w.round()
		var until time.Time
		for id, status := range map[string]string{"a": "closing", "b": "trying"} {
			got := w.get(id)
			if got.Status != status || got.Claimed == nil || got.Claimed.Phase != "held" {
				t.Fatalf("after the next sweep, %s is %+v, want it still claimed", id, got)
			}
			if id == "b" {
				until = got.Claimed.Until
			}
		}
		w.advance(4 * time.Minute)
		w.exec(`UPDATE holdfast_entity SET data = '{"cents": 3}' WHERE id = 'b'`) // unrelated
		w.round()
		if got := w.get("b"); got.Claimed == nil || !got.Claimed.Until.Equal(until) {
			t.Errorf("got claim %+v, want until %s", got.Claimed, until)
		}
		_, err := w.fire("a", "close")
		testkit.WantCode(t, err, fault.ClaimFailed)
		w.advance(time.Minute)
		w.round()
		w.happened("a", "open", "created", "adopted", "recovered")
		w.happened("b", "open", "created", "adopted", "recovered")
		w.happened("untouched", "open", "created")
		if got, err := w.fire("a", "close"); err != nil || got.Status != "closed" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Verifies that one edit among more entities than a page is found too, by as many
// rounds as there are pages.
func TestAStrayIsFoundAmongMany(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		w.create("zz")
		err := w.e.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
			for _, id := range ids("i", 2100) {
				if _, err := w.l.Create(ctx, tx, id, bill{}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.exec(`UPDATE holdfast_entity SET status = 'closing' WHERE id = 'zz'`)
		w.round()
		w.round()
		if got := w.get("zz"); got.Claimed == nil {
			t.Errorf("after two sweeps, got %+v, want it claimed", got)
		}
	})
}

// Verifies that a status that was edited under a claim is not overwritten: a settle names the status that it
// leaves (law 1).
func TestAStatusEditedUnderAClaimIsNotOverwritten(t *testing.T) {
	each(t, invoices, func(t *testing.T, w *world) {
		w.makeOut()
		w.create("i")
		c := w.claim("i", "close")
		w.exec(`UPDATE holdfast_entity SET status = 'noted' WHERE id = 'i'`)
		if got, err := c.Settle(context.Background(), nil, w.writes("i", "me")); err == nil {
			t.Errorf("settle succeeded: %+v", got)
		}
		if got := w.get("i"); got.Status != "noted" {
			t.Errorf("got status %q, want noted", got.Status)
		}
		w.written("i")
	})
}

// uncovered is a lifecycle whose config asks for no janitor.
var uncovered = strings.Replace(invoices, "janitor: {stuck_after: 5m}\n", "", 1)

// cleaner is a module's own janitor.
type cleaner struct {
	mu     sync.Mutex
	seen   []lifecycle.Stuck
	fail   error
	panics any
	f      func(context.Context, holdfast.Tx, lifecycle.Stuck) error
}

func (c *cleaner) Recover(ctx context.Context, tx holdfast.Tx, all []lifecycle.Stuck) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, all...)
	for _, s := range all {
		if c.f != nil {
			if err := c.f(ctx, tx, s); err != nil {
				return err
			}
		}
	}
	if c.panics != nil {
		panic(c.panics)
	}
	return c.fail
}

func (c *cleaner) set(fail error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = fail
}

func (c *cleaner) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// partialCleaner covers only some statuses.
type partialCleaner struct {
	cleaner
	covers []string
}

func (p *partialCleaner) Covers() []string { return p.covers }

// Verifies that the error names every lifecycle with a claim that no janitor covers, not only the first, and that
// none of the lifecycles is registered.
func TestEveryUncoveredLifecycleIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		named := func(name string) string { return strings.Replace(uncovered, "workflow: invoice", "workflow: "+name, 1) }
		covered := unopened(t, db, named("order"))
		covered.l.RecoveredBy()
		_, err := holdfast.Open(context.Background(), databaseAt(db), holdfast.Config{Log: slog.New(slog.DiscardHandler)},
			covered.l, unopened(t, db, named("refund")).l, unopened(t, db, named("parcel")).l)
		testkit.WantCode(t, err, fault.Validation)
		text := fmt.Sprint(err)
		if !strings.Contains(text, `"refund"`) || !strings.Contains(text, `"parcel"`) || strings.Contains(text, `"order"`) {
			t.Errorf("got %q, want the lifecycles refund and parcel", text)
		}
		e, err := holdfast.Open(context.Background(), databaseAt(db), holdfast.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if shards, err := engine.Of(e).Shards(context.Background()); len(shards) > 0 || err != nil {
			t.Errorf("got shards %v, %v: a lifecycle was registered", shards, err)
		}
	})
}

// Verifies that a lifecycle with a claim that no janitor covers does not start, and that the error names the
// workflow, the statuses and the module; if a janitor covers only some statuses, the error names the others.
func TestAnUncoveredClaimIsRefused(t *testing.T) {
	all := []string{"closing", "trying", "hurrying", "rushing", "briefing"}
	onEach(t, func(t *testing.T, db string) {
		for name, c := range map[string]struct {
			by   []lifecycle.Janitor
			bare []string
		}{
			"nobody": {nil, all},
			"some":   {[]lifecycle.Janitor{&partialCleaner{covers: []string{"closing", "rushing", "briefing"}}}, []string{"trying", "hurrying"}},
			"two":    {[]lifecycle.Janitor{&partialCleaner{covers: all[:2]}, &partialCleaner{covers: all[2:]}}, nil},
			"all":    {[]lifecycle.Janitor{&cleaner{}}, nil},
		} {
			w := unopened(t, db, uncovered)
			if len(c.by) > 0 {
				w.l.RecoveredBy(c.by...)
			}
			e, err := holdfast.Open(context.Background(), databaseAt(db), holdfast.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, w.l)
			if c.bare == nil {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				continue
			}
			testkit.WantCode(t, err, fault.Validation)
			text := fmt.Sprint(err)
			for _, s := range append([]string{"invoice", "billing"}, c.bare...) {
				if !strings.Contains(text, s) {
					t.Errorf("%s: %q does not name %s", name, text, s)
				}
			}
			for _, s := range all {
				if len(c.bare) < len(all) && strings.Contains(text, s) != (s == "trying" || s == "hurrying") {
					t.Errorf("%s: got %q for status %s", name, text, s)
				}
			}
		}
		w := unopened(t, db, uncovered)
		w.l.RecoveredBy() // by the standard one
		w.open()
	})
}

// Verifies that a module's janitor is called in the transaction that reverts its entity: its error leaves the
// claim unchanged and rolls back its writes, other entities are still released, and once it succeeds, its
// writes and the revert are committed once.
func TestAModulesOwnJanitor(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, uncovered)
		c := &cleaner{}
		var failing error
		c.f = func(ctx context.Context, tx holdfast.Tx, s lifecycle.Stuck) error {
			err := w.writes(s.ID, "janitor")(ctx, tx)
			if s.ID == "i" {
				return errors.Join(err, failing)
			}
			return err
		}
		w.l.RecoveredBy(c)
		w.open()
		w.makeOut()
		w.create("i", "j")
		taken := w.claim("i", "try")
		w.claim("j", "close")
		w.round()
		if c.times() != 0 {
			t.Errorf("the cleaner got claims that are still leased: %+v", c.seen)
		}
		failing = errOwn
		w.advance(time.Hour)
		w.round()
		w.happened("j", "open", "created", "claimed", "recovered")
		w.written("j", "janitor")
		if got := w.get("i"); got.Status != "trying" || got.Version != 1 || got.Claimed == nil {
			t.Errorf("claim whose cleaner failed is %+v, want it unchanged", got)
		}
		w.written("i")
		failing, c.seen = nil, nil
		w.round()
		w.round()
		w.happened("i", "open", "created", "claimed", "recovered")
		w.written("i", "janitor")
		if len(c.seen) != 1 {
			t.Fatalf("the cleaner got %+v, want one claim", c.seen)
		}
		if s := c.seen[0]; s.Lifecycle != "invoice" || s.ID != "i" || s.ClaimStatus != "trying" || s.RevertTo != "open" || s.Operation != taken.Operation() ||
			s.Step != "try" || s.Requester != "admin" || s.Holder == "" || s.Since.IsZero() {
			t.Errorf("the cleaner got %+v", s)
		}
	})
}

// Verifies that a janitor that covers some statuses alone sees those alone; the
// others are freed by the standard one.
func TestAJanitorOfSomeStatuses(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, invoices)
		p := &partialCleaner{covers: []string{"trying"}}
		w.l.RecoveredBy(p)
		w.open()
		w.create("i", "j")
		w.claim("i", "try")
		w.claim("j", "close")
		w.advance(time.Hour)
		w.round()
		w.happened("i", "open", "created", "claimed", "recovered")
		w.happened("j", "open", "created", "claimed", "recovered")
		if len(p.seen) != 1 || p.seen[0].ID != "i" {
			t.Errorf("the cleaner got %+v, want only i", p.seen)
		}
	})
}

// Verifies that a module's janitor that keeps failing makes the engine report that it is unhealthy, until the
// janitor succeeds again.
func TestAFailingJanitorIsUnhealthy(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		ctx := context.Background()
		w := unopened(t, db, uncovered)
		c := &cleaner{fail: errOwn}
		w.l.RecoveredBy(c)
		w.e = w.engineWith(holdfast.Config{SweepEvery: 300 * time.Millisecond}, w.l)
		w.create("i")
		w.claim("i", "close")
		w.advance(time.Hour)
		w.run(w.e)
		testkit.Eventually(t, "the engine reports a failed sweep", func() bool {
			_, err := w.e.Status(ctx)
			return err != nil
		})
		if n := c.times(); n < 1 {
			t.Errorf("got %d calls of the cleaner, want at least 1", n)
		}
		if got := w.get("i"); got.Status != "closing" || got.Claimed == nil {
			t.Errorf("%+v", got)
		}
		c.set(nil)
		testkit.Eventually(t, "the engine reports no failure", func() bool {
			_, err := w.e.Status(ctx)
			return err == nil
		})
		w.happened("i", "open", "created", "claimed", "recovered")
	})
}

// Verifies that a module's janitor that panics is one that failed: the claim stays,
// others are freed, and the program lives.
func TestAJanitorThatPanics(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, invoices)
		p := &partialCleaner{covers: []string{"closing"}}
		p.panics = "boo"
		w.l.RecoveredBy(p)
		w.open()
		w.create("a", "b")
		w.claim("a", "close")
		w.claim("b", "try")
		w.advance(time.Hour)
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("the sweep panicked with %v: a running engine would end the program", p)
				}
			}()
			w.round()
		}()
		w.free("b", "open")
		p.panics = nil
		w.round()
		w.free("a", "open")
	})
}

// Verifies that a module's janitor does not see a claim under which an effect was
// begun: that one waits for whoever resumes it, or for a person.
func TestAModulesJanitorSeesNoEffects(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := unopened(t, db, uncovered)
		c := &cleaner{}
		w.l.RecoveredBy(c)
		w.open()
		w.create("j")
		begun := make(chan struct{})
		on := make(chan struct{})
		w.act("j", func(ctx context.Context, a *lifecycle.Act[bill]) error {
			_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (int, error) {
				close(begun)
				<-on
				return 0, errOwn
			})
			return err
		})
		end := make(chan error, 1)
		go func() {
			_, err := w.fire("j", "close")
			end <- err
		}()
		<-begun
		w.advance(time.Hour)
		w.round()
		if len(c.seen) != 0 {
			t.Errorf("the cleaner got %+v, want nothing", c.seen)
		}
		if got := w.get("j"); got.Status != "closing" || got.Claimed == nil || got.Claimed.Phase == "held" {
			t.Errorf("%+v, %+v", got, got.Claimed)
		}
		close(on)
		if err := <-end; !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("the old holder got %v, want ErrLeaseLost", err)
		}
		if got := w.get("j"); got.Status != "closing" || got.Claimed == nil {
			t.Errorf("%+v", got)
		}
	})
}

// Verifies that several janitors that run at once on several engines release each expired claim once.
func TestJanitorsAtOnceFreeOnce(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		config := invoices
		if w.own {
			config = inOwn(config)
		}
		other := unopened(t, w.db, config)
		other.open()
		all := ids("i", 30)
		w.create(all...)
		for _, id := range all {
			w.claim(id, "close")
		}
		w.advance(time.Hour)
		holdfasttest.Race(t, 4, func(i int) error {
			[]*world{w, other}[i%2].round()
			return nil
		})
		for _, id := range all {
			w.happened(id, "open", "created", "claimed", "recovered")
		}
	})
}

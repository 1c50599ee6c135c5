package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// shipments is a lifecycle in which "moving" is a claim status or, if plain, one like any
// other; steps are added to those that both have.
func shipments(plain bool, steps ...string) string {
	move := `{"step_id": 1, "step_key": "move", "status": "here", "successful_claim_state": ["moving", "here"], "successful_state": "there", "failed_state": "lost", "action": "Do", "success_after_effect": "Tell"},
		{"step_id": 2, "step_key": "find", "status": "lost", "successful_state": "here"}`
	if plain {
		move = `{"step_id": 1, "step_key": "leave", "status": "here", "successful_state": "moving"}, {"step_id": 2, "step_key": "arrive", "status": "moving", "successful_state": "there"},
		{"step_id": 3, "step_key": "lose", "status": "moving", "successful_state": "lost"}, {"step_id": 4, "step_key": "find", "status": "lost", "successful_state": "here"}`
	}
	return fmt.Sprintf(`{"workflow": "shipment", "owning_module": "post", "initial_status": "here", "status_types": ["here", "moving", "there", "lost"], "janitor": {"stuck_after": "5m"},
		"steps": [%s]}`, strings.Join(append([]string{move}, steps...), ",\n"))
}

// depot is a lifecycle whose config is replaced while its entities are in operations.
type depot struct {
	*yard
}

// eachDepot runs a test with the claimed config in force, on both databases; "Do" is a
// worker's, and journals.
func eachDepot(t *testing.T, f func(*depot)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) {
		e := holdfasttest.OpenOn(t, databaseAt(db), lifecycle.Published(newRemoteHandlers().call))
		d := &depot{&yard{t: t, ctx: holdfast.InWorkspace(t.Context(), "acme"), e: e}}
		d.workers("journaled", "Do")
		d.workers("transactional", "Tell")
		if err := d.put(shipments(false)); err != nil {
			t.Fatal(err)
		}
		d.l = d.now()
		f(d)
	})
}

func (d *depot) put(config string) error {
	_, err := lifecycleengine.PutConfig(d.ctx, engine.Of(d.e), "shipment", []byte(config), false)
	return err
}

// now is the lifecycle as it is in force.
func (d *depot) now() *lifecycleengine.Lifecycle {
	d.t.Helper()
	l, err := lifecycleengine.Named(d.ctx, engine.Of(d.e), "shipment")
	if err != nil {
		d.t.Fatal(err)
	}
	return l
}

func (d *depot) create(ids ...string) {
	d.t.Helper()
	for _, id := range ids {
		if _, err := d.now().CreateAt(d.ctx, engine.Of(d.e), id, "", []byte(`{}`), "me"); err != nil {
			d.t.Fatal(err)
		}
	}
}

// at fails unless an entity is at a status, and free.
func (d *depot) at(id, status string) {
	d.t.Helper()
	e, err := d.now().Get(d.ctx, engine.Of(d.e), id)
	if err != nil || e.Status != status || e.Claimed != nil {
		d.t.Errorf("%s: got status %q, claimed by %+v (%v), want %q, unclaimed", id, e.Status, e.Claimed, err, status)
	}
}

// held is a claim as a request over HTTP finds it again.
func (d *depot) held(id string) *lifecycleengine.Claim {
	d.t.Helper()
	e, err := d.now().Get(d.ctx, engine.Of(d.e), id)
	if err == nil && e.Claimed == nil {
		d.t.Fatalf("%s is not claimed", id)
	}
	var c *lifecycleengine.Claim
	if err == nil {
		c, err = d.now().Held(d.ctx, engine.Of(d.e), id, e.Claimed.ID, e.Claimed.Epoch)
	}
	if err != nil {
		d.t.Fatalf("held %s: %v", id, err)
	}
	return c
}

// wantStranded fails unless a config was refused because it would strand count entities.
func wantStranded(t testing.TB, err error, count int64, words ...string) {
	t.Helper()
	f, _ := errors.AsType[*fault.Error](err)
	if fault.CodeOf(err) != fault.Validation || f == nil || f.Fields["count"] != count {
		t.Errorf("config that strands %d entities: got %v, want a validation error with the count", count, err)
		return
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("the error lacks %q: %s", w, f.Message)
		}
	}
}

// TestAClaimOutlivesItsConfig verifies that an operation keeps the claim and the targets that it was taken
// with. Under a config in which its claim status is no longer one, it settles, fails, expires and is refused
// as before, and its after-effect is delivered.
func TestAClaimOutlivesItsConfig(t *testing.T) {
	eachDepot(t, func(d *depot) {
		d.create("success", "failure", "invalid", "expired", "late")
		for _, id := range []string{"success", "failure", "invalid", "expired", "late"} {
			if _, err := d.l.Claim(d.ctx, engine.Of(d.e), id, "move", "admin", lifecycleengine.FireOptions{Lease: time.Minute}); err != nil {
				d.t.Fatal(err)
			}
		}
		if err := d.put(shipments(true)); err != nil {
			d.t.Fatal(err)
		}
		for id, o := range map[string]lifecycle.Outcome{"success": lifecycle.Success, "failure": lifecycle.Failure, "invalid": lifecycle.Rejected} {
			if _, err := d.held(id).Settle(d.ctx, lifecycleengine.Outcome(o), nil, nil); err != nil {
				d.t.Errorf("%s: %v", id, err)
			}
		}
		late := d.held("late")
		holdfasttest.Advance(d.t, d.e, 2*time.Minute)
		engine.Of(d.e).Round(d.ctx)
		for id, status := range map[string]string{"success": "there", "failure": "lost", "invalid": "here", "expired": "here", "late": "here"} {
			d.at(id, status)
		}
		if _, err := late.Settle(d.ctx, lifecycleengine.Success, nil, nil); fault.CodeOf(err) != fault.LeaseLost {
			d.t.Errorf("late success: got %v, want LEASE_LOST", err)
		}
	})
}

// TestAStepIsRemovedUnderItsWorker verifies that a worker can complete a step with a recorded effect after
// the step and its handler were removed from the config; that a person can do so if the worker has died; and
// that an operation that waits for its worker is handed out.
func TestAStepIsRemovedUnderItsWorker(t *testing.T) {
	eachDepot(t, func(d *depot) {
		d.create("held", "died", "waiting")
		fire := func(id string) {
			if _, err := d.l.Fire(d.ctx, engine.Of(d.e), id, "move", "admin", lifecycleengine.FireOptions{}); fault.CodeOf(err) != fault.ActionFailed {
				d.t.Fatalf("fire: %v", err)
			}
		}
		take := func(id string) remote.Task {
			x := d.one("Do")
			if x.Entity.ID != id {
				d.t.Fatalf("claimed %s, want %s", x.Entity.ID, id)
			}
			return x
		}
		charge := func(x remote.Task, result string) {
			if _, err := workers(d.e).Effect(d.ctx, leaseOf(x), remote.Effect{Name: "charge", Result: json.RawMessage(result)}); err != nil {
				d.t.Fatal(err)
			}
		}
		fire("died")
		died := take("died")
		charge(died, "")
		charge(died, `"c1"`)
		holdfasttest.Advance(d.t, d.e, 2*time.Minute)
		fire("held")
		held := take("held")
		charge(held, "")
		fire("waiting")
		if err := d.put(shipments(true)); err != nil {
			d.t.Fatal(err)
		}
		charge(held, `"c2"`)
		if _, err := workers(d.e).Renew(d.ctx, leaseOf(held), time.Minute); err != nil {
			d.t.Errorf("renew: %v", err)
		}
		if _, err := workers(d.e).Complete(d.ctx, leaseOf(held), remote.Result{}); err != nil {
			d.t.Errorf("complete: %v", err)
		}
		d.at("held", "there")
		waiting := take("waiting")
		if _, err := workers(d.e).Complete(d.ctx, leaseOf(waiting), remote.Result{}); err != nil {
			d.t.Errorf("complete: %v", err)
		}
		d.at("waiting", "there")

		engine.Of(d.e).Round(d.ctx) // it is due, and taken by a worker that fails for good
		died = take("died")
		if _, err := workers(d.e).Fail(d.ctx, leaseOf(died), remote.Failure{Message: "no", Final: true}); err != nil {
			d.t.Fatal(err)
		}
		if _, err := lifecycle.Resolve(d.ctx, d.e, died.Operation, nil, lifecycle.EndWith(lifecycle.Success), lifecycle.By("mia")); err != nil {
			d.t.Errorf("resolve: %v", err)
		}
		d.at("died", "there")
	})
}

// TestAStatusBecomesAClaim verifies that a config that turns a status into a claim status is refused with a
// count while entities are in that status or will move to it; and that it takes effect once there are none,
// after which only a claim leads to the status.
func TestAStatusBecomesAClaim(t *testing.T) {
	eachDepot(t, func(d *depot) {
		if err := d.put(shipments(true)); err != nil {
			d.t.Fatal(err)
		}
		d.create("a", "b", "c")
		plain := d.now()
		for _, id := range []string{"a", "b"} {
			if _, err := plain.Fire(d.ctx, engine.Of(d.e), id, "leave", "admin", lifecycleengine.FireOptions{}); err != nil {
				d.t.Fatal(err)
			}
		}
		wantStranded(d.t, d.put(shipments(false)), 2, `2 in "moving"`, "claim status")
		for id, step := range map[string]string{"a": "arrive", "b": "lose"} {
			if _, err := plain.Fire(d.ctx, engine.Of(d.e), id, step, "admin", lifecycleengine.FireOptions{}); err != nil {
				d.t.Fatalf("after the refusal: %v", err)
			}
		}
		if err := d.put(shipments(false)); err != nil {
			d.t.Fatal(err)
		}
		if _, err := plain.Fire(d.ctx, engine.Of(d.e), "c", "leave", "admin", lifecycleengine.FireOptions{}); fault.CodeOf(err) != fault.Concurrency {
			d.t.Errorf("fire by the old config into a status that is now a claim status: got %v, want ErrConcurrency", err)
		}
		d.at("c", "here")
	})
}

// TestATargetIsTakenAway verifies that a config is refused, with advice, if it lacks the target status of an
// operation in flight or makes it a claim status; and that the attempt does not affect the operation.
func TestATargetIsTakenAway(t *testing.T) {
	eachDepot(t, func(d *depot) {
		d.create("a")
		if _, err := d.l.Claim(d.ctx, engine.Of(d.e), "a", "move", "admin", lifecycleengine.FireOptions{}); err != nil {
			d.t.Fatal(err)
		}
		gone := strings.ReplaceAll(shipments(false), `"there"`, `"elsewhere"`)
		wantStranded(d.t, d.put(gone), 1, `"there"`, "operation")
		claims := strings.Replace(gone, `"lost"]`, `"lost", "there"]`, 1)
		claims = strings.Replace(claims, `"steps": [`, `"steps": [{"step_id": 9, "step_key": "seek", "status": "here", "successful_claim_state": ["there", "here"], "successful_state": "lost"},`, 1)
		wantStranded(d.t, d.put(claims), 1, `"there"`, "operation")
		if _, err := d.held("a").Settle(d.ctx, lifecycleengine.Success, nil, nil); err != nil {
			d.t.Fatal(err)
		}
		d.at("a", "there")
	})
}

// TestRowsEditedIntoAClaimAreAdopted verifies that a row that was edited into a claim status is leased and
// reverted for a published lifecycle too, by the config of its own workspace.
func TestRowsEditedIntoAClaimAreAdopted(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		e := holdfasttest.OpenOn(t, databaseAt(db), lifecycle.Published(newRemoteHandlers().call))
		for _, space := range []string{"acme", "other"} {
			d := &depot{&yard{t: t, ctx: holdfast.InWorkspace(t.Context(), space), e: e}}
			d.workers("journaled", "Do")
			d.workers("transactional", "Tell")
			if err := d.put(shipments(space == "other")); err != nil {
				t.Fatal(err)
			}
			d.create("a")
		}
		err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			return execIn(ctx, tx, `UPDATE holdfast_entity SET status = 'moving'`)
		})
		if err != nil {
			t.Fatal(err)
		}
		round := func() { engine.Of(e).Round(t.Context()) }
		round()
		acme := &depot{&yard{t: t, ctx: holdfast.InWorkspace(t.Context(), "acme"), e: e}}
		if got, err := acme.now().Get(acme.ctx, engine.Of(e), "a"); err != nil || got.Claimed == nil {
			t.Errorf("entity is not claimed: %+v, %v", got, err)
		}
		holdfasttest.Advance(t, e, 6*time.Minute)
		round()
		acme.at("a", "here")
		other := &depot{&yard{t: t, ctx: holdfast.InWorkspace(t.Context(), "other"), e: e}}
		other.at("a", "moving") // there it is a status like any other
	})
}

// TestCheckTellsWhoIsStranded verifies that a check reports an entity in a status that the config does not
// have, an unclaimed entity in a claim status, an operation that leads to a status that is not allowed, and
// an operation of an earlier program that could not end.
func TestCheckTellsWhoIsStranded(t *testing.T) {
	eachDepot(t, func(d *depot) {
		d.create("free", "held")
		if _, err := d.l.Claim(d.ctx, engine.Of(d.e), "held", "move", "admin", lifecycleengine.FireOptions{}); err != nil {
			d.t.Fatal(err)
		}
		check := func() string {
			r, err := d.e.Check(d.ctx)
			if err != nil {
				d.t.Fatal(err)
			}
			return r.String()
		}
		exec := func(text string) {
			err := d.e.Update(d.ctx, func(ctx context.Context, tx holdfast.Tx) error {
				return execIn(ctx, tx, text)
			})
			if err != nil {
				d.t.Fatal(err)
			}
		}
		const statuses, claims = `["here","moving","there","lost"]`, `["moving"]`
		for _, x := range []struct{ damage, repair, want string }{
			{`UPDATE holdfast_entity SET status = 'nowhere' WHERE id = 'free'`, `UPDATE holdfast_entity SET status = 'here' WHERE id = 'free'`, "entity shipment/free in workspace acme: the status does not exist in the lifecycle's config"},
			{`UPDATE holdfast_entity SET status = 'moving' WHERE id = 'free'`, `UPDATE holdfast_entity SET status = 'here' WHERE id = 'free'`, "entity shipment/free in workspace acme: the entity is in a claim status without a claim"},
			{`UPDATE holdfast_lifecycle SET statuses = '["here","moving","lost"]'`, `UPDATE holdfast_lifecycle SET statuses = '` + statuses + `'`, "entity shipment/held in workspace acme: the operation leads to a status"},
			{`UPDATE holdfast_lifecycle SET claims = '["moving","lost"]'`, `UPDATE holdfast_lifecycle SET claims = '` + claims + `'`, "entity shipment/held in workspace acme: the operation leads to a status"},
			{`UPDATE holdfast_entity SET plan = NULL; UPDATE holdfast_lifecycle SET claims = '[]'`, `UPDATE holdfast_lifecycle SET claims = '` + claims + `'`, "entity shipment/held in workspace acme: the entity of the operation is in a status that is no longer a claim status"},
		} {
			if found := check(); found != "" {
				d.t.Errorf("before %s: check reported %s", x.damage, found)
			}
			for _, text := range strings.Split(x.damage, "; ") {
				exec(text)
			}
			if found := check(); !strings.Contains(found, x.want) || strings.Count(found, "\n") != 1 {
				d.t.Errorf("%s is reported as %q", x.damage, found)
			}
			exec(x.repair)
		}
		wantStranded(d.t, d.put(shipments(true)), 1, "operation") // its plan is not known
	})
}

// cratesOf is a lifecycle of a program in which "packing" is a claim status or, if plain, one
// like any other. Its action journals, unless it is gone.
func cratesOf(plain bool, pack func(context.Context, *lifecycle.Act[bill]) error) *lifecycle.Lifecycle[bill] {
	config := `
workflow: crate
owning_module: post
status_types: [open, packing, sent]
initial_status: open
janitor: {stuck_after: 5m}
steps:
`
	if plain {
		return lifecycle.MustParse[bill]([]byte(config + `
- {step_id: 1, step_key: pack, status: open, successful_state: packing}
- {step_id: 2, step_key: send, status: packing, successful_state: sent}
`))
	}
	return lifecycle.MustParse[bill]([]byte(config+`
- {step_id: 1, step_key: pack, status: open, successful_claim_state: [packing, open], successful_state: sent, action: Pack}
`)).Action("Pack", pack, lifecycle.Journaled())
}

// TestAProgramsClaimOutlivesItsConfig verifies that a body that runs while a program with another config
// starts is settled as it was claimed; that an operation with an effect whose step and handler are gone is
// parked, and that a person can end it as a success; and that such an operation without an effect is
// reverted.
func TestAProgramsClaimOutlivesItsConfig(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		ctx := t.Context()
		w := unopened(t, db, invoices)
		goOn, packed := make(chan struct{}), make(chan struct{})
		died := errors.New("it dies")
		old := cratesOf(false, func(ctx context.Context, a *lifecycle.Act[bill]) error {
			if a.Entity.ID == "running" {
				close(packed)
				<-goOn
				return nil
			}
			if _, err := holdfast.Effect(ctx, "label", func(context.Context, string) (int, error) { return 7, nil }); err != nil {
				return err
			}
			return died
		})
		one := w.engine(old)
		for _, id := range []string{"running", "charged", "claimed"} {
			if _, err := old.Create(ctx, one, id, bill{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := old.Fire(ctx, one, "charged", "pack", "admin"); fault.CodeOf(err) != fault.ActionFailed {
			t.Fatal(err)
		}
		if _, err := old.Claim(ctx, one, "claimed", "pack", "admin", lifecycle.Lease(time.Minute)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := old.Fire(ctx, one, "running", "pack", "admin")
			ended <- err
		}()
		<-packed
		now := cratesOf(true, nil)
		two := w.engine(now)
		close(goOn)
		if err := <-ended; err != nil {
			t.Errorf("running body: %v", err)
		}
		at := func(id, want string) {
			t.Helper()
			e, err := now.Get(ctx, two, id)
			got := e.Status
			if e.Claimed != nil {
				got += " " + string(e.Claimed.Phase)
			}
			if err != nil || got != want {
				t.Errorf("%s: got %s, %v, want %s", id, got, err, want)
			}
		}
		at("running", "sent")
		at("charged", "packing due")
		holdfasttest.Advance(t, two, 2*time.Minute)
		engine.Of(two).Round(ctx)
		at("claimed", "open")
		stop := w.run(two)
		testkit.Eventually(t, "the operation is parked", func() bool {
			e, err := now.Get(ctx, two, "charged")
			return err == nil && e.Claimed != nil && e.Claimed.Phase == "uncertain"
		})
		stop()
		all, err := holdfast.Collect(lifecycle.ListOperations(ctx, two, lifecycle.OperationFilter{Phase: lifecycle.Uncertain}))
		if err != nil || len(all) != 1 || all[0].Error != `handler "Pack" no longer exists` {
			t.Fatalf("got uncertain operations %+v, %v", all, err)
		}
		if _, err := lifecycle.Resolve(ctx, two, all[0].ID, nil, lifecycle.EndWith(lifecycle.Success), lifecycle.By("mia")); err != nil {
			t.Error(err)
		}
		at("charged", "sent")
	})
}

// TestAStatusBecomesAClaimDuringSteps verifies that, with steps in flight on a node that knows the old
// config, a config that turns their target into a claim status either is refused, or takes effect and leaves
// no unclaimed entity in that status.
func TestAStatusBecomesAClaimDuringSteps(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		ctx := t.Context()
		w := unopened(t, db, invoices)
		old := cratesOf(true, nil)
		one := w.engine(old)
		came := 0
		for round := range 8 {
			ids := ids(fmt.Sprint("r", round, "-"), 3)
			for _, id := range ids {
				if _, err := old.Create(ctx, one, id, bill{}); err != nil {
					t.Fatal(err)
				}
			}
			_, lost := holdfasttest.Race(t, len(ids)+1, func(i int) error {
				if i < len(ids) {
					_, err := old.Fire(ctx, one, ids[i], "pack", "admin")
					return err
				}
				two, err := openWith(ctx, databaseAt(db), cratesOf(false, func(context.Context, *lifecycle.Act[bill]) error { return nil }))
				if err == nil {
					came++
					err = two.Close()
				}
				return err
			})
			for _, err := range lost {
				if code := fault.CodeOf(err); code != fault.Validation && code != fault.Concurrency {
					t.Errorf("round %d: got %v, want a validation or concurrency error", round, err)
				}
			}
			for _, id := range ids {
				e, err := old.Get(ctx, one, id)
				if err != nil || came > 0 && e.Status == "packing" {
					t.Errorf("%s: got status %q, %v, but the claim status is in force", id, e.Status, err)
				}
				if e.Status == "packing" {
					if _, err := old.Fire(ctx, one, id, "send", "admin"); err != nil {
						t.Fatal(err)
					}
				}
			}
			if came > 0 { // back to the old one
				came = 0
				again, err := openWith(ctx, databaseAt(db), cratesOf(true, nil))
				if err != nil {
					t.Fatal(err)
				}
				if err := again.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestARowOfTheUsersOwnStandsWhereAClaimComes verifies that a config that turns a status into a claim status
// is refused, with a count, while unclaimed rows of a user table are in that status.
func TestARowOfTheUsersOwnStandsWhereAClaimComes(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		ctx := t.Context()
		w := unopened(t, db, invoices)
		w.prepare(ownTable, `INSERT INTO bills (nr, state) VALUES ('b1', 'packing'), ('b2', 'open')`)
		ofRows := func(plain bool) *lifecycle.Lifecycle[bill] {
			l := lifecycle.MustParse[bill]([]byte(inOwn(string(lifecycle.Inner(cratesOf(plain, nil)).Source()))))
			if !plain {
				l.Action("Pack", func(context.Context, *lifecycle.Act[bill]) error { return nil }, lifecycle.Journaled())
			}
			return l
		}
		old := ofRows(true)
		one := w.engine(old)
		_, err := openWith(ctx, databaseAt(db), ofRows(false))
		wantStranded(t, err, 1, `1 in "packing"`, "claim status")
		if _, err := old.Fire(ctx, one, "b1", "send", "admin"); err != nil {
			t.Fatal(err)
		}
		w.engine(ofRows(false))
	})
}

// TestAnAfterEffectOutlivesItsConfig verifies that an after-effect which is a URL, and is due when the
// config does not name it any more, is delivered by a node that starts later.
func TestAnAfterEffectOutlivesItsConfig(t *testing.T) {
	eachPublished(t, func(t *testing.T, e *holdfast.Engine, far *remoteHandlers, other func() *holdfast.Engine) {
		ctx := holdfast.InWorkspace(t.Context(), "acme")
		declare(t, ctx, e, "transactional", "Send", "MaySend", "Tell")
		put(t, ctx, e, parcels)
		l := parcelsOf(t, ctx, e)
		if _, err := l.CreateAt(ctx, engine.Of(e), "p1", "", []byte(`{}`), "me"); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Fire(ctx, engine.Of(e), "p1", "send", "admin", lifecycleengine.FireOptions{}); err != nil {
			t.Fatal(err)
		}
		put(t, ctx, e, strings.Replace(parcels, `, "success_after_effect": "Tell"`, ``, 1))
		testkit.Run(t, other())
		select {
		case id := <-far.delivered:
			if id != "p1" {
				t.Errorf("delivered for %s, want p1", id)
			}
		case <-time.After(time.Minute):
			t.Fatal("the after-effect was not delivered")
		}
	})
}

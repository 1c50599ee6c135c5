package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// letters is a lifecycle that goes from draft to sent, or through review.
func letters(reviewed bool) *lifecycle.Lifecycle[struct{}] {
	config := `{"workflow": "letters", "owning_module": "post", "status_types": ["draft", "sent"], "initial_status": "draft",
		"steps": [{"step_id": 1, "step_key": "send", "status": "draft", "successful_state": "sent"}]}`
	if reviewed {
		config = `{"workflow": "letters", "owning_module": "post", "status_types": ["draft", "review", "sent"], "initial_status": "draft",
		"steps": [{"step_id": 1, "step_key": "send", "status": ["draft", "review"], "successful_state": "sent"},
			{"step_id": 2, "step_key": "review", "status": "draft", "successful_state": "review"}]}`
	}
	return lifecycle.MustParse[struct{}]([]byte(config))
}

// eachDatabase runs a test on a database of each kind that several engines can be
// opened on.
func eachDatabase(t *testing.T, f func(*testing.T, holdfast.Database)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) { f(t, holdfasttest.At(db)) })
}

func openWith(ctx context.Context, db holdfast.Database, parts ...holdfast.Part) (*holdfast.Engine, error) {
	return holdfast.Open(ctx, db, holdfast.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, parts...)
}

// TestAConfigStrandsNobody verifies that a config is refused, with a count, if it lacks a status that
// entities are in, and that the current config stays in force; and that the new config takes effect once the
// entities have moved, and then binds nodes that know the old one.
func TestAConfigStrandsNobody(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db holdfast.Database) {
		ctx := t.Context()
		before, after := letters(true), letters(false)
		one, err := openWith(ctx, db, before)
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		for i := range 3 {
			id := fmt.Sprint("l", i)
			if _, err := before.Create(ctx, one, id, struct{}{}); err != nil {
				t.Fatal(err)
			}
			if _, err := before.Fire(ctx, one, id, "review", "clerk"); err != nil {
				t.Fatal(err)
			}
		}
		_, err = openWith(ctx, db, after)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.Validation || f.Fields["count"] != int64(3) || !strings.Contains(f.Message, `3 in "review"`) {
			t.Fatalf("config that strands three: got %v, want a validation error with the count", err)
		}
		if _, err := before.Create(ctx, one, "more", struct{}{}); err != nil {
			t.Fatal(err)
		}
		if _, err := before.Fire(ctx, one, "more", "review", "clerk"); err != nil {
			t.Fatalf("the old config is not in force after the refusal: %v", err)
		}
		for _, id := range []string{"l0", "l1", "l2", "more"} {
			if _, err := before.Fire(ctx, one, id, "send", "clerk"); err != nil {
				t.Fatal(err)
			}
		}
		two, err := openWith(ctx, db, after)
		if err != nil {
			t.Fatal(err)
		}
		defer two.Close()
		if _, err := before.Create(ctx, one, "last", struct{}{}); err != nil {
			t.Fatal(err)
		}
		if _, err := before.Fire(ctx, one, "last", "review", "clerk"); !errors.Is(err, holdfast.ErrConcurrency) {
			t.Fatalf("a node with the old config moved an entity to a removed status: %v", err)
		}
	})
}

// TestAChangeOfConfigRacesSteps verifies that, with steps in flight on nodes that know the old config, a
// change either is refused with the number of entities that it would strand, or takes effect and strands
// none.
func TestAChangeOfConfigRacesSteps(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db holdfast.Database) {
		ctx := t.Context()
		before := letters(true)
		one, err := openWith(ctx, db, before)
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		came, was, took := 0, 0, time.Millisecond
		for round := range 8 {
			ids := make([]string, 2)
			for i := range ids {
				ids[i] = fmt.Sprint("r", round, "-", i)
				if _, err := before.Create(ctx, one, ids[i], struct{}{}); err != nil {
					t.Fatal(err)
				}
			}
			var group sync.WaitGroup
			for _, id := range ids {
				at := took/2 + rand.N(took) // now before the change, now after it
				group.Go(func() {
					_ = clock.Wait(ctx, at)
					if _, err := before.Fire(ctx, one, id, "review", "clerk"); err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
						t.Errorf("review: %v", err)
					}
				})
			}
			begun := clock.Now()
			two, err := openWith(ctx, db, letters(false))
			took = clock.Since(begun)
			if err != nil && fault.CodeOf(err) != fault.Validation {
				t.Fatal(err)
			}
			group.Wait()
			if err == nil {
				came++
				for _, id := range ids {
					if e, err := before.Get(ctx, one, id); err != nil || e.Status == "review" {
						t.Errorf("the new config is in force, but %s is %q, %v", id, e.Status, err)
					}
				}
				if err := two.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				was++
			}
			for _, id := range ids { // so that the next may come into force
				if _, err := before.Fire(ctx, one, id, "send", "clerk"); err != nil {
					t.Fatal(err)
				}
			}
			again, err := openWith(ctx, db, letters(true))
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%d changes applied, %d refused", came, was)
	})
}

// TestAConfigStrandsNoRowOfTheUsersOwn verifies that a config is refused, with a count, if it lacks a status
// that rows of a user table are in.
func TestAConfigStrandsNoRowOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	config := func(statuses, steps string) []byte {
		return fmt.Appendf(nil, `{"workflow": "parcels", "owning_module": "post", "initial_status": "packed", "entity_table": "parcels",
			"status_types": %s, "steps": %s}`, statuses, steps)
	}
	before := config(`["packed", "lost", "sent"]`, `[{"step_id": 1, "step_key": "send", "status": ["packed", "lost"], "successful_state": "sent"},
		{"step_id": 2, "step_key": "lose", "status": "packed", "successful_state": "lost"}]`)
	after := config(`["packed", "sent"]`, `[{"step_id": 1, "step_key": "send", "status": "packed", "successful_state": "sent"}]`)
	eachDatabase(t, func(t *testing.T, db holdfast.Database) {
		ctx := t.Context()
		bare, err := openWith(ctx, db)
		if err != nil {
			t.Fatal(err)
		}
		rows := `INSERT INTO parcels VALUES (1, 'lost', 0), (2, 'lost', 0), (3, 'packed', 0)`
		err = bare.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			for _, text := range []string{`CREATE TABLE parcels (id bigint PRIMARY KEY, status text NOT NULL, version bigint NOT NULL)`, rows} {
				if err := execIn(ctx, tx, text); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer bare.Close()
		one, err := openWith(ctx, db, lifecycle.MustParse[struct{}](before))
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		_, err = openWith(ctx, db, lifecycle.MustParse[struct{}](after))
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.Validation || f.Fields["count"] != int64(2) {
			t.Fatalf("config that strands two rows: got %v, want a validation error with the count", err)
		}
	})
}

// execIn runs a statement in a transaction of the engine's.
func execIn(ctx context.Context, tx holdfast.Tx, text string) error {
	_, err := storetest.Exec(ctx, tx, text)
	return err
}

// TestAnUnfinishedChangeIsTakenBack verifies that a change of a config whose node died
// in the middle of it does not bind the others for ever: who is refused by it after a
// while takes it back, and is served when it asks again.
func TestAnUnfinishedChangeIsTakenBack(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db holdfast.Database) {
		ctx := t.Context()
		l := letters(true)
		hf, err := openWith(ctx, db, l)
		if err != nil {
			t.Fatal(err)
		}
		defer hf.Close()
		if _, err := l.Create(ctx, hf, "l", struct{}{}); err != nil {
			t.Fatal(err)
		}
		err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			if _, err := store.Raise(ctx, store.TxOf(tx)); err != nil {
				return err
			}
			return execIn(ctx, tx, `UPDATE holdfast_lifecycle SET wanted = '["draft","sent"]'`)
		})
		if err != nil {
			t.Fatal(err)
		}
		review := func() error {
			_, err := l.Fire(ctx, hf, "l", "review", "clerk")
			return err
		}
		for range 2 { // it may still be at it
			if err := review(); !errors.Is(err, holdfast.ErrConcurrency) {
				t.Fatalf("fire during a config check: got %v, want ErrConcurrency", err)
			}
		}
		holdfasttest.Advance(t, hf, 3*time.Minute)
		if err := review(); !errors.Is(err, holdfast.ErrConcurrency) {
			t.Fatalf("the first after a while: %v", err)
		}
		if err := review(); err != nil {
			t.Errorf("fire after the config check: %v", err)
		}
	})
}

// TestNodesBringOneConfigAtOnce verifies that nodes which bring the same new config at
// the same moment all start: none of them makes another begin anew until it gives up.
func TestNodesBringOneConfigAtOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db holdfast.Database) {
		ctx := t.Context()
		hf, err := openWith(ctx, db) // the schema is there
		if err != nil {
			t.Fatal(err)
		}
		defer hf.Close()
		const nodes = 8
		won, lost := holdfasttest.Race(t, nodes, func(int) error {
			hf, err := openWith(ctx, db, letters(true))
			if err == nil {
				err = hf.Close()
			}
			return err
		})
		if won != nodes {
			t.Errorf("%d of %d nodes started: %v", won, nodes, lost)
		}
	})
}

// TestARegistryThatWentBack verifies that a node continues when the database has lost its last registrations,
// as after a failover to a standby that was behind. The node then remembers a later revision than the
// database has.
func TestARegistryThatWentBack(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db holdfast.Database) {
		ctx := t.Context()
		l := letters(true)
		hf, err := openWith(ctx, db, l)
		if err != nil {
			t.Fatal(err)
		}
		defer hf.Close()
		if _, err := l.Create(ctx, hf, "a", struct{}{}); err != nil {
			t.Fatal(err)
		}
		err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			return execIn(ctx, tx, `UPDATE holdfast_registry SET revision = revision - 1`)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Create(ctx, hf, "b", struct{}{}); err != nil {
			t.Error(err)
		}
	})
}

// TestOptionsWithoutEffectAreRefused verifies that an option that a handler cannot have, and an empty list of workspaces,
// are refused when the engine opens.
func TestOptionsWithoutEffectAreRefused(t *testing.T) {
	f := func(context.Context, *lifecycle.Act[bill]) error { return nil }
	for want, add := range map[string]func(*lifecycle.Lifecycle[bill]){
		"Journaled and Opaque":      func(l *lifecycle.Lifecycle[bill]) { l.AfterEffect("Tell", f, lifecycle.Opaque()) },
		"apply only to actions":     func(l *lifecycle.Lifecycle[bill]) { l.Validation("Look", f, lifecycle.Journaled()) },
		"must not be negative":      func(l *lifecycle.Lifecycle[bill]) { l.AfterEffect("Tell", f, lifecycle.Timeout(-time.Second)) },
		"InWorkspaces has no works": func(l *lifecycle.Lifecycle[bill]) { l.InWorkspaces() },
	} {
		l := lifecycle.MustParse[bill]([]byte(`{"workflow": "bill", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closed"],
			"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": {"admin": "closed"}}]}`))
		add(l)
		if _, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, l); !errors.Is(err, holdfast.ErrValidation) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrValidation with %q", err, want)
		}
	}
}

// Verifies that a handler with a name that is taken or empty is refused when the engine opens, as other mistakes are.
func TestHandlersHaveTheirOwnNames(t *testing.T) {
	act := func(context.Context, *lifecycle.Act[bill]) error { return nil }
	for name, want := range map[string]error{"Act": holdfast.ErrConflict, "": holdfast.ErrValidation} {
		l := lifecycle.MustParse[bill]([]byte(`{"workflow": "bill", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closed"],
			"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": {"admin": "closed"}, "action": {"admin": "Act"}}]}`)).
			Action("Act", act, lifecycle.Idempotent()).Action(name, act, lifecycle.Idempotent())
		if _, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, l); !errors.Is(err, want) {
			t.Errorf("handler %q: got %v, want %v", name, err, want)
		}
	}
}

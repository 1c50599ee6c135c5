package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
)

// gathering is a Doer that holds every command back until it is run together with the others.
type gathering struct {
	store.PublicDoer
	commands chan store.Command
	done     chan struct{}
	err      error
}

func gather() *gathering {
	return &gathering{commands: make(chan store.Command), done: make(chan struct{})}
}

func (g *gathering) Do(_ context.Context, c store.Command) error {
	g.commands <- c
	<-g.done
	return g.err
}

func (g *gathering) Partition(context.Context, store.Lane) (store.Partition, error) {
	return store.Partition{Workspace: store.DefaultWorkspace}, nil
}

// together runs calls of one verb as members of one statement and returns each result. It runs the
// general statement, or a group as waiting callers form it.
func together[R any](t *testing.T, s *adapter, grouped bool, verbName string, calls ...func(store.Doer) (R, error)) ([]R, []error) {
	t.Helper()
	g := gather()
	answers, errs := make([]R, len(calls)), make([]error, len(calls))
	ended := make(chan struct{})
	members := make([]store.Command, len(calls))
	var args store.Args
	for i, call := range calls {
		go func() {
			answers[i], errs[i] = call(g)
			ended <- struct{}{}
		}()
		members[i] = <-g.commands // one by one, so that the order is that of the calls
		members[i].Bind(&args)
	}
	if grouped {
		link, err := s.quick.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer link.Release()
		for i, err := range s.serve(link, members) {
			if errors.Is(err, store.ErrAlone) {
				err = s.alone(t.Context(), members[i])
			}
			g.err = errors.Join(g.err, err)
		}
	} else {
		g.err = s.runAll(t.Context(), s.pool, s.verbs[verbName], members, &args)
	}
	close(g.done)
	for range calls {
		<-ended
	}
	return answers, errs
}

func openStore(t *testing.T) *adapter {
	t.Helper()
	url, drop, err := pgtest.Database(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(drop)
	s, err := opener{URL(url)}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*adapter)
}

// solo runs verbs by themselves.
type solo struct {
	store.PublicDoer
	s *adapter
}

func (d solo) Do(ctx context.Context, c store.Command) error { return d.s.Do(ctx, c) }
func (d solo) Partition(context.Context, store.Lane) (store.Partition, error) {
	return store.Partition{Workspace: store.DefaultWorkspace}, nil
}

// TestMembersOfOneAppendEachGetTheirOwnAnswer verifies that several appends in one statement each
// get their own result: one that wins, one that loses, one that creates its stream, one that is
// refused; with several events each, which stay with their member and in their order.
func TestMembersOfOneAppendEachGetTheirOwnAnswer(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{false, true} {
		t.Run(fmt.Sprintf("grouped %v", grouped), func(t *testing.T) { membersOfAnAppend(t, grouped) })
	}
}

func membersOfAnAppend(t *testing.T, grouped bool) {
	s := openStore(t)
	appendTo := func(name string, want int64, texts ...string) func(store.Doer) (int64, error) {
		return func(d store.Doer) (int64, error) {
			a := events.AppendArgs{Stream: name, ExpectVersion: &want}
			for _, text := range texts {
				a.Events = append(a.Events, events.Event{Name: text})
			}
			return events.Append(t.Context(), d, a)
		}
	}
	for _, name := range []string{"winner", "loser"} {
		if _, err := appendTo(name, -1, "first", "second")(solo{s: s}); err != nil {
			t.Fatal(err)
		}
	}
	last, errs := together(t, s, grouped, "events.append",
		appendTo("winner", 1, "w2", "w3", "w4"),
		appendTo("loser", 0, "l1"),
		appendTo("maker", -1, "m0", "m1"),
		appendTo("absent", 4, "a5"))
	for i, want := range []struct {
		last int64
		code fault.Code
	}{{4, ""}, {1, fault.Concurrency}, {1, ""}, {-1, fault.Concurrency}} {
		if last[i] != want.last || fault.CodeOf(errs[i]) != want.code {
			t.Errorf("member %d: got %d, %v; want %d, %q", i+1, last[i], errs[i], want.last, want.code)
		}
	}
	for name, want := range map[string]string{
		"winner": "[first second w2 w3 w4]", "loser": "[first second]", "maker": "[m0 m1]", "absent": "[]",
	} {
		all, err := events.Read(t.Context(), solo{s: s}, events.ReadArgs{Stream: name})
		names := make([]string, 0, len(all))
		for i, e := range all {
			names = append(names, e.Name)
			if e.Version != int64(i) {
				t.Errorf("%s: got version %d, want %d", name, e.Version, i)
			}
		}
		if err != nil || fmt.Sprint(names) != want {
			t.Errorf("%s has %v, want %s: %v", name, names, want, err)
		}
	}
}

// TestMembersOfOtherVerbsEachGetTheirOwnAnswer verifies the same for creates, transitions and
// scopes.
func TestMembersOfOtherVerbsEachGetTheirOwnAnswer(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{false, true} {
		t.Run(fmt.Sprintf("grouped %v", grouped), func(t *testing.T) { membersOfOthers(t, grouped) })
	}
}

func membersOfOthers(t *testing.T, grouped bool) {
	s := openStore(t)
	create := func(id string) func(store.Doer) (entities.Entity, error) {
		return func(d store.Doer) (entities.Entity, error) {
			return entities.Create(t.Context(), d, entities.CreateArgs{Lifecycle: "thing", ID: id, Status: "new"})
		}
	}
	if _, err := create("b")(solo{s: s}); err != nil {
		t.Fatal(err)
	}
	_, errs := together(t, s, grouped, "entities.create", create("a"), create("b"), create("c"))
	wantCodes(t, errs, "", fault.Conflict, "")

	move := func(id, from string) func(store.Doer) (entities.Entity, error) {
		return func(d store.Doer) (entities.Entity, error) {
			return entities.Transition(t.Context(), d, entities.TransitionArgs{Lifecycle: "thing", ID: id, From: []string{from}, To: "old", Event: "aged"})
		}
	}
	found, errs := together(t, s, grouped, "entities.transition", move("c", "new"), move("none", "new"), move("a", "old"), move("b", "new"))
	wantCodes(t, errs, "", fault.NotFound, fault.InvalidTransition, "")
	for i, want := range []string{"c old 1", "none  -1", "a new 0", "b old 1"} {
		if got := fmt.Sprintf("%s %s %d", found[i].ID, found[i].Status, found[i].Version); got != want {
			t.Errorf("member %d: got %q, want %q", i+1, got, want)
		}
	}

	put := func(id string, want int64) func(store.Doer) (scopestore.Scope, error) {
		return func(d store.Doer) (scopestore.Scope, error) {
			return scopestore.Put(t.Context(), d, scopestore.PutArgs{Kind: "box", ID: id, ExpectVersion: &want, State: fmt.Appendf(nil, `{"id":%q}`, id)})
		}
	}
	if _, err := put("x", -1)(solo{s: s}); err != nil {
		t.Fatal(err)
	}
	boxes, errs := together(t, s, grouped, "scopes.put", put("y", -1), put("x", 0), put("z", 3))
	wantCodes(t, errs, "", "", fault.Concurrency)
	if boxes[0].Version != 0 || boxes[1].Version != 1 || boxes[2].Version != -1 || string(boxes[1].State) != `{"id": "x"}` {
		t.Errorf("got scopes %+v", boxes)
	}
}

func wantCodes(t *testing.T, errs []error, codes ...fault.Code) {
	t.Helper()
	for i, code := range codes {
		if fault.CodeOf(errs[i]) != code {
			t.Errorf("member %d: got %v, want %q (%v)", i+1, errs[i], code, errors.Unwrap(errs[i]))
		}
	}
}

func (g *gathering) Registry(context.Context, store.Partition, bool) (*store.Registry, error) {
	return &store.Registry{}, nil
}

func (solo) Registry(context.Context, store.Partition, bool) (*store.Registry, error) {
	return &store.Registry{}, nil
}

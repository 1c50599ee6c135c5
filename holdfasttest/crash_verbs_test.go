package holdfasttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// verbCase is a single verb. Its event has the given actor, so that
// each try can be identified afterwards.
type verbCase struct {
	history string // the stream that it writes to
	before  func(context.Context, *holdfast.Engine) error
	do      func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (version int64, err error)
	// reads says that a lost answer is completed by a read: where a second
	// fault strikes that, the answer is right, but not whole.
	reads bool
	// end says what the thing must be, given the names of its events.
	end func(ctx context.Context, hf *holdfast.Engine, names []string) error
}

var verbCases = map[string]verbCase{
	"append any": {history: "s",
		do: func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
			return appendOne(ctx, hf, stream.Any, by)
		}},
	"append none": {history: "s",
		do: func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
			return appendOne(ctx, hf, stream.None, by)
		}},
	"append exact": {history: "s",
		before: func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := appendOne(ctx, hf, stream.None, events.Meta{})
			return err
		},
		do: func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
			return appendOne(ctx, hf, 0, by)
		}},
	"create": {history: entities.Stream("thing", "t"), do: create, end: statusIs},
	"transition": {history: entities.Stream("thing", "t"), before: createFirst, end: statusIs, reads: true,
		do: func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
			return transition(ctx, hf, new(int64), by)
		}},
	"transition any": {history: entities.Stream("thing", "t"), before: createFirst, end: statusIs, reads: true,
		do: func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
			return transition(ctx, hf, nil, by)
		}},
	"put": {history: scopestore.Stream("user", "u"), end: scopeIs,
		do: func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
			return put(ctx, hf, new(events.None), by)
		}},
	"put any": {history: scopestore.Stream("user", "u"), end: scopeIs,
		do: func(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
			return put(ctx, hf, nil, by)
		}},
	"inc":   {history: scopestore.Stream("user", "u"), do: inc, end: scopeIs, reads: true},
	"patch": {history: scopestore.Stream("user", "u"), do: patch, end: scopeIs},
	"push":  {history: scopestore.Stream("user", "u"), do: push, end: scopeIs},
	"set":   {history: scopestore.Stream("user", "u"), do: set, end: scopeIs},
	"unset": {history: scopestore.Stream("user", "u"), do: unset, end: scopeIs,
		before: func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := set(ctx, hf, events.Meta{Actor: "before"})
			return err
		}},
	"delete": {history: scopestore.Stream("user", "u"), do: remove, end: scopeIs,
		before: func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := put(ctx, hf, new(events.None), events.Meta{})
			return err
		}},
}

func appendOne(ctx context.Context, hf *holdfast.Engine, want stream.Version, by events.Meta) (int64, error) {
	last, err := stream.Append(ctx, hf, "s", want, stream.Event{Name: "appended", Actor: by.Actor})
	return int64(last), err
}

func create(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
	e, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "thing", ID: "t", Status: "created", Data: []byte(`{"n":1}`), Meta: by})
	return e.Version, errors.Join(err, whole(err, e.Status == "created" && len(e.Data) > 0 && !e.CreatedAt.IsZero(), e))
}

func createFirst(ctx context.Context, hf *holdfast.Engine) error {
	_, err := create(ctx, hf, events.Meta{})
	return err
}

func transition(ctx context.Context, hf *holdfast.Engine, want *int64, by events.Meta) (int64, error) {
	e, err := entities.Transition(ctx, engine.Of(hf), entities.TransitionArgs{Lifecycle: "thing", ID: "t",
		From: []string{"created", "moved"}, To: "moved", ExpectVersion: want, Event: "moved", Meta: by})
	return e.Version, errors.Join(err, whole(err, e.Status == "moved" && strings.Contains(string(e.Data), "n") && !e.CreatedAt.IsZero(), e))
}

func put(ctx context.Context, hf *holdfast.Engine, want *int64, by events.Meta) (int64, error) {
	s, err := scopestore.Put(ctx, engine.Of(hf), scopestore.PutArgs{Kind: "user", ID: "u", ExpectVersion: want, State: []byte(`{"n":0}`), Meta: by})
	return s.Version, errors.Join(err, whole(err, len(s.State) > 0, s))
}

func inc(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
	s, err := storetest.Inc(ctx, hf, storetest.IncArgs{Kind: "user", ID: "u", Field: "n", By: 1, Meta: by})
	if err == nil && s.Value != s.Version+1 {
		return s.Version, fmt.Errorf("got sum %d at version %d, want version+1", s.Value, s.Version)
	}
	return s.Version, errors.Join(err, whole(err, len(s.State) > 0, s))
}

// edit edits the scope. Each edit changes something, so that a nil error means that it
// was applied.
func edit(ctx context.Context, hf *holdfast.Engine, op scopestore.Op, by events.Meta) (int64, error) {
	e, err := scopestore.Edit(ctx, engine.Of(hf), scopestore.EditArgs{Kind: "user", ID: "u", Op: op, Meta: by})
	if err == nil && !e.Changed {
		return e.Version, holdfast.ErrConflict // it is done already
	}
	return e.Version, err
}

func patch(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
	op, err := scopestore.Patch(fmt.Appendf(nil, `{"n":0,"by":%q}`, by.Actor))
	if err != nil {
		return 0, err
	}
	return edit(ctx, hf, op, by)
}

func push(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
	op, err := scopestore.Push("items", fmt.Appendf(nil, "%q", by.Actor))
	if err != nil {
		return 0, err
	}
	return edit(ctx, hf, op, by)
}

func set(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
	op, err := scopestore.Set("records", "k", fmt.Appendf(nil, "%q", by.Actor))
	if err != nil {
		return 0, err
	}
	return edit(ctx, hf, op, by)
}

func unset(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
	op, err := scopestore.Unset("records", "k")
	if err != nil {
		return 0, err
	}
	return edit(ctx, hf, op, by)
}

func remove(ctx context.Context, hf *holdfast.Engine, by events.Meta) (int64, error) {
	s, err := scopestore.Delete(ctx, engine.Of(hf), scopestore.DeleteArgs{Kind: "user", ID: "u", Meta: by})
	return s.Version, err
}

var errNotWhole = errors.New("the response is incomplete")

// whole is the error of an answer that lacks something.
func whole(err error, ok bool, answer any) error {
	if err != nil || ok {
		return nil
	}
	return fmt.Errorf("%w: %+v", errNotWhole, answer)
}

func statusIs(ctx context.Context, hf *holdfast.Engine, names []string) error {
	e, err := entities.Get(ctx, engine.Of(hf), "thing", "t")
	if last := names[len(names)-1]; err == nil && e.Status != last {
		err = fmt.Errorf("got status %s, but the last event is %s", e.Status, last)
	}
	return err
}

// scopeIs compares the scope with the sum of its events.
func scopeIs(ctx context.Context, hf *holdfast.Engine, names []string) error {
	s, err := scopestore.Get(ctx, engine.Of(hf), "user", "u")
	if names[len(names)-1] == "deleted" {
		if errors.Is(err, holdfast.ErrNotFound) {
			return nil
		}
		return fmt.Errorf("deleted scope still exists: %s, %w", s.State, err)
	}
	if err != nil {
		return err
	}
	var state struct {
		N       int
		Items   []string
		Records map[string]string
	}
	if err := json.Unmarshal(s.State, &state); err != nil {
		return err
	}
	count := make(map[string]int)
	for _, name := range names {
		count[name]++
	}
	if state.N != count["inc"] || len(state.Items) != count["push"] || len(state.Records) != min(count["set"], 1)-min(count["unset"], 1) {
		return fmt.Errorf("got %s at version %d, but the events are %v", s.State, s.Version, names)
	}
	return nil
}

// result is the response to a try.
type result struct {
	actor   string
	version int64
	err     error
}

// ledger remembers every try of every case, by its workspace.
type ledger struct {
	mu    sync.Mutex
	tries map[string][]result
}

func (l *ledger) of(ctx context.Context) []result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tries[store.WorkspaceOf(ctx)])
}

func (l *ledger) add(ctx context.Context, t result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := store.WorkspaceOf(ctx)
	l.tries[w] = append(l.tries[w], t)
}

// TestCrashOfEveryVerb verifies, for each verb alone and at every point and
// fault, what an answer is worth: nil says that the call was applied once, at the
// version that it returned; an error says that it was not applied and never will
// be, unless it is that the outcome is unknown or that the process died. The
// state is the sum of its events throughout.
func TestCrashOfEveryVerb(t *testing.T) {
	for name, v := range verbCases {
		if !v.reads {
			holdfasttest.Crash(t, v.scenario(name, true))
			continue
		}
		once := v.scenario(name, true)
		once.Pairs = false
		holdfasttest.Crash(t, once)
		twice := v.scenario(name+" in part", false)
		twice.Databases = []string{"sqlite"}
		holdfasttest.Crash(t, twice)
	}
}

// scenario runs a single verb. With whole, responses must be complete.
func (v verbCase) scenario(name string, whole bool) holdfasttest.Scenario {
	l := &ledger{tries: make(map[string][]result)}
	return holdfasttest.Scenario{
		Name:    name,
		Do:      func(ctx context.Context, hf *holdfast.Engine) error { return v.try(ctx, hf, l, whole) },
		Accepts: []error{holdfast.ErrConcurrency, holdfast.ErrConflict, holdfast.ErrInvalidTransition, holdfast.ErrNotFound},
		Check:   func(ctx context.Context, hf *holdfast.Engine) error { return v.check(ctx, hf, l.of(ctx)) },
		Pairs:   true,
	}
}

func (v verbCase) try(ctx context.Context, hf *holdfast.Engine, l *ledger, whole bool) error {
	if v.before != nil && len(l.of(ctx)) == 0 {
		err := v.before(ctx, hf)
		if err != nil && !errors.Is(err, holdfast.ErrConcurrency) && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	t := result{actor: fmt.Sprintf("try-%d", len(l.of(ctx)))}
	t.version, t.err = v.do(ctx, hf, events.Meta{Actor: t.actor})
	if !whole && errors.Is(t.err, errNotWhole) {
		t.err = nil
	}
	l.add(ctx, t)
	return t.err
}

func (v verbCase) check(ctx context.Context, hf *holdfast.Engine, tries []result) error {
	all, err := holdfast.Collect(stream.Read(ctx, hf, v.history, 0))
	if err != nil {
		return err
	}
	applied := make(map[string][]int64)
	var names []string
	for _, e := range all {
		applied[e.Actor] = append(applied[e.Actor], int64(e.Version))
		names = append(names, e.Name)
	}
	for _, t := range tries {
		if err := t.matches(applied[t.actor]); err != nil {
			return fmt.Errorf("%s: %w", t.actor, err)
		}
	}
	if len(names) == 0 {
		return errors.New("no call was applied")
	}
	if v.end == nil {
		return nil
	}
	return v.end(ctx, hf, names)
}

// matches compares the response to a try with the versions of the events that it
// wrote.
func (t result) matches(applied []int64) error {
	switch {
	case errors.Is(t.err, errNotWhole):
		return t.err
	case t.err == nil && !slices.Equal(applied, []int64{t.version}):
		return fmt.Errorf("reported as applied at version %d, but applied at %v", t.version, applied)
	case len(applied) > 1:
		return fmt.Errorf("applied %d times, want at most 1", len(applied))
	case len(applied) == 0, t.err == nil, errors.Is(t.err, crash.ErrCrashed), errors.Is(t.err, holdfast.ErrOutcomeUnknown):
		return nil
	}
	return fmt.Errorf("reported as %q, but applied at %v", t.err, applied)
}

package scope

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
)

// backend is where scopes are kept.
type backend interface {
	state() *state
	// traits say how changes are made here.
	traits() traits
	// ready refuses a context that may not be used here.
	ready(context.Context) error

	get(ctx context.Context, kind, id string) (scopestore.Scope, error)
	edit(context.Context, scopestore.EditArgs) (scopestore.Edited, error)
	put(context.Context, scopestore.PutArgs) (scopestore.Scope, error)
	remove(context.Context, scopestore.DeleteArgs) (scopestore.Scope, error)
	// watch returns a channel that gets a value when a scope may have changed, and how
	// often to look without that.
	watch(kind, id string) watching
}

// traits tell the tiers apart.
type traits struct {
	// queued says that callers stand in line; a transaction's do not: it is one caller,
	// and has what it has locked.
	queued bool
	// alone says that every change is made by one caller at a time. Where it is not, only
	// those are that decide on what they have read.
	alone bool
}

// handle is a [Scope] before it has a type.
type handle struct {
	backend  backend
	kind, id string
	given    settings
}

// begin checks what a handle was given and bounds a change by its budget. The context may be
// theirs: seen by the program's own code.
func (h *handle) begin(ctx context.Context, theirs bool) (in context.Context, end func(), s settings, err error) {
	s = h.backend.state().settle(h.kind, h.given)
	for _, err := range []error{checkNames(h.kind, h.id), checkExpected(s.expected), checkTTL(s.TTL), events.CheckMeta(s.meta), h.backend.ready(ctx), ctx.Err()} {
		if err != nil {
			return ctx, func() {}, s, err
		}
	}
	if holds(ctx, h.container(ctx)) {
		return ctx, func() {}, s, fault.New(fault.Reentrant,
			"the %s scope %q is being changed by the function that this is called from: compose what it does in one function", h.kind, h.id)
	}
	if s.Budget < 0 || !h.backend.traits().queued {
		return ctx, func() {}, s, nil
	}
	if theirs { // it is a context like any other that they know
		in, end = context.WithTimeoutCause(ctx, s.Budget, errBudget)
	} else {
		in, end = h.backend.state().alarm.Within(ctx, s.Budget, errBudget)
	}
	return in, end, s, nil
}

// errBudget is why a context ended whose budget is spent.
var errBudget = errors.New("the budget is spent")

func (h *handle) container(ctx context.Context) container {
	return container{h.backend.state(), store.WorkspaceOf(ctx), h.kind, h.id}
}

// enter waits for the turn.
func (h *handle) enter(ctx context.Context, alone bool) (leave func(), err error) {
	if !h.backend.traits().queued {
		return func() {}, nil
	}
	return h.backend.state().queues.enter(ctx, h.container(ctx), alone || h.backend.traits().alone)
}

// opError is an error that says nothing of the version of a scope: of a function that was to
// change it, of its context, or that others were faster each time.
type opError struct{ error }

// publicError makes of an error what the caller is told.
func (h *handle) publicError(ctx context.Context, s settings, err error) error {
	v, own := err.(opError) //nolint:errorlint // it is our own, as it is
	if own {
		err = v.error
	}
	switch code := fault.CodeOf(err); {
	case err == nil, code == fault.OutcomeUnknown: // whatever the budget says: it may have landed
		return err
	case code == fault.Concurrency && s.expected != nil && !own:
		f, _ := errors.AsType[*fault.Error](err)
		p := fault.New(fault.PreconditionFailed, "%s", f.Message).Wrap(err)
		for name, value := range f.Fields {
			p = p.With(name, value)
		}
		return p
	case context.Cause(ctx) == errBudget && (ofContext(err) || code == fault.Unavailable && !own): //nolint:errorlint // it is our own, as it is
		return fault.New(fault.MutationTimeout, "the %s scope %q was not changed within %s, waiting included: it never will be by this call",
			h.kind, h.id, s.Budget).With("budgetMs", s.Budget.Milliseconds())
	}
	return err
}

// ofContext says of an error that a context ended.
func ofContext(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (h *handle) get(ctx context.Context) (found, error) {
	if err := checkNames(h.kind, h.id); err != nil {
		return found{}, err
	}
	if err := h.backend.ready(ctx); err != nil {
		return found{}, err
	}
	return h.read(ctx)
}

// read returns the scope, also where there is none.
func (h *handle) read(ctx context.Context) (found, error) {
	s, err := h.backend.get(ctx, h.kind, h.id)
	if fault.CodeOf(err) == fault.NotFound {
		return h.none(), nil
	}
	return found{Scope: s, exists: err == nil}, err
}

func (h *handle) none() found {
	return found{Scope: scopestore.Scope{Kind: h.kind, ID: h.id, Version: events.None}}
}

// change makes a change when it is its turn, within its budget.
func (h *handle) change(ctx context.Context, alone bool, make func(context.Context, settings) (found, error)) (found, error) {
	ctx, end, s, err := h.begin(ctx, alone)
	defer end()
	if err != nil {
		return found{}, err
	}
	leave, err := h.enter(ctx, alone)
	if err != nil {
		return found{}, h.publicError(ctx, s, err)
	}
	defer leave()
	got, err := make(ctx, s)
	if err != nil {
		return found{}, h.publicError(ctx, s, err)
	}
	return got, nil
}

// edit makes a change that needs not know the state before.
func (h *handle) edit(ctx context.Context, op scopestore.Op, invalid error) (found, error) {
	if invalid != nil {
		return found{}, invalid
	}
	return h.change(ctx, false, func(ctx context.Context, s settings) (found, error) {
		e, err := h.backend.edit(ctx, scopestore.EditArgs{Kind: h.kind, ID: h.id, Op: op, ExpectVersion: s.expected, TTL: s.TTL, Meta: s.meta})
		if err == nil && e.State == nil && e.Changed { // the answer was lost, and the event told only that it was made
			return h.since(ctx, op, e), nil
		}
		return found{Scope: e.Scope, exists: e.Version != events.None, changed: e.Changed}, err
	})
}

// since reads a scope that was changed to a version. Where it is newer by now, the version is
// that of the change, and so is the sum of an inc; the rest of the state is newer. Where it
// cannot be read, that it was changed stands all the same.
func (h *handle) since(ctx context.Context, op scopestore.Op, e scopestore.Edited) found {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	f, err := h.read(ctx)
	if err != nil || !f.exists {
		f = h.none()
		f.State = []byte("{}")
	}
	if f.Version != e.Version {
		f.State = op.Recoverable(f.State, e.Sum)
	}
	f.Version, f.exists, f.changed = e.Version, true, true
	return f
}

func (h *handle) remove(ctx context.Context) (found, error) {
	return h.change(ctx, false, func(ctx context.Context, s settings) (found, error) {
		gone, err := h.backend.remove(ctx, scopestore.DeleteArgs{Kind: h.kind, ID: h.id, ExpectVersion: s.expected, Meta: s.meta})
		f := h.none()
		switch {
		case err == nil:
			f.Version, f.changed = gone.Version, true
		case fault.CodeOf(err) != fault.NotFound:
			return f, err
		case s.expected != nil && *s.expected != events.None:
			return f, scopestore.Moved(h.kind, h.id, *s.expected, events.None)
		}
		return f, nil
	})
}

// atomic makes a change by a function: it reads, decides, and writes if nobody was faster.
func (h *handle) atomic(ctx context.Context, f func(context.Context, []byte) ([]byte, error)) (found, error) {
	return h.change(ctx, true, func(ctx context.Context, s settings) (found, error) {
		for attempt := 1; ; attempt++ {
			got, lost, err := h.attempt(ctx, s, f)
			if err != nil || !lost {
				return got, err
			}
			if s.MaxAttempts >= 0 && attempt >= s.MaxAttempts {
				return got, opError{fault.New(fault.Concurrency,
					"the %s scope %q was changed by others each of the %d times that this was tried: raise MaxAttempts, or use a verb that needs none", h.kind, h.id, attempt).
					With("attempts", attempt)}
			}
			if err := h.pause(ctx, attempt); err != nil {
				return got, err
			}
		}
	})
}

// attempt tries once, and says whether another was faster.
func (h *handle) attempt(ctx context.Context, s settings, f func(context.Context, []byte) ([]byte, error)) (got found, lost bool, err error) {
	seen, err := h.read(ctx)
	if err != nil {
		return got, false, err
	}
	if !scopestore.Met(s.expected, seen.Version) {
		return got, false, scopestore.Moved(h.kind, h.id, *s.expected, seen.Version)
	}
	var state []byte
	if seen.exists {
		state = seen.State
	}
	inner, end := holding(ctx, h.container(ctx))
	defer end() // also if f panics
	next, err := h.decide(inner, state, f)
	end()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return got, false, opError{err}
	}
	if next == nil { // that it changes nothing must hold of the store, not of what was read a while ago
		now, err := h.read(ctx)
		return now, err == nil && now.Version != seen.Version, err
	}
	put, err := h.backend.put(ctx, scopestore.PutArgs{Kind: h.kind, ID: h.id, ExpectVersion: &seen.Version, State: next, TTL: s.TTL, Meta: s.meta})
	if fault.CodeOf(err) == fault.Concurrency && (s.expected == nil || *s.expected == scopestore.Some) {
		return got, true, nil
	}
	return found{Scope: put, exists: true, changed: true}, false, err
}

// pause waits before the next try, longer each time. A transaction does not: it holds what
// others wait for, and has locked what it was refused.
func (h *handle) pause(ctx context.Context, attempt int) error {
	if !h.backend.traits().queued {
		return ctx.Err()
	}
	return clock.Wait(ctx, clock.Jitter(firstPause<<min(attempt-1, 7)))
}

// firstPause doubles up to a second and a quarter.
const firstPause = 10 * time.Millisecond

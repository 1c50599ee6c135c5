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

// backend stores scopes.
type backend interface {
	state() *state
	// traits returns how changes are made in this backend.
	traits() traits
	// ready rejects a context that must not be used here.
	ready(context.Context) error

	get(ctx context.Context, kind, id string) (scopestore.Scope, error)
	edit(context.Context, scopestore.EditArgs) (scopestore.Edited, error)
	put(context.Context, scopestore.PutArgs) (scopestore.Scope, error)
	remove(context.Context, scopestore.DeleteArgs) (scopestore.Scope, error)
	// refused records that a change was refused, if the backend records that, and returns err.
	refused(ctx context.Context, kind, id, action string, by events.Meta, err error) error
	// watch returns a channel that gets a value when a scope may have changed, and the poll
	// interval.
	watch(kind, id string) watching
}

// traits describes the differences between backends.
type traits struct {
	// queued says that callers queue. Callers in a transaction do not: a transaction is a single
	// caller, and has its rows locked.
	queued bool
	// alone says that every change needs exclusive access. If it is false, only changes that
	// depend on the state they read do.
	alone bool
}

// handle is a [Scope] without its type parameter.
type handle struct {
	backend  backend
	kind, id string
	given    settings
}

// begin checks the options of a handle and bounds a change by its budget. callback says that a
// function of the program gets the context.
func (h *handle) begin(ctx context.Context, callback bool) (in context.Context, end func(), s settings, err error) {
	s = h.backend.state().withDefaults(h.kind, h.given)
	for _, err := range []error{checkNames(h.kind, h.id), s.bad, checkTTL(s.TTL), events.CheckMeta(s.meta), h.backend.ready(ctx), ctx.Err()} {
		if err != nil {
			return ctx, func() {}, s, err
		}
	}
	if holds(ctx, h.container(ctx)) {
		return ctx, func() {}, s, fault.New(fault.Reentrant,
			"%s scope %q is already being changed by the calling function: make the whole change in that function", h.kind, h.id)
	}
	if h.given.Budget != 0 && !h.backend.traits().queued {
		return ctx, func() {}, s, fault.New(fault.Validation, "%s scope %q: Budget has no effect in a transaction: set a deadline on the context of the transaction", h.kind, h.id)
	}
	if s.Budget < 0 || !h.backend.traits().queued {
		return ctx, func() {}, s, nil
	}
	if callback { // it expects an ordinary context with a deadline
		in, end = context.WithTimeoutCause(ctx, s.Budget, errBudget)
	} else {
		in, end = h.backend.state().alarm.Within(ctx, s.Budget, errBudget)
	}
	return in, end, s, nil
}

// errBudget is the cause of a context that ended because the budget is spent.
var errBudget = errors.New("the budget is spent")

func (h *handle) container(ctx context.Context) container {
	return container{h.backend.state(), store.WorkspaceOf(ctx), h.kind, h.id}
}

// enter waits for the caller's turn.
func (h *handle) enter(ctx context.Context, alone bool) (leave func(), err error) {
	if !h.backend.traits().queued {
		return func() {}, nil
	}
	return h.backend.state().queues.enter(ctx, h.container(ctx), alone || h.backend.traits().alone)
}

// opError is an error that does not concern the version of a scope: an error of the function that
// was to change it, of its context, or of too many attempts.
type opError struct{ error }

// publicError converts an error to the one that the caller gets.
func (h *handle) publicError(ctx context.Context, s settings, err error) error {
	v, own := err.(opError) //nolint:errorlint // it is our own, as it is
	if own {
		err = v.error
	}
	switch code := fault.CodeOf(err); {
	case err == nil, code == fault.OutcomeUnknown: // regardless of the budget: it may be committed
		return err
	case context.Cause(ctx) == errBudget && (ofContext(err) || code == fault.Unavailable && !own): //nolint:errorlint // it is our own, as it is
		return fault.New(fault.MutationTimeout, "%s scope %q was not changed within %s: the change was abandoned, and you may retry it",
			h.kind, h.id, s.Budget).With("budgetMs", s.Budget.Milliseconds())
	}
	return err
}

// ofContext reports whether an error means that a context ended.
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

// read returns the scope, and no error if it does not exist.
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

// change makes a change in its turn, within its budget.
func (h *handle) change(ctx context.Context, alone bool, make func(context.Context, settings) (found, error)) (found, error) {
	ctx, end, s, err := h.begin(ctx, alone) // only a change that needs exclusive access may run a function of the program
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

// edit makes a change that does not depend on the state before.
func (h *handle) edit(ctx context.Context, op scopestore.Op, invalid error) (found, error) {
	if invalid != nil {
		return found{}, invalid
	}
	return h.change(ctx, false, func(ctx context.Context, s settings) (found, error) {
		e, err := h.backend.edit(ctx, scopestore.EditArgs{Kind: h.kind, ID: h.id, Op: op, ExpectVersion: s.expected, TTL: s.TTL, Meta: s.meta})
		if err == nil && e.State == nil && e.Changed { // the response was lost, and the event proves only that the change was made
			return h.since(ctx, op, e), nil
		}
		return found{Scope: e.Scope, exists: e.Version != events.None, changed: e.Changed}, err
	})
}

// since reads a scope that was changed to a version. If the scope is newer by now, the result has
// the version of the change and the sum of an inc, and the rest of the state is newer. If the
// scope cannot be read, the change counts all the same.
func (h *handle) since(ctx context.Context, op scopestore.Op, e scopestore.Edited) found {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	f, err := h.read(ctx)
	if err != nil || !f.exists {
		f = h.none()
		f.State = []byte("{}")
	}
	if f.Version != e.Version {
		f.State = op.Recovered(f.State, e.Sum)
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
			return f, h.refused(ctx, s, "delete", scopestore.Moved(h.kind, h.id, *s.expected, events.None))
		}
		return f, nil
	})
}

// atomic makes a change by a function: it reads, decides, and writes if no other writer was
// faster.
func (h *handle) atomic(ctx context.Context, f func(context.Context, []byte) ([]byte, error)) (found, error) {
	return h.change(ctx, true, func(ctx context.Context, s settings) (found, error) {
		for attempt := 1; ; attempt++ {
			got, lost, err := h.attempt(ctx, s, f)
			if err != nil || !lost {
				return got, err
			}
			if s.MaxAttempts >= 0 && attempt >= s.MaxAttempts {
				return got, opError{h.refused(ctx, s, "put", fault.New(fault.Concurrency,
					"%s scope %q was changed by other writers in each of %d attempts: raise MaxAttempts, or use Inc, Push, Patch or SetRecord, which never conflict", h.kind, h.id, attempt).
					With("attempts", attempt))}
			}
			if err := h.pause(ctx, attempt); err != nil {
				return got, err
			}
		}
	})
}

// attempt makes one attempt, and reports in lost whether another writer was faster.
func (h *handle) attempt(ctx context.Context, s settings, f func(context.Context, []byte) ([]byte, error)) (got found, lost bool, err error) {
	seen, err := h.read(ctx)
	if err != nil {
		return got, false, err
	}
	if !scopestore.Met(s.expected, seen.Version) {
		return got, false, h.refused(ctx, s, "put", scopestore.Moved(h.kind, h.id, *s.expected, seen.Version))
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
	if next == nil { // "unchanged" must be true of the store now, not of an earlier read
		now, err := h.read(ctx)
		return now, err == nil && now.Version != seen.Version, err
	}
	put, err := h.backend.put(ctx, scopestore.PutArgs{Kind: h.kind, ID: h.id, ExpectVersion: &seen.Version, State: next, TTL: s.TTL, Meta: s.meta, Was: seen.State})
	if fault.CodeOf(err) == fault.Concurrency && (s.expected == nil || *s.expected == scopestore.Some) {
		return got, true, nil
	}
	return found{Scope: put, exists: true, changed: true}, false, h.refused(ctx, s, "put", err)
}

// refused records a refusal that the caller is told.
func (h *handle) refused(ctx context.Context, s settings, action string, err error) error {
	return h.backend.refused(ctx, h.kind, h.id, action, s.meta, err)
}

// pause waits before the next attempt, longer each time. A transaction does not wait: it holds
// locks that others wait for, and has locked the row that it lost.
func (h *handle) pause(ctx context.Context, attempt int) error {
	if !h.backend.traits().queued {
		return ctx.Err()
	}
	return clock.Wait(ctx, clock.Jitter(firstPause<<min(attempt-1, 7)))
}

// firstPause doubles with each attempt, up to about a second and a quarter.
const firstPause = 10 * time.Millisecond

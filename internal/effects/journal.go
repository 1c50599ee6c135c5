package effects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
)

// Journal is the journal of one attempt of an operation. It is safe for concurrent use; effects of the same
// name are numbered in the order in which they begin.
//
// An effect has an ordinal among those of its name. The ordinal is used up when the outcome of the effect is
// known. An effect that is retried while its outcome is unknown is the same effect, under the same key, so a
// handler that repeats a call after a timeout does not do it twice.
type Journal struct {
	Book Book
	// Leased is called right before a call is made; an error prevents the call. It covers a holder that was
	// suspended after it began the effect, and whose lease may have expired.
	Leased func(context.Context) error

	mu      sync.Mutex
	names   map[string]*named
	made    []LateCall         // calls whose outcome is not in the journal yet
	results []entities.Result  // results that are not written yet
	open    int                // effects with an unknown outcome, begun or met by this attempt
	doubts  map[effectKey]bool // effects that only a person can resolve
}

// effectKey identifies an effect within its operation.
type effectKey struct {
	name    string
	ordinal int
}

// named tracks the effects of one name.
type named struct {
	next    int          // ordinal of the next new effect
	back    []int        // ordinals that are free again, ascending
	unknown map[int]bool // those of them that were begun
}

type journalKey struct{}

// With returns a context whose effects are recorded in a journal.
func With(ctx context.Context, j *Journal) context.Context {
	return context.WithValue(ctx, journalKey{}, j)
}

// From returns the journal of a context, or nil.
func From(ctx context.Context) *Journal {
	j, _ := ctx.Value(journalKey{}).(*Journal)
	return j
}

// ErrUnknown is returned by an effect that was begun before, whose outcome is unknown, and which only a person
// can resolve.
var ErrUnknown = errors.New("the effect was already begun, and its outcome is unknown: the operation waits for manual resolution")

// ErrOpen is the error of a handler that succeeded although the outcome of an effect is unknown.
var ErrOpen = errors.New("the action succeeded, but the outcome of an effect is unknown")

// Call is one effect.
type Call struct {
	Name   string
	Policy Policy
	// Now writes the result at once; otherwise it is written with the next write of the operation.
	Now   bool
	Try   func(ctx context.Context, key string) (any, error)
	Probe func(ctx context.Context, key string) (result any, happened bool, err error)
	// Result receives the result as the journal has it.
	Result func([]byte) error

	probed bool // the probe reported that no earlier call happened
}

// notDone is the error of an effect that is known not to have happened.
type notDone struct{ err error }

func (n notDone) Error() string { return n.err.Error() }
func (n notDone) Unwrap() error { return n.err }

// NotHappened marks an error as one of an effect that did not happen.
func NotHappened(err error) error {
	if err == nil {
		err = errors.New("the effect did not happen")
	}
	return notDone{err}
}

// DidNotHappen reports whether [NotHappened] has marked the error.
func DidNotHappen(err error) bool {
	_, ok := errors.AsType[notDone](err)
	return ok
}

// writeTimeout limits a write of the journal, beyond the end of the handler's context: a known outcome must not
// be lost because the handler is told to stop.
const writeTimeout = 10 * time.Second

func withoutCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
}

// Do runs an effect, unless it is already done.
func (j *Journal) Do(ctx context.Context, c Call) error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ordinal, unknown, results := j.reserve(c.Name)
	if unknown && c.Policy == Hold {
		j.giveBack(c, ordinal, true)
		return ErrUnknown
	}
	e, err := j.begin(ctx, c, ordinal, results)
	if err != nil {
		j.giveBack(c, ordinal, unknown)
		return err
	}
	if !unknown && e.State != Done && e.State != NotDone {
		j.opened(1)
	}
	return j.proceed(ctx, c, ordinal, e, unknown)
}

func (j *Journal) begin(ctx context.Context, c Call, ordinal int, results []entities.Result) (Entry, error) {
	ctx, cancel := withoutCancel(ctx)
	defer cancel()
	e, err := j.Book.Begin(ctx, c.Name, ordinal, c.Policy, results)
	if err == nil {
		j.markWritten(results)
	}
	return e, err
}

// proceed continues from the recorded state of an effect. again is set if this attempt has begun the effect before.
func (j *Journal) proceed(ctx context.Context, c Call, ordinal int, e Entry, again bool) error {
	key := Key(j.Book.Operation(), c.Name, ordinal)
	switch {
	case e.State == Done:
		return c.Result(e.Result)
	case e.State == NotDone: // a later effect exists: skip this one, as the earlier attempt did
		return NotHappened(errors.New(reasonOf(e.Result)))
	case e.State == Begun && c.Policy == Hold:
		j.giveBack(c, ordinal, true)
		return ErrUnknown
	case (e.State == Begun || again) && c.Policy == Probe:
		result, happened, err := c.Probe(ctx, key)
		if err != nil || happened {
			return j.closed(ctx, c, ordinal, result, err)
		}
		c.probed = true
		if e.State == Begun {
			return j.beginAgain(ctx, c, ordinal)
		}
	case ctx.Err() != nil && e.State == New && !again: // no call was made
		return j.closed(ctx, c, ordinal, nil, NotHappened(ctx.Err()))
	case ctx.Err() != nil: // an earlier call may have happened
		j.giveBack(c, ordinal, true)
		return ctx.Err()
	}
	repeated := e.State == Begun || again
	if err := j.leased(ctx); err != nil {
		if repeated { // an earlier call may have happened
			j.giveBack(c, ordinal, true)
			return err
		}
		return j.closed(ctx, c, ordinal, nil, NotHappened(err))
	}
	return j.try(ctx, c, ordinal, key, repeated && !c.probed)
}

// beginAgain ends an effect that an earlier attempt began and that the probe reports as not happened, and begins it
// again, so that the following call belongs to this attempt.
func (j *Journal) beginAgain(ctx context.Context, c Call, ordinal int) error {
	writeCtx, cancel := withoutCancel(ctx)
	defer cancel()
	if _, _, err := j.Book.End(writeCtx, c.Name, ordinal, NotDone, []byte(`{"reason":"the probe reported that it did not happen"}`), true); err != nil {
		j.giveBack(c, ordinal, true)
		return err
	}
	e, err := j.begin(ctx, c, ordinal, nil)
	if err != nil || e.State == NotDone {
		j.opened(-1)
	}
	if err != nil {
		j.giveBack(c, ordinal, false)
		return err
	}
	return j.proceed(ctx, c, ordinal, e, false)
}

func (j *Journal) leased(ctx context.Context) error {
	if j.Leased == nil {
		return nil
	}
	return j.Leased(ctx)
}

// try makes the call. A panic leaves the outcome unknown. So does the response that a repeated call did not
// happen, if the earlier calls were not probed: it says nothing about them.
func (j *Journal) try(ctx context.Context, c Call, ordinal int, key string, repeated bool) error {
	returned := false
	j.call(c.Name, ordinal)
	defer func() {
		if !returned {
			j.giveBack(c, ordinal, true)
		}
	}()
	result, err := c.Try(ctx, key)
	returned = true
	if not, ok := errors.AsType[notDone](err); ok && repeated {
		return j.doubted(c, ordinal, not.err)
	}
	return j.closed(ctx, c, ordinal, result, err)
}

// closed records the outcome of a call.
func (j *Journal) closed(ctx context.Context, c Call, ordinal int, result any, err error) error {
	var not notDone
	if errors.As(err, &not) {
		return j.refused(ctx, c, ordinal, not.err)
	}
	var data json.RawMessage
	if err == nil {
		data, err = resultOf(result)
	}
	if err != nil {
		j.giveBack(c, ordinal, true)
		return err
	}
	j.recordOutcome(LateCall{Name: c.Name, Ordinal: ordinal, State: Done, Result: data})
	j.addResult(entities.Result{Name: c.Name, Ordinal: ordinal, Result: data})
	j.opened(-1)
	if c.Now {
		if err := j.now(ctx, c.Name, ordinal, data); err != nil {
			return err
		}
	}
	return c.Result(data)
}

// now writes a result at once. If that fails, the next write includes it, unless the lease is lost.
func (j *Journal) now(ctx context.Context, name string, ordinal int, data []byte) error {
	ctx, cancel := withoutCancel(ctx)
	defer cancel()
	_, _, err := j.Book.End(ctx, name, ordinal, Done, data, false)
	switch {
	case err == nil:
		j.markWritten([]entities.Result{{Name: name, Ordinal: ordinal}})
	case fault.CodeOf(err) == fault.LeaseLost:
		return err
	}
	return nil
}

// refused records that an effect did not happen.
func (j *Journal) refused(ctx context.Context, c Call, ordinal int, reason error) error {
	ctx, cancel := withoutCancel(ctx)
	defer cancel()
	j.recordOutcome(LateCall{Name: c.Name, Ordinal: ordinal, State: NotDone})
	why, _ := json.Marshal(map[string]string{"reason": reason.Error()}) // a map of strings always marshals
	state, _, err := j.Book.End(ctx, c.Name, ordinal, NotDone, why, c.probed)
	switch {
	case err != nil:
		j.giveBack(c, ordinal, true)
		return errors.Join(reason, err)
	case state == Begun: // begun by an earlier attempt, which was not probed
		return j.doubted(c, ordinal, reason)
	}
	j.opened(-1)
	return reason
}

func reasonOf(data []byte) string {
	var why struct{ Reason string }
	if json.Unmarshal(data, &why) != nil || why.Reason == "" {
		return "the effect did not happen"
	}
	return why.Reason
}

// reserve returns the ordinal of the next effect of a name, whether it was begun before and is unknown, and the
// results that are not written yet.
func (j *Journal) reserve(name string) (ordinal int, unknown bool, results []entities.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.names == nil {
		j.names = make(map[string]*named)
	}
	n := j.names[name]
	if n == nil {
		n = &named{unknown: make(map[int]bool)}
		j.names[name] = n
	}
	if len(n.back) > 0 {
		ordinal, n.back = n.back[0], n.back[1:]
	} else {
		ordinal = n.next
		n.next++
	}
	unknown = n.unknown[ordinal]
	return ordinal, unknown, slices.Clone(j.results)
}

// giveBack frees the ordinal of an effect that is not closed; unknown says that it was begun.
func (j *Journal) giveBack(c Call, ordinal int, unknown bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := j.names[c.Name]
	at, _ := slices.BinarySearch(n.back, ordinal)
	n.back = slices.Insert(n.back, at, ordinal)
	n.unknown[ordinal] = n.unknown[ordinal] || unknown
	if unknown && c.Policy == Hold {
		j.doubt(c.Name, ordinal)
	}
}

// opened adds n to the number of effects with an unknown outcome.
func (j *Journal) opened(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open += n
}

// markWritten removes results that were written.
func (j *Journal) markWritten(some []entities.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.results = slices.DeleteFunc(j.results, func(r entities.Result) bool {
		return slices.ContainsFunc(some, func(s entities.Result) bool { return s.Name == r.Name && s.Ordinal == r.Ordinal })
	})
	j.made = slices.DeleteFunc(j.made, func(c LateCall) bool {
		return slices.ContainsFunc(some, func(s entities.Result) bool { return s.Name == c.Name && s.Ordinal == c.Ordinal })
	})
}

// call records that a call is made.
func (j *Journal) call(name string, ordinal int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	call := LateCall{Name: name, Ordinal: ordinal, State: Unknown}
	if i := slices.IndexFunc(j.made, func(c LateCall) bool { return c.Name == name && c.Ordinal == ordinal }); i >= 0 {
		j.made[i] = call
		return
	}
	j.made = append(j.made, call)
}

// recordOutcome records the outcome of a call.
func (j *Journal) recordOutcome(l LateCall) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.doubts, effectKey{l.Name, l.Ordinal})
	for i, c := range j.made {
		if c.Name == l.Name && c.Ordinal == l.Ordinal {
			j.made[i] = l
		}
	}
}

// doubted gives back an effect whose repeated call did not happen: only a person can resolve the earlier one.
func (j *Journal) doubted(c Call, ordinal int, reason error) error {
	j.giveBack(c, ordinal, true)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.doubt(c.Name, ordinal)
	return fmt.Errorf("%w (an earlier call of effect %q may have happened; the effect waits for manual resolution)", reason, c.Name)
}

// doubt records that only a person can resolve an effect. REQUIRES: mu
func (j *Journal) doubt(name string, ordinal int) {
	if j.doubts == nil {
		j.doubts = make(map[effectKey]bool)
	}
	j.doubts[effectKey{name, ordinal}] = true
}

// Made returns the calls of this attempt whose outcome is not in the journal, which a holder that has lost its
// lease reports.
func (j *Journal) Made() []LateCall {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(j.made), func(c LateCall) bool { return c.State == NotDone })
}

func (j *Journal) addResult(r entities.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.results = append(j.results, r)
}

// Rest returns the results that are not written yet, whether an outcome is unknown, and whether only a person
// can resolve it.
func (j *Journal) Rest() (results []entities.Result, open, doubt bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.results), j.open > 0, len(j.doubts) > 0
}

// Used reports whether an effect was attempted.
func (j *Journal) Used() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.names) > 0
}

// Missing returns the error of an effect outside an operation.
func Missing(name string) error {
	return fault.New(fault.Validation, "effect %q was called outside an operation: call it in the action of a claimed step or in the handler of a run step, with the context passed to that function", name)
}

package effects

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Journal is the journal of one attempt of an operation. It is safe for concurrent
// use, but effects of the same name count in the order in which they begin.
type Journal struct {
	Doer   store.Doer
	At     store.Place
	Ticket entities.Ticket

	mu       sync.Mutex
	ordinals map[string]int
	results  []entities.Result // that are not noted yet
	unknown  bool              // an effect is unknown that only a person can tell of
}

type journalKey struct{}

// With returns a context whose effects go to a journal.
func With(ctx context.Context, j *Journal) context.Context {
	return context.WithValue(ctx, journalKey{}, j)
}

// From returns the journal of a context, or nil.
func From(ctx context.Context) *Journal {
	j, _ := ctx.Value(journalKey{}).(*Journal)
	return j
}

// ErrUnknown is returned by an effect that was begun by an earlier attempt, of
// which nothing is known, and which only a person can tell of.
var ErrUnknown = errors.New("an earlier attempt began this effect, and nothing is known of what became of it: the operation waits for a person")

// Call is one effect.
type Call struct {
	Name   string
	Policy Policy
	// Now has the result noted at once; otherwise it is noted with the next
	// write of the operation.
	Now   bool
	Try   func(ctx context.Context, key string) (any, error)
	Probe func(ctx context.Context, key string) (result any, happened bool, err error)
	// Keep is given the result, as the journal has it.
	Keep func([]byte) error
}

// notDone is an error of an effect that is known not to have happened.
type notDone struct{ err error }

func (n notDone) Error() string { return n.err.Error() }
func (n notDone) Unwrap() error { return n.err }

// NotHappened says of an error that the effect did not happen.
func NotHappened(err error) error { return notDone{err} }

// Do does an effect, unless it is done already.
func (j *Journal) Do(ctx context.Context, c Call) error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	ordinal, results := j.next(c.Name)
	e, err := Begin(ctx, j.Doer, j.At, j.Ticket, c.Name, ordinal, c.Policy, results)
	if err != nil {
		return err
	}
	j.noted(len(results))
	key := Key(j.Ticket.Operation, c.Name, ordinal)
	switch {
	case e.State == Done:
		return c.Keep(e.Result)
	case e.State == Begun && c.Policy == Hold:
		j.doubt()
		return ErrUnknown
	case e.State == Begun && c.Policy == Probe:
		result, happened, err := c.Probe(ctx, key)
		if err != nil || happened {
			return j.closed(ctx, c, ordinal, result, err)
		}
	}
	return j.try(ctx, c, ordinal, key)
}

// try makes the call. A panic leaves the effect unknown.
func (j *Journal) try(ctx context.Context, c Call, ordinal int, key string) error {
	returned := false
	defer func() {
		if !returned && c.Policy == Hold {
			j.doubt()
		}
	}()
	result, err := c.Try(ctx, key)
	returned = true
	return j.closed(ctx, c, ordinal, result, err)
}

// closed notes what became of a call.
func (j *Journal) closed(ctx context.Context, c Call, ordinal int, result any, err error) error {
	var not notDone
	switch {
	case errors.As(err, &not):
		_, noted := End(ctx, j.Doer, j.At, j.Ticket, c.Name, ordinal, NotDone, nil)
		if noted != nil {
			return errors.Join(not.err, noted)
		}
		return not.err
	case err != nil:
		if c.Policy == Hold {
			j.doubt()
		}
		return err
	}
	data, err := resultOf(result)
	if err != nil {
		j.doubt()
		return err
	}
	if c.Now {
		if _, err := End(ctx, j.Doer, j.At, j.Ticket, c.Name, ordinal, Done, data); err != nil {
			return err
		}
		return c.Keep(data)
	}
	j.keep(entities.Result{Name: c.Name, Ordinal: ordinal, Result: data})
	return c.Keep(data)
}

func (j *Journal) next(name string) (ordinal int, results []entities.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ordinals == nil {
		j.ordinals = make(map[string]int)
	}
	ordinal = j.ordinals[name]
	j.ordinals[name]++
	return ordinal, j.results[:len(j.results):len(j.results)]
}

// noted forgets results that were written.
func (j *Journal) noted(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.results = j.results[min(n, len(j.results)):]
}

func (j *Journal) keep(r entities.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.results = append(j.results, r)
}

func (j *Journal) doubt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unknown = true
}

// Rest returns the results that are not noted yet, and whether something is unknown
// that only a person can tell of.
func (j *Journal) Rest() (results []entities.Result, unknown bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.results, j.unknown
}

// Missing is the error of an effect outside of an operation.
func Missing(name string) error {
	return fault.New(fault.Validation, "the effect %q is not in an operation: effects belong into the body of an action that is claimed, with the context that it was given", name)
}

package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Names of the events that closing a stream leaves in it. The data of $snapshot is the state before
// the restart. No event follows $tombstone.
const (
	snapshotEvent  = "$snapshot"
	tombstoneEvent = "$tombstone"
)

// Aggregate computes a state from the events of one stream, and appends events that are decided from that state.
// Create it once per program, with [Fold]. It is safe for concurrent use.
//
// Invariants of the state hold for any number of concurrent callers: Do appends at exactly the
// version that it decided on, never at [Any], and calls decide again if another writer appended
// first.
type Aggregate[S any] struct {
	prefix string
	f      func(S, Event) (S, error)
	foldOptions
}

// Fold declares an aggregate. The state of an id is the result of applying f to the events of the stream prefix+id, in
// order, starting with the zero S. f must depend only on its arguments. f also runs before an event is appended: Do
// does not write an event for which f returns an error. If [Append] has written such an event, the stream can no longer
// be loaded.
//
// A stream that was closed with [Restart] begins with its state at that time, as JSON, which is
// decoded into S and not passed to f. A stream that was closed with [Tombstone] has no state:
// loading it returns [ErrClosed].
//
// Fold panics if the arguments are invalid, because that is a programming error.
func Fold[S any](prefix string, f func(S, Event) (S, error), o ...FoldOption) *Aggregate[S] {
	a := &Aggregate[S]{prefix: prefix, f: f, foldOptions: foldOptions{attempts: defaultAttempts}}
	for _, option := range o {
		option.set(&a.foldOptions)
	}
	if prefix != "" {
		panicOn(strictjson.Text("prefix", prefix, events.MaxName))
	}
	if f == nil {
		panic("stream: Fold needs a function")
	}
	panicOn(a.foldOptions.check())
	if a.every > 0 {
		panicOn(checkJSONRoundTrip[S]())
	}
	return a
}

func panicOn(err error) {
	if err != nil {
		panic("stream: Fold: " + err.Error())
	}
}

// folded is a state and the version that it includes.
type folded[S any] struct {
	stream  string
	version Version
	state   S
}

// Load returns the state of an id, and the version of the last event that the state includes. If the stream does not
// exist, it returns the zero S and [None].
func (a *Aggregate[S]) Load(ctx context.Context, d holdfast.Doer, id string) (S, Version, error) {
	now, err := a.load(ctx, d, id)
	return now.state, now.version, err
}

// Do loads the state of an id, calls decide, appends the events that decide returns, and returns
// the state after them. If decide returns no events, or an error, nothing is written; the error
// is returned unchanged.
//
// If another writer appended in the meantime, Do starts again. decide may therefore run several times, and must have no
// side effects. If other writers are faster in every attempt, the error is [holdfast.ErrConcurrency] with the field
// attempts ([MaxAttempts]).
//
// The returned state is folded from the events as decide returned them, before they are appended.
// In these events, At is this node's time; after Load, it is the database's time.
func (a *Aggregate[S]) Do(ctx context.Context, d holdfast.Doer, id string, decide func(S) ([]Event, error)) (S, error) {
	var zero S
	for attempt := 1; ; attempt++ {
		current, err := a.load(ctx, d, id)
		if err != nil {
			return zero, err
		}
		all, err := decide(current.state)
		if err != nil {
			return zero, err
		}
		if len(all) == 0 {
			return current.state, nil
		}
		next, err := a.foldNew(current, all)
		if err != nil {
			return zero, err
		}
		last, err := a.write(ctx, d, current.stream, current.version, all)
		switch {
		case err == nil:
			a.saveSnapshot(ctx, d, id, current.version, last)
			return next.state, nil
		case !errors.Is(err, holdfast.ErrConcurrency):
			return zero, err
		case attempt == a.attempts:
			return zero, exhausted(err, current.stream, attempt)
		}
		if err := pause(ctx, d, attempt); err != nil {
			return zero, err
		}
	}
}

// pause waits before the next attempt. A transaction does not wait: it would block other writers,
// and it has locked the stream's row already.
func pause(ctx context.Context, d holdfast.Doer, attempt int) error {
	if _, inside := d.(holdfast.Tx); inside {
		return ctx.Err()
	}
	return clock.Wait(ctx, clock.Jitter(min(time.Millisecond<<min(attempt, 10), maxPause)))
}

const maxPause = 50 * time.Millisecond

func exhausted(err error, stream string, attempts int) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	f = f.With("attempts", attempts)
	f.Message = fmt.Sprintf("other writers appended to stream %s in each of %d attempts: try again later, or allow more attempts", stream, attempts)
	return f
}

// foldNew folds events that are about to be appended.
func (a *Aggregate[S]) foldNew(s folded[S], all []Event) (folded[S], error) {
	at := clock.Now().UTC().Truncate(time.Millisecond)
	for _, e := range all {
		if e.Name == snapshotEvent || e.Name == tombstoneEvent {
			return s, fault.New(fault.Validation, "event name %s is reserved: use another name", e.Name)
		}
		e.Stream, e.Version, e.At = s.stream, s.version+1, at
		if e.Data == nil {
			e.Data = []byte("{}")
		}
		if err := a.add(&s, e); err != nil {
			return s, err
		}
	}
	return s, nil
}

// add folds one more event.
func (a *Aggregate[S]) add(s *folded[S], e Event) (err error) {
	switch {
	case e.Name == snapshotEvent:
		s.state, err = decodeState[S](e.Data)
	case e.Name == tombstoneEvent:
		return events.Closed(e.Stream, int64(e.Version))
	case e.Version != s.version+1:
		return &gapError{e.Stream, s.version, e.Version}
	default:
		s.state, err = a.f(s.state, e)
	}
	s.version = e.Version
	if err != nil {
		return fmt.Errorf("fold event %d (%s) of stream %s: %w", e.Version, e.Name, e.Stream, err)
	}
	return nil
}

// load folds a stream, starting at its snapshot if it has one that fits.
func (a *Aggregate[S]) load(ctx context.Context, d holdfast.Doer, id string) (folded[S], error) {
	none := folded[S]{stream: a.prefix + id, version: None}
	if err := strictjson.Text("id", id, events.MaxName); err != nil {
		return none, err
	}
	return a.loadWhole(ctx, d, none, math.MaxInt64)
}

// loadWhole folds the events of a stream up to a version. If the stream is truncated meanwhile, events may be missing between two
// pages; then it starts again.
func (a *Aggregate[S]) loadWhole(ctx context.Context, d holdfast.Doer, none folded[S], last Version) (folded[S], error) {
	var gap *gapError
	for range maxGaps {
		s, err := a.loadUntil(ctx, d, none, last)
		if !errors.As(err, &gap) {
			return s, err
		}
	}
	return none, gap.explain(ctx, d)
}

// maxGaps is how often a load finds missing events before it gives up.
const maxGaps = 3

// loadUntil folds the events of a stream up to a version.
func (a *Aggregate[S]) loadUntil(ctx context.Context, d holdfast.Doer, none folded[S], last Version) (folded[S], error) {
	s, page, err := a.begin(ctx, d, none, last)
	for err == nil {
		if err = a.addAll(&s, page, last); err == nil && (len(page) < events.MaxRead || page[len(page)-1].Version >= last) {
			return s, nil
		}
		if err == nil {
			page, err = a.read(ctx, d, s.stream, s.version+1)
		}
	}
	return none, err
}

// begin returns the initial state and the first page of events to fold. A snapshot beyond the last version to fold is not
// used.
func (a *Aggregate[S]) begin(ctx context.Context, d holdfast.Doer, none folded[S], last Version) (s folded[S], page []Event, err error) {
	if a.every > 0 {
		s, page, err = a.beginAtSnapshot(ctx, d, none)
	}
	if err == nil && (len(page) == 0 || s.version > last) {
		s = none
		page, err = a.read(ctx, d, none.stream, 0)
	}
	if err == nil && len(page) > 0 && page[0].Version > s.version+1 && page[0].Name != snapshotEvent && page[0].Name != tombstoneEvent {
		s, err = a.atBase(ctx, d, s, page[0].Version)
	}
	return s, page, err
}

// addAll folds the events of a page up to a version. The state may already include the first ones.
func (a *Aggregate[S]) addAll(s *folded[S], page []Event, last Version) error {
	for _, e := range page {
		if e.Version <= s.version {
			continue
		}
		if e.Version > last {
			break
		}
		if err := a.add(s, e); err != nil {
			return err
		}
	}
	return nil
}

// read returns a page of a stream.
func (a *Aggregate[S]) read(ctx context.Context, d holdfast.Doer, stream string, from Version) ([]Event, error) {
	read := pages(ctx, d)
	if a.vault != nil {
		read = a.vault.pages(ctx, d)
	}
	return read(events.ReadArgs{Stream: stream, From: int64(from), Limit: events.MaxRead})
}

func (a *Aggregate[S]) write(ctx context.Context, d holdfast.Doer, stream string, at Version, all []Event) (Version, error) {
	if a.vault != nil {
		return a.vault.Append(ctx, d, stream, at, all...)
	}
	return Append(ctx, d, stream, at, all...)
}

func decodeState[S any](data []byte) (s S, err error) {
	err = json.Unmarshal(data, &s)
	return s, err
}

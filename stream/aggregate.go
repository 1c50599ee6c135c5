package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Names of the events that closing a stream's books leaves. The data of restarted
// is the state that the events before it had led to; after removed comes nothing.
const (
	restarted = "$snapshot"
	removed   = "$tombstone"
)

// Aggregate is a state that is made of the events of one stream, and decides
// what may be appended to it. It is made once, by [Fold], and is safe for
// concurrent use.
//
// An invariant of the state holds against any number of callers: Do appends at
// the very version that it decided on, never at [Any], and decides anew where
// somebody else was faster.
type Aggregate[S any] struct {
	prefix string
	f      func(S, Event) (S, error)
	foldOptions
}

// Fold declares an aggregate: the state of an id is what f makes of the events
// of the stream prefix+id, one after the other, beginning with the zero S. f
// depends on its arguments alone. It is also asked before an event is appended:
// an event that it returns an error for is not written by Do, and in a stream
// that has one nothing can be loaded any more.
//
// A stream that was restarted when its books were closed begins with its state as
// of then, as JSON, which is decoded into S and not given to f. One whose events
// were removed has no state: to load it is [fault.StreamClosed].
//
// Fold panics where the options make no sense: that is a mistake in wiring.
func Fold[S any](prefix string, f func(S, Event) (S, error), o ...FoldOption) *Aggregate[S] {
	a := &Aggregate[S]{prefix: prefix, f: f, foldOptions: foldOptions{attempts: defaultAttempts}}
	for _, option := range o {
		option(&a.foldOptions)
	}
	if prefix != "" {
		mustBe(strictjson.Text("prefix", prefix, events.MaxName))
	}
	if f == nil {
		panic("stream: Fold needs a function")
	}
	mustBe(a.foldOptions.check())
	if a.every > 0 {
		mustBe(carriedByJSON[S]())
	}
	return a
}

func mustBe(err error) {
	if err != nil {
		panic("stream: Fold: " + err.Error())
	}
}

// folded is a state and where it stands.
type folded[S any] struct {
	stream  string
	version Version
	state   S
}

// Load returns the state of an id and the version of the event that it goes up
// to: the zero S and [None] where there is no stream.
func (a *Aggregate[S]) Load(ctx context.Context, d holdfast.Doer, id string) (S, Version, error) {
	now, err := a.load(ctx, d, id)
	return now.state, now.version, err
}

// Do loads the state of an id, has decide say what is to happen, appends that,
// and returns the state after it. Nothing is written where decide returns no
// events, or an error, which is returned as it is.
//
// Where somebody else appended meanwhile, Do begins again: decide may be called
// several times, and must do nothing but decide. If others are faster each time,
// the error is [holdfast.ErrConcurrency] with the number of attempts.
//
// The state returned is folded from the events as decide gave them, before they
// are appended. Their At is this node's time there; a Load has the database's.
func (a *Aggregate[S]) Do(ctx context.Context, d holdfast.Doer, id string, decide func(S) ([]Event, error)) (S, error) {
	var none S
	for attempt := 1; ; attempt++ {
		was, err := a.load(ctx, d, id)
		if err != nil {
			return none, err
		}
		all, err := decide(was.state)
		if err != nil {
			return none, err
		}
		if len(all) == 0 {
			return was.state, nil
		}
		now, err := a.ahead(was, all)
		if err != nil {
			return none, err
		}
		last, err := a.write(ctx, d, was.stream, was.version, all)
		switch {
		case err == nil:
			a.keep(ctx, d, id, was.version, last)
			return now.state, nil
		case !errors.Is(err, holdfast.ErrConcurrency):
			return none, err
		case attempt == a.attempts:
			return none, exhausted(err, was.stream, attempt)
		}
		if err := pause(ctx, d, attempt); err != nil {
			return none, err
		}
	}
}

// pause lets others pass. A transaction does not wait: it would hold them up, and
// has the stream's row by now.
func pause(ctx context.Context, d holdfast.Doer, attempt int) error {
	if _, inside := d.(holdfast.Tx); inside {
		return ctx.Err()
	}
	return clock.Wait(ctx, clock.Jitter(min(time.Millisecond<<min(attempt, 10), mostPause)))
}

const mostPause = 50 * time.Millisecond

func exhausted(err error, stream string, attempts int) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	f = f.With("attempts", attempts)
	f.Message = fmt.Sprintf("others appended to the stream %s in each of %d attempts: try again later, or allow more attempts", stream, attempts)
	return f
}

// ahead folds events that are about to be appended.
func (a *Aggregate[S]) ahead(s folded[S], all []Event) (folded[S], error) {
	at := clock.Now().UTC().Truncate(time.Millisecond)
	for _, e := range all {
		if e.Name == restarted || e.Name == removed {
			return s, fault.New(fault.Validation, "the name %s is Holdfast's own: give the event another", e.Name)
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

// add folds one event more.
func (a *Aggregate[S]) add(s *folded[S], e Event) (err error) {
	switch {
	case e.Name == restarted:
		s.state, err = decodeState[S](e.Data)
	case e.Name == removed:
		return events.Closed(e.Stream, int64(e.Version))
	case e.Version != s.version+1:
		return fault.New(fault.DatabaseDamaged,
			"the events of the stream %s between the versions %d and %d are gone, and nothing is kept of the state that they led to", e.Stream, s.version, e.Version)
	default:
		s.state, err = a.f(s.state, e)
	}
	s.version = e.Version
	if err != nil {
		return fmt.Errorf("fold the event %d (%s) of the stream %s: %w", e.Version, e.Name, e.Stream, err)
	}
	return nil
}

// load folds a stream, from its snapshot on if it has one that fits.
func (a *Aggregate[S]) load(ctx context.Context, d holdfast.Doer, id string) (folded[S], error) {
	none := folded[S]{stream: a.prefix + id, version: None}
	if err := strictjson.Text("id", id, events.MaxName); err != nil {
		return none, err
	}
	s, page, err := a.begin(ctx, d, none)
	for err == nil {
		if err = a.addAll(&s, page); err == nil && len(page) < events.MaxRead {
			return s, nil
		}
		if err == nil {
			page, err = a.read(ctx, d, s.stream, s.version+1)
		}
	}
	return none, err
}

// begin returns what to begin with, and the first page of events to fold.
func (a *Aggregate[S]) begin(ctx context.Context, d holdfast.Doer, none folded[S]) (folded[S], []Event, error) {
	if a.every > 0 {
		s, page, err := a.beginKept(ctx, d, none)
		if err != nil || len(page) > 0 {
			return s, page, err
		}
	}
	page, err := a.read(ctx, d, none.stream, 0)
	return none, page, err
}

// addAll folds a page; the event that the state goes up to may be its first.
func (a *Aggregate[S]) addAll(s *folded[S], page []Event) error {
	for _, e := range page {
		if e.Version == s.version {
			continue
		}
		if err := a.add(s, e); err != nil {
			return err
		}
	}
	return nil
}

// read returns a page of a stream.
func (a *Aggregate[S]) read(ctx context.Context, d holdfast.Doer, stream string, from Version) ([]Event, error) {
	if a.vault != nil {
		return a.vault.Read(ctx, d, stream, from, events.MaxRead)
	}
	return Read(ctx, d, stream, from, events.MaxRead)
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

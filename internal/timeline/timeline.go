// Package timeline reads what happened to an object, in the order of the database: the events of its stream, the
// writes that it refused, the effects of its operations, and the answers that callers got. It also reads races: refusals, grouped by what they
// lost to.
//
// No clock decides the order. A statement that refuses a write reads the version of the row that it has locked, so
// a refusal comes after the event of that version and before the next. An effect comes before the event that ended its
// last attempt, which has its operation and epoch. An answer comes after the event that ended its operation.
package timeline

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Entry is one of: an event, a refusal, an effect, an answer.
type Entry struct {
	Event   *events.Event
	Refusal *refusals.Refusal
	Effect  *Effect
	Answer  *idempotency.Request // whose response is the outcome of the operation of the next entry, an event
}

// Effect is an effect of an operation.
type Effect struct {
	effects.Entry
	Operation string
	Version   int64 // of the event that ended the attempt or, during the attempt, of the last event
}

// Cursor is a place in a timeline: before the refusal with the id or, if the id is "", before the event of the
// version. The zero value is the end, where a timeline begins.
type Cursor struct {
	Version int64
	ID      string
	set     bool
}

// At returns the place of a version and an id.
func At(version int64, id string) Cursor { return Cursor{version, id, true} }

// Cursor returns the place from which a list continues after an entry.
func (e Entry) Cursor() Cursor {
	switch {
	case e.Refusal != nil:
		return At(e.Refusal.Version, e.Refusal.ID)
	case e.Effect != nil:
		return At(e.Effect.Version, "")
	}
	return At(e.Event.Version, "")
}

// attempt is what an event says of the attempt that it begins or ends.
type attempt struct {
	Operation string `json:"operation"`
	Epoch     int64  `json:"epoch"`
	Step      string `json:"step"`
	Requester string `json:"requester"`
	To        string `json:"to"`
	Note      struct {
		Operation string `json:"operation"` // of a step without a claim
		Step      string `json:"step"`
		Requester string `json:"requester"`
	} `json:"note"`
}

// Read returns a part of the timeline of a stream, the latest first: limit events and refusals, and the effects
// and answers among them.
func Read(ctx context.Context, d store.Doer, stream string, from Cursor, limit int) ([]Entry, error) {
	before := &refusals.Refusal{Version: from.Version, ID: from.ID}
	last := from.Version
	switch {
	case !from.set:
		before, last = nil, math.MaxInt64
	case from.ID == "":
		last--
	}
	refused, err := refusals.List(ctx, d, stream, before, limit)
	if err != nil {
		return nil, err
	}
	moreRefused, moreHappened := store.Cut(ctx), false
	var happened []events.Event
	if last >= 0 {
		if happened, err = events.Read(ctx, d, events.ReadArgs{Stream: stream, From: last, Limit: limit, Backward: true}); err != nil {
			return nil, err
		}
		moreHappened = store.Cut(ctx)
	}
	whole := store.Whole(ctx) // the effects of an event are read with it
	var all []Entry
	if !from.set && len(happened) > 0 {
		if all, err = effectsOf(whole, d, &happened[0], true); err != nil {
			return nil, err
		}
	}
	for n := 0; n < limit && (len(refused) > 0 || len(happened) > 0); n++ {
		if moreRefused && len(refused) == 0 || moreHappened && len(happened) == 0 {
			break // what was not read may come next
		}
		if len(happened) == 0 || len(refused) > 0 && refused[0].Version >= happened[0].Version {
			all = append(all, Entry{Refusal: &refused[0]})
			refused = refused[1:]
			continue
		}
		e := &happened[0]
		happened = happened[1:]
		ended, err := effectsOf(whole, d, e, false)
		if err != nil {
			return nil, err
		}
		answers, err := answersOf(whole, d, e)
		if err != nil {
			return nil, err
		}
		all = append(append(append(all, answers...), Entry{Event: e}), ended...)
	}
	if moreRefused || moreHappened {
		store.Enough(ctx) // the last read may not have been the one that was cut
	}
	return all, nil
}

// begins are the names of the events that begin an attempt, or hand it on. All others with an operation end it.
var begins = []string{entities.EventClaimed, entities.EventResumed, entities.EventAdopted, entities.EventQueued}

// effectsOf returns the effects of the attempt that an event ended or, with current, of the attempt that is under
// way after the last event. The latest is first.
func effectsOf(ctx context.Context, d store.Doer, e *events.Event, current bool) (all []Entry, err error) {
	var a attempt
	if json.Unmarshal(e.Data, &a) != nil || a.Operation == "" || a.Epoch == 0 || !current && slices.Contains(begins, e.Name) {
		return nil, nil
	}
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	found, err := effects.List(ctx, d, at, a.Operation)
	slices.SortStableFunc(found, func(a, b effects.Entry) int { return cmp.Or(b.BegunAt.Compare(a.BegunAt), b.Ordinal-a.Ordinal) })
	for _, x := range found {
		in := x.Epoch == a.Epoch
		if current {
			in = x.Epoch > a.Epoch || in && slices.Contains(begins, e.Name)
		}
		if in {
			all = append(all, Entry{Effect: &Effect{x, a.Operation, e.Version}})
		}
	}
	return all, err
}

// mostAnswers limits the answers of an operation: each is a request with another idempotency key.
const mostAnswers = 100

// answersOf returns the answers of the operation that an event ended, if it was requested with an idempotency key.
func answersOf(ctx context.Context, d store.Doer, e *events.Event) ([]Entry, error) {
	var a attempt
	if !endsOperation(e.Name) || json.Unmarshal(e.Data, &a) != nil {
		return nil, nil
	}
	operation := cmp.Or(a.Operation, a.Note.Operation)
	if operation == "" {
		return nil, nil
	}
	found, err := idempotency.ListByOperation(ctx, d, operation, "", mostAnswers)
	all := make([]Entry, len(found))
	for i := range found {
		all[i].Answer = &found[i]
	}
	return all, err
}

func endsOperation(event string) bool {
	return event == entities.EventReleased || strings.HasPrefix(event, "settled/") || strings.HasPrefix(event, "failed/")
}

// Race is a group of refusals that lost to the same operation or, if that is not known, to the same event.
type Race struct {
	Stream    string
	Version   int64 // of the winner's event
	Operation string
	Winner    *events.Event // nil if the event is no longer retained
	Refused   int64         // with those that the recorded ones stand for
	Refusals  []refusals.Refusal
}

// Races groups the latest refusals of a workspace by what they lost to, beginning before the refusal with the given
// id; "" is the latest. limit is a number of refusals. next is where to continue, "" at the end. A race continues in
// the next part if it has more refusals than fit.
func Races(ctx context.Context, d store.Doer, before string, limit int) (all []*Race, next string, err error) {
	found, err := refusals.Recent(ctx, d, before, limit)
	if err != nil {
		return nil, "", err
	}
	more := len(found) == limit || store.Cut(ctx)
	winners := make(map[winnerKey]winner)
	type key struct {
		stream, operation string
		version           int64
	}
	known := make(map[key]*Race)
	for _, x := range found {
		k := key{stream: x.Stream, version: x.Version}
		w, err := winnerOf(store.Whole(ctx), d, winners, x)
		if err != nil {
			return nil, "", err
		}
		operation := w.operation
		if operation == "" && x.Code == string(fault.ClaimFailed) {
			operation = x.Operation
		}
		if operation != "" {
			k = key{stream: x.Stream, operation: operation}
		}
		r := known[k]
		if r == nil {
			r = &Race{Stream: x.Stream, Version: x.Version, Operation: operation, Winner: w.event}
			known[k] = r
			all = append(all, r)
		}
		if x.Version < r.Version { // the claim rather than its end
			r.Version, r.Winner = x.Version, w.event
		}
		r.Refused += x.StandsFor
		r.Refusals = append(r.Refusals, x)
	}
	if more {
		next = found[len(found)-1].ID
	}
	return all, next, nil
}

type winnerKey struct {
	stream  string
	version int64
}

// winner is the event that refusals lost to, without its data, and its operation.
type winner struct {
	event     *events.Event // nil if it is no longer retained
	operation string
}

// winnerOf returns the event that a refusal lost to: the one with the version that refused the write.
func winnerOf(ctx context.Context, d store.Doer, known map[winnerKey]winner, r refusals.Refusal) (winner, error) {
	k := winnerKey{r.Stream, r.Version}
	w, ok := known[k]
	if ok || r.Version < 0 {
		return w, nil
	}
	found, err := events.Read(ctx, d, events.ReadArgs{Stream: r.Stream, From: r.Version, Limit: 1})
	if err != nil {
		return w, err
	}
	if len(found) == 1 && found[0].Version == r.Version {
		var a attempt
		if strings.HasPrefix(r.Stream, "$") { // events of users have no operation
			_ = json.Unmarshal(found[0].Data, &a)
		}
		found[0].Data = nil
		w = winner{&found[0], a.Operation}
	}
	known[k] = w
	return w, nil
}

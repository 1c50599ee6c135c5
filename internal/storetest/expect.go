package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/stream"
)

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

// refused requires an error with a code, and returns it.
func (e *env) refused(err error, code fault.Code) *fault.Error {
	e.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code {
		e.Fatalf("got error %v, want %s", err, code)
	}
	if f.Message == "" {
		e.Errorf("%s has no message", code)
	}
	return f
}

// moved requires a version conflict, with both versions in it.
func (e *env) moved(err error, expected, last int64) {
	e.Helper()
	f := e.refused(err, fault.Concurrency)
	if f.Fields["expectedVersion"] != expected || f.Fields["lastVersion"] != last {
		e.Errorf("got %v, want expectedVersion %d, lastVersion %d", f.Fields, expected, last)
	}
}

func (e *env) equal(what string, got, want any) {
	e.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		e.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (e *env) sameJSON(what string, got, want []byte) {
	e.Helper()
	if !strictjson.Equal(got, want) {
		e.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// names returns the names of the events of a stream, in order; their versions must be 0, 1, 2 …
func (e *env) names(name string) []string {
	e.Helper()
	all, err := holdfast.Collect(stream.Read(e.ctx, e.hf, name, 0))
	e.ok(err)
	names := []string{}
	for i, ev := range all {
		if ev.Version != stream.Version(i) {
			e.Errorf("event %d of %s has version %d", i, name, ev.Version)
		}
		names = append(names, ev.Name)
	}
	return names
}

func (e *env) append(d holdfast.Doer, name string, want stream.Version, events ...string) (stream.Version, error) {
	all := make([]stream.Event, len(events))
	for i, n := range events {
		all[i] = stream.Event{Name: n}
	}
	return stream.Append(e.ctx, d, name, want, all...)
}

func (e *env) appended(name string, want stream.Version, names ...string) stream.Version {
	e.Helper()
	last, err := e.append(e.hf, name, want, names...)
	e.ok(err)
	return last
}

func (e *env) created(id, status string) entities.Entity {
	e.Helper()
	got, err := entities.Create(e.ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: "invoice", ID: id, Status: status, Data: []byte(`{"cents": 100}`)})
	e.ok(err)
	return got
}

func (e *env) move(d holdfast.Doer, id, to string, from ...string) (entities.Entity, error) {
	return entities.Transition(e.ctx, store.DoerOf(d), entities.TransitionArgs{Lifecycle: "invoice", ID: id, From: from, To: to, Event: "moved"})
}

func (e *env) entity(id string) entities.Entity {
	e.Helper()
	got, err := entities.Get(e.ctx, engine.Of(e.hf), "invoice", id)
	e.ok(err)
	return got
}

func (e *env) put(d holdfast.Doer, id string, want *int64, state string) (scopestore.Scope, error) {
	return scopestore.Put(e.ctx, store.DoerOf(d), scopestore.PutArgs{Kind: "user", ID: id, ExpectVersion: want, State: []byte(state)})
}

func (e *env) inc(d holdfast.Doer, id, field string, by int64) (Sum, error) {
	return Inc(e.ctx, d, IncArgs{Kind: "user", ID: id, Field: field, By: by})
}

func (e *env) scope(id string) scopestore.Scope {
	e.Helper()
	got, err := scopestore.Get(e.ctx, engine.Of(e.hf), "user", id)
	e.ok(err)
	return got
}

func at(v int64) *int64 { return &v }

var none = at(events.None)

// words joins values with spaces.
func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

// Package scopes keeps versioned state: a JSON object under a kind and an id,
// replaced only by a writer that names the version it has seen, or added to in
// the database itself. A write adds one to the version, and a version is never
// used again, not even after the scope was deleted and made anew.
package scopes

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Scope is a container of state at one version.
type Scope struct {
	Kind, ID string
	Version  int64
	State    []byte // a JSON object
}

// Stream is the name of the stream that holds a scope's history.
func Stream(kind, id string) string { return "$scope/" + kind + "/" + id }

// PutArgs replaces a state: nil Want whatever its version is, [events.None] if
// there is none.
type PutArgs struct {
	Kind, ID string
	Want     *int64
	State    []byte
	Meta     events.Meta
}

// DeleteArgs deletes a scope: nil Want whatever its version is.
type DeleteArgs struct {
	Kind, ID string
	Want     *int64
	Meta     events.Meta
}

// IncArgs adds to a whole number. What is missing, the field or the scope, is
// made.
type IncArgs struct {
	Kind, ID, Field string
	By              int64
	Meta            events.Meta
}

// Sum is a scope and the number in it that was added to.
type Sum struct {
	Scope
	Value int64
}

type result struct {
	applied bool
	sum     Sum
}

var (
	getVerb = store.NewVerb(store.Decl{Name: "scopes.get", Lane: store.Read},
		nil, func(a [2]string, args *store.Args) { args.Text(a[0]); args.Text(a[1]) }, scan)
	putVerb = store.NewVerb(store.Decl{Name: "scopes.put", Group: true, Marks: store.HistoryMarks},
		func(a PutArgs) []string { return []string{key(a.Kind, a.ID)} },
		func(a PutArgs, args *store.Args) {
			bindName(args, a.Kind, a.ID)
			args.MaybeInt(a.Want)
			args.Text(string(a.State))
			events.BindMeta(args, a.Meta)
		}, scan).Told(func(a PutArgs, m store.Mark) result { return told(m, a.State) }).
		Emitting(func(a PutArgs) store.Emission { return emits("put", a.Kind, a.ID) })
	deleteVerb = store.NewVerb(store.Decl{Name: "scopes.delete", Group: true, Marks: store.HistoryMarks},
		func(a DeleteArgs) []string { return []string{key(a.Kind, a.ID)} },
		func(a DeleteArgs, args *store.Args) {
			bindName(args, a.Kind, a.ID)
			args.MaybeInt(a.Want)
			events.BindMeta(args, a.Meta)
		}, scan).Told(func(_ DeleteArgs, m store.Mark) result { return told(m, []byte("null")) }).
		Emitting(func(a DeleteArgs) store.Emission { return emits("deleted", a.Kind, a.ID) })
	incVerb = store.NewVerb(store.Decl{Name: "scopes.inc", Group: true, Combine: true, Marks: store.HistoryMarks},
		func(a IncArgs) []string { return []string{key(a.Kind, a.ID)} },
		func(a IncArgs, args *store.Args) {
			bindName(args, a.Kind, a.ID)
			args.Text(a.Field)
			args.Int(a.By)
			events.BindMeta(args, a.Meta)
		},
		func(r *result, row store.Row) error {
			r.applied = row.Applied()
			return row.Scan(&r.sum.Version, &r.sum.State, &r.sum.Value)
		}).Told(toldInc).
		Emitting(func(a IncArgs) store.Emission { return emits("inc", a.Kind, a.ID) })
)

func emits(name, kind, id string) store.Emission {
	return store.Emission{Stream: Stream(kind, id), Names: []string{name}}
}

func told(m store.Mark, state []byte) result {
	return result{true, Sum{Scope: Scope{Version: m.Version, State: state}}}
}

// toldInc knows the sum, but not the fields beside it.
func toldInc(_ IncArgs, m store.Mark) result {
	r := told(m, nil)
	var data struct{ Value int64 }
	if json.Unmarshal(m.Data, &data) == nil { // it is ours
		r.sum.Value = data.Value
	}
	return r
}

func key(kind, id string) string { return "scope/" + kind + "/" + id }

func bindName(args *store.Args, kind, id string) {
	args.Text(kind)
	args.Text(id)
}

func scan(r *result, row store.Row) error {
	r.applied = row.Applied()
	return row.Scan(&r.sum.Version, &r.sum.State)
}

// Get returns a scope, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, kind, id string) (Scope, error) {
	if err := checkNames(kind, id); err != nil {
		return Scope{}, err
	}
	r, err := getVerb.Do(ctx, d, [2]string{kind, id})
	if err == nil && !r.applied {
		err = fault.New(fault.NotFound, "there is no %s scope %q", kind, id)
	}
	return named(r, kind, id).Scope, err
}

// Put replaces a scope's state. Where the scope is not at the expected version,
// nothing is written, the error is [fault.Concurrency] with lastVersion (-1:
// there is none), and the scope is returned as it was found.
func Put(ctx context.Context, d store.Doer, a PutArgs) (Scope, error) {
	if err := firstError(checkNames(a.Kind, a.ID), checkWant(a.Want), strict.Object(a.State), events.CheckMeta(a.Meta)); err != nil {
		return Scope{}, err
	}
	a.State = plainNumbers(a.State)
	r, err := putVerb.Do(ctx, d, a)
	s := named(r, a.Kind, a.ID).Scope
	if err == nil && !r.applied {
		err = events.Moved(a.Kind+" scope "+a.ID, *a.Want, s.Version)
	}
	return s, err
}

// Delete deletes a scope. A scope that is not there is [fault.NotFound], one at
// another version [fault.Concurrency].
func Delete(ctx context.Context, d store.Doer, a DeleteArgs) (Scope, error) {
	if err := firstError(checkNames(a.Kind, a.ID), checkWant(a.Want), events.CheckMeta(a.Meta)); err != nil {
		return Scope{}, err
	}
	r, err := deleteVerb.Do(ctx, d, a)
	s := named(r, a.Kind, a.ID).Scope
	if err != nil || r.applied {
		return s, err
	}
	if s.Version == events.None {
		return s, fault.New(fault.NotFound, "there is no %s scope %q", a.Kind, a.ID)
	}
	return s, events.Moved(a.Kind+" scope "+a.ID, *a.Want, s.Version)
}

// Inc adds to a whole number in a scope's state, in the database, so that
// callers need not agree on a version. A field that is no whole number of 64
// bits, or would not be one afterwards, is [fault.Validation], and stays.
func Inc(ctx context.Context, d store.Doer, a IncArgs) (Sum, error) {
	if err := firstError(checkNames(a.Kind, a.ID), strict.Text("field", a.Field, events.MaxName), events.CheckMeta(a.Meta)); err != nil {
		return Sum{}, err
	}
	r, err := incVerb.Do(ctx, d, a)
	s := named(r, a.Kind, a.ID)
	if err == nil && r.applied && s.State == nil {
		s.State = completed(ctx, d, a)
	}
	if err == nil && !r.applied {
		err = fault.New(fault.Validation,
			"the field %q of the %s scope %q is %s: only a whole number of 64 bits can be added to, and it must stay one", a.Field, a.Kind, a.ID, found(s.State, a.Field))
	}
	return s, err
}

// completed reads the state where only the event of an inc told of it. It may be
// newer; where it cannot be read, the sum stands all the same.
func completed(ctx context.Context, d store.Doer, a IncArgs) []byte {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	now, err := Get(ctx, d, a.Kind, a.ID)
	if err != nil {
		return nil
	}
	return now.State
}

// found shows the value that could not be added to, shortened.
func found(state []byte, field string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(state, &fields) != nil {
		return "unreadable"
	}
	v := string(fields[field])
	if len(v) > 40 {
		v = v[:40] + "…"
	}
	return v
}

func named(r result, kind, id string) Sum {
	r.sum.Kind, r.sum.ID = kind, id
	return r.sum
}

func checkNames(kind, id string) error {
	if strings.Contains(kind, "/") {
		return fault.New(fault.Validation, "a scope's kind has no slash: %q", kind)
	}
	return firstError(strict.Text("kind", kind, events.MaxName), strict.Text("id", id, events.MaxName))
}

func checkWant(want *int64) error {
	if want != nil && *want < events.None {
		return fault.New(fault.Validation, "the expected version is %d: it is -1 (there must be none) or a version", *want)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Package scopestore stores scopes: versioned JSON objects, each under a kind and an id.
// A scope is replaced as a whole, usually with an expected version ([Put]), or edited in
// place ([Edit]). A write adds one to the version. A version is never reused, not even
// after the scope was deleted and created again. An edit that changes nothing writes
// nothing.
package scopestore

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Some as the expected version means any version of an existing scope.
const Some = -2

// Scope is the state of a scope at one version.
type Scope struct {
	Kind, ID string
	Version  int64
	State    []byte // a JSON object
}

// Stream returns the name of a scope's history stream.
func Stream(kind, id string) string { return "$scope/" + kind + "/" + id }

// Topic returns the topic that a change of a scope wakes.
func Topic(kind, id string) string { return "scope/" + kind + "/" + id }

// PutArgs are the arguments of [Put]. ExpectVersion nil accepts any version,
// [events.None] requires that the scope does not exist.
type PutArgs struct {
	Kind          string        `arg:"kind"`
	ID            string        `arg:"scope"`
	ExpectVersion *int64        `arg:"want"`
	State         []byte        `arg:"state"`
	TTL           time.Duration `arg:"ttl,null"` // from now; 0 means that the scope never expires
	Meta          events.Meta
	// Was is the state at ExpectVersion, if it is known: the event then has the difference, not the whole state.
	Was  []byte
	note []byte `arg:"note"`
}

// EditArgs are the arguments of [Edit]. ExpectVersion nil accepts any version,
// [events.None] requires that the scope does not exist, [Some] that it exists.
type EditArgs struct {
	Kind          string `arg:"kind"`
	ID            string `arg:"scope"`
	Op            Op
	ExpectVersion *int64        `arg:"want"`
	TTL           time.Duration `arg:"ttl,null"` // from now; 0 means that the scope never expires
	Meta          events.Meta
}

// incrementArgs are the arguments of the most frequent edit: an amount is added, at any version.
type incrementArgs struct {
	Kind   string        `arg:"kind"`
	ID     string        `arg:"scope"`
	field  string        `arg:"field"`
	amount int64         `arg:"amount"`
	TTL    time.Duration `arg:"ttl,null"`
	Meta   events.Meta
}

// DeleteArgs are the arguments of [Delete]. ExpectVersion nil accepts any version.
type DeleteArgs struct {
	Kind          string `arg:"kind"`
	ID            string `arg:"scope"`
	ExpectVersion *int64 `arg:"want"`
	Meta          events.Meta
}

// Edited is a scope after an edit. Its version is [events.None] if the scope does not
// exist. If the database's response was lost and the result was recovered from the
// event, State is nil and Sum is the sum of an inc.
type Edited struct {
	Scope
	Changed bool
	Sum     int64
}

type result struct {
	applied bool
	code    int64
	sum     int64
	scope   Scope
}

// Outcomes of an edit.
const (
	refused = iota // it does not fit the state
	changed
	unchanged
	moved // the scope is not at the expected version
)

var (
	getVerb = store.NewVerb(store.Decl{Name: "scopes.get", Lane: store.Read},
		nil, func(a [2]string, args *store.Args) { args.Text("kind", a[0]); args.Text("scope", a[1]) }, scan)
	putVerb = store.VerbOf[PutArgs](store.Decl{Name: "scopes.put", Group: true, Events: store.HistoryEvents},
		func(a PutArgs) []string { return []string{key(a.Kind, a.ID)} }, scan).RecoverWith(func(a PutArgs, m store.CommitProof) result { return recovered(m, a.State) }).
		Wakes(func(a PutArgs) []string { return []string{Topic(a.Kind, a.ID)} }).
		Emits(func(a PutArgs) store.Emission { return emits("put", a.Kind, a.ID) })
	deleteVerb = store.VerbOf[DeleteArgs](store.Decl{Name: "scopes.delete", Group: true, Events: store.HistoryEvents},
		func(a DeleteArgs) []string { return []string{key(a.Kind, a.ID)} }, scan).RecoverWith(func(_ DeleteArgs, m store.CommitProof) result { return recovered(m, []byte("null")) }).
		Wakes(func(a DeleteArgs) []string { return []string{Topic(a.Kind, a.ID)} }).
		Emits(func(a DeleteArgs) store.Emission { return emits("deleted", a.Kind, a.ID) })
	editVerb = store.VerbOf[EditArgs](store.Decl{Name: "scopes.edit", Group: true, Commutative: true, Events: store.HistoryEvents},
		func(a EditArgs) []string { return []string{key(a.Kind, a.ID)} },
		scanEdited).RecoverWith(func(_ EditArgs, m store.CommitProof) result { return recoveredEdit(m) }).
		Wakes(func(a EditArgs) []string { return []string{Topic(a.Kind, a.ID)} }).
		Emits(func(a EditArgs) store.Emission { return emits(a.Op.name, a.Kind, a.ID) })
	incrementVerb = store.VerbOf[incrementArgs](store.Decl{Name: "scopes.increment", Group: true, Commutative: true, Events: store.HistoryEvents},
		func(a incrementArgs) []string { return []string{key(a.Kind, a.ID)} },
		scanEdited).RecoverWith(func(_ incrementArgs, m store.CommitProof) result { return recoveredEdit(m) }).
		Wakes(func(a incrementArgs) []string { return []string{Topic(a.Kind, a.ID)} }).
		Emits(func(a incrementArgs) store.Emission { return emits(opInc, a.Kind, a.ID) })

	scanEdited = store.Outcome(func(r *result) (*bool, []any) { return &r.applied, []any{&r.scope.Version, &r.scope.State, &r.code} })
)

func emits(name, kind, id string) store.Emission {
	return store.Emission{Stream: Stream(kind, id), Names: []string{name}}
}

func recovered(m store.CommitProof, state []byte) result {
	return result{applied: true, code: changed, scope: Scope{Version: m.Version, State: state}}
}

// recoveredEdit returns the result of an edit from its event, which has the sum of an
// inc but not the state.
func recoveredEdit(m store.CommitProof) result {
	r := recovered(m, nil)
	var data struct{ Value int64 }
	if json.Unmarshal(m.Data, &data) == nil { // written by Holdfast
		r.sum = data.Value
	}
	return r
}

// key returns the name of a scope's row, for verbs that lock it.
func key(kind, id string) string { return "scope/" + kind + "/" + id }

func bindName(args *store.Args, kind, id string) {
	args.Text("kind", kind)
	args.Text("scope", id)
}

// ttlOrNever returns a TTL of at least one millisecond, the unit of the databases, or 0
// for never.
func ttlOrNever(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		return 0
	}
	return max(ttl, time.Millisecond)
}

var scan = store.Outcome(func(r *result) (*bool, []any) { return &r.applied, []any{&r.scope.Version, &r.scope.State} })

// Get returns a scope, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, kind, id string) (Scope, error) {
	if err := CheckNames(kind, id); err != nil {
		return Scope{}, err
	}
	r, err := getVerb.Do(ctx, d, [2]string{kind, id})
	if err == nil && !r.applied {
		err = fault.New(fault.NotFound, "%s scope %q does not exist", kind, id)
	}
	return named(r, kind, id), err
}

// Note records a refused change.
func Note(ctx context.Context, d store.Doer, kind, id, action string, by events.Meta, err error) error {
	return refusals.Note(ctx, d, refusals.Try{Stream: Stream(kind, id), Action: action, Actor: by.Actor}, err)
}

// Put replaces the state of a scope. If the scope is not at the expected version, it
// writes nothing and returns the current scope with [fault.Concurrency], whose
// lastVersion is the current version (-1 for a missing scope). Put does not record the refusal, because its caller may try again.
func Put(ctx context.Context, d store.Doer, a PutArgs) (Scope, error) {
	err := cmp.Or(CheckNames(a.Kind, a.ID), checkExpected(a.ExpectVersion, events.None), events.CheckMeta(a.Meta))
	if err != nil {
		return Scope{}, err
	}
	if a.State, err = State(a.State); err != nil {
		return Scope{}, err
	}
	a.TTL = ttlOrNever(a.TTL)
	a.note = noteOf(a)
	r, err := putVerb.Do(ctx, d, a)
	s := named(r, a.Kind, a.ID)
	if err == nil && !r.applied {
		err = Moved(a.Kind, a.ID, *a.ExpectVersion, s.Version)
	}
	return s, err
}

// Met reports whether a scope is at the expected version: nil accepts any version,
// [events.None] requires a missing scope, [Some] an existing one.
func Met(expected *int64, version int64) bool {
	return expected == nil || *expected == version || *expected == Some && version != events.None
}

// Moved returns the error for a scope that is not at the expected version.
func Moved(kind, id string, expected, last int64) *fault.Error {
	if expected == Some {
		return fault.New(fault.Concurrency, "%s scope %q does not exist, but the change requires an existing scope: create it first, or omit the condition", kind, id).With("lastVersion", last)
	}
	return events.Moved(kind+" scope "+id, expected, last)
}

// Delete deletes a scope. It returns [fault.NotFound] for a missing scope, and
// [fault.Concurrency] for a scope at another version.
func Delete(ctx context.Context, d store.Doer, a DeleteArgs) (Scope, error) {
	if err := cmp.Or(CheckNames(a.Kind, a.ID), checkExpected(a.ExpectVersion, Some), events.CheckMeta(a.Meta)); err != nil {
		return Scope{}, err
	}
	r, err := deleteVerb.Do(ctx, d, a)
	s := named(r, a.Kind, a.ID)
	if err != nil || r.applied {
		return s, err
	}
	if s.Version == events.None {
		return s, fault.New(fault.NotFound, "%s scope %q does not exist", a.Kind, a.ID)
	}
	return s, Note(ctx, d, a.Kind, a.ID, "delete", a.Meta, Moved(a.Kind, a.ID, *a.ExpectVersion, s.Version))
}

// Edit edits the state of a scope in place, and creates the scope or field if it is
// missing. It returns [fault.Validation] or [fault.PayloadTooLarge] for an edit that does
// not fit the state, and [fault.Concurrency] for a scope that is not at the expected
// version. In both cases it changes nothing and returns the current scope.
func Edit(ctx context.Context, d store.Doer, a EditArgs) (Edited, error) {
	if err := cmp.Or(CheckNames(a.Kind, a.ID), checkExpected(a.ExpectVersion, Some), events.CheckMeta(a.Meta)); err != nil {
		return Edited{}, err
	}
	if a.Op.large {
		e, err := replace(ctx, d, a)
		return e, Note(ctx, d, a.Kind, a.ID, a.Op.name, a.Meta, err)
	}
	a.TTL = ttlOrNever(a.TTL)
	r, err := edit(ctx, d, a)
	e := Edited{named(r, a.Kind, a.ID), r.applied, r.sum}
	if err != nil || r.applied {
		return e, err
	}
	switch r.code {
	case unchanged:
	case moved:
		err = Note(ctx, d, a.Kind, a.ID, a.Op.name, a.Meta, Moved(a.Kind, a.ID, *a.ExpectVersion, e.Version))
	default:
		err = refusal(a.Op, e.Scope)
	}
	return e, err
}

// maxIncrement limits the amounts that are added up in one statement, so that 64 of them fit into 64 bits.
const maxIncrement = 1e16

// edit edits the state in the database: by scopes.increment if the edit is an inc, and by scopes.edit otherwise, or if
// scopes.increment refuses it, such as for a missing scope or a field that is not an integer.
func edit(ctx context.Context, d store.Doer, a EditArgs) (result, error) {
	if n := a.Op.amount; a.Op.name == opInc && a.ExpectVersion == nil && n != 0 && -maxIncrement < n && n < maxIncrement {
		r, err := incrementVerb.Do(ctx, d, incrementArgs{a.Kind, a.ID, a.Op.field, n, a.TTL, a.Meta})
		if err != nil || r.applied {
			return r, err
		}
	}
	return editVerb.Do(ctx, d, a)
}

// replace applies an edit in this process and replaces the state that it read. After a
// concurrent write it repeats that in a transaction: the refused put has locked the
// scope, so no other write can intervene again.
func replace(ctx context.Context, d store.Doer, a EditArgs) (e Edited, err error) {
	e, lost, err := replaceOnce(ctx, d, a)
	if !lost {
		return e, err
	}
	err = store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		for lost = true; lost; {
			e, lost, err = replaceOnce(ctx, tx, a)
		}
		return err
	})
	return e, err
}

func replaceOnce(ctx context.Context, d store.Doer, a EditArgs) (e Edited, lost bool, err error) {
	s, err := Get(ctx, d, a.Kind, a.ID)
	if fault.CodeOf(err) == fault.NotFound {
		s, err = Scope{Kind: a.Kind, ID: a.ID, Version: events.None}, nil
	}
	if err != nil {
		return e, false, err
	}
	if !Met(a.ExpectVersion, s.Version) {
		return Edited{Scope: s}, false, Moved(a.Kind, a.ID, *a.ExpectVersion, s.Version)
	}
	next, changed, err := a.Op.Apply(s.State)
	if err != nil || !changed {
		return Edited{Scope: s}, false, err
	}
	put, err := Put(ctx, d, PutArgs{Kind: a.Kind, ID: a.ID, ExpectVersion: &s.Version, State: next, TTL: a.TTL, Meta: a.Meta, Was: s.State})
	if fault.CodeOf(err) == fault.Concurrency {
		return e, true, nil
	}
	return Edited{Scope: put, Changed: err == nil}, false, err
}

// refusal returns the reason why an edit was refused.
func refusal(op Op, s Scope) error {
	state := s.State
	if s.Version == events.None {
		state = nil
	}
	if _, _, err := op.Apply(state); err != nil {
		return err
	}
	return tooLarge() // the databases count bytes in a slightly different way
}

func named(r result, kind, id string) Scope {
	r.scope.Kind, r.scope.ID = kind, id
	return r.scope
}

// CheckNames validates the kind and the id of a scope.
func CheckNames(kind, id string) error {
	if strings.Contains(kind, "/") {
		return fault.New(fault.Validation, "a scope kind must not contain a slash, got %q", kind).With("field", "kind")
	}
	return cmp.Or(strictjson.Text("kind", kind, events.MaxName), strictjson.Text("id", id, events.MaxName))
}

func checkExpected(expected *int64, least int64) error {
	if expected != nil && *expected < least {
		return fault.New(fault.Validation, "the expected version must be -1 (the scope must not exist) or a version, got %d", *expected)
	}
	return nil
}

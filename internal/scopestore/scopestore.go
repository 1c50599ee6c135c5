// Package scopestore keeps versioned state: a JSON object under a kind and an id. It is
// replaced only by a writer that names the version it has seen ([Put]), or edited where it
// is ([Edit]). A write adds one to the version, and a version is never used again, not even
// after the scope was deleted and made anew. What changes nothing writes nothing.
package scopestore

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Some, for a version, is whichever there is.
const Some = -2

// Scope is a container of state at one version.
type Scope struct {
	Kind, ID string
	Version  int64
	State    []byte // a JSON object
}

// Stream is the name of the stream that holds a scope's history.
func Stream(kind, id string) string { return "$scope/" + kind + "/" + id }

// Topic is what a change of a scope wakes.
func Topic(kind, id string) string { return "scope/" + kind + "/" + id }

// PutArgs replaces a state: nil Want whatever its version is, [events.None] if
// there is none.
type PutArgs struct {
	Kind          string        `arg:"kind"`
	ID            string        `arg:"scope"`
	ExpectVersion *int64        `arg:"want"`
	State         []byte        `arg:"state"`
	TTL           time.Duration `arg:"ttl,null"` // when it ends, from now; 0 is never
	Meta          events.Meta
}

// EditArgs edits a state: nil Want whatever its version is, [events.None] if there is
// none, [Some] if there is one.
type EditArgs struct {
	Kind          string `arg:"kind"`
	ID            string `arg:"scope"`
	Op            Op
	ExpectVersion *int64        `arg:"want"`
	TTL           time.Duration `arg:"ttl,null"` // when it ends, from now; 0 is never
	Meta          events.Meta
}

// DeleteArgs deletes a scope: nil Want whatever its version is.
type DeleteArgs struct {
	Kind          string `arg:"kind"`
	ID            string `arg:"scope"`
	ExpectVersion *int64 `arg:"want"`
	Meta          events.Meta
}

// Edited is a scope behind an edit. Its version is [events.None] where there is none. Where
// the database's answer was lost, and only the event told of it, the state is nil, and the
// sum that of an inc.
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

// What became of an edit.
const (
	refused = iota
	changed
	unchanged
	moved
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
		store.Outcome(func(r *result) (*bool, []any) { return &r.applied, []any{&r.scope.Version, &r.scope.State, &r.code} })).RecoverWith(recoveredEdit).
		Wakes(func(a EditArgs) []string { return []string{Topic(a.Kind, a.ID)} }).
		Emits(func(a EditArgs) store.Emission { return emits(a.Op.name, a.Kind, a.ID) })
)

func emits(name, kind, id string) store.Emission {
	return store.Emission{Stream: Stream(kind, id), Names: []string{name}}
}

func recovered(m store.CommitProof, state []byte) result {
	return result{applied: true, code: changed, scope: Scope{Version: m.Version, State: state}}
}

// recoveredEdit knows the sum of an inc, and not the state.
func recoveredEdit(_ EditArgs, m store.CommitProof) result {
	r := recovered(m, nil)
	var data struct{ Value int64 }
	if json.Unmarshal(m.Data, &data) == nil { // it is ours
		r.sum = data.Value
	}
	return r
}

func key(kind, id string) string { return "scope/" + kind + "/" + id }

func bindName(args *store.Args, kind, id string) {
	args.Text("kind", kind)
	args.Text("scope", id)
}

// lasts is a TTL as the databases count it: in milliseconds, one at the least; 0 is never.
func lasts(ttl time.Duration) time.Duration {
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
		err = fault.New(fault.NotFound, "there is no %s scope %q", kind, id)
	}
	return named(r, kind, id), err
}

// Put replaces a scope's state. Where the scope is not at the expected version,
// nothing is written, the error is [fault.Concurrency] with lastVersion (-1:
// there is none), and the scope is returned as it was found.
func Put(ctx context.Context, d store.Doer, a PutArgs) (Scope, error) {
	err := cmp.Or(CheckNames(a.Kind, a.ID), checkExpected(a.ExpectVersion, events.None), events.CheckMeta(a.Meta))
	if err != nil {
		return Scope{}, err
	}
	if a.State, err = State(a.State); err != nil {
		return Scope{}, err
	}
	a.TTL = lasts(a.TTL)
	r, err := putVerb.Do(ctx, d, a)
	s := named(r, a.Kind, a.ID)
	if err == nil && !r.applied {
		err = Moved(a.Kind, a.ID, *a.ExpectVersion, s.Version)
	}
	return s, err
}

// Met says that a scope is at the version that is wanted: nil is any, [events.None] that there
// is none, [Some] that there is one.
func Met(want *int64, version int64) bool {
	return want == nil || *want == version || *want == Some && version != events.None
}

// Moved is the error of a scope that is not at the expected version.
func Moved(kind, id string, want, last int64) *fault.Error {
	if want == Some {
		return fault.New(fault.Concurrency, "there is no %s scope %q, and there must be one", kind, id).With("lastVersion", last)
	}
	return events.Moved(kind+" scope "+id, want, last)
}

// Delete deletes a scope. A scope that is not there is [fault.NotFound], one at
// another version [fault.Concurrency].
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
		return s, fault.New(fault.NotFound, "there is no %s scope %q", a.Kind, a.ID)
	}
	return s, Moved(a.Kind, a.ID, *a.ExpectVersion, s.Version)
}

// Edit edits a scope's state where it is, and makes what is missing. An edit that cannot be
// made is [fault.Validation] or [fault.PayloadTooLarge], one on a scope that is not at the
// expected version [fault.Concurrency]; both leave everything as it is, and return the scope
// as it was found.
func Edit(ctx context.Context, d store.Doer, a EditArgs) (Edited, error) {
	if err := cmp.Or(CheckNames(a.Kind, a.ID), checkExpected(a.ExpectVersion, Some), events.CheckMeta(a.Meta)); err != nil {
		return Edited{}, err
	}
	if a.Op.many {
		return replace(ctx, d, a)
	}
	a.TTL = lasts(a.TTL)
	r, err := editVerb.Do(ctx, d, a)
	e := Edited{named(r, a.Kind, a.ID), r.applied, r.sum}
	if err != nil || r.applied {
		return e, err
	}
	switch r.code {
	case unchanged:
	case moved:
		err = Moved(a.Kind, a.ID, *a.ExpectVersion, e.Version)
	default:
		err = why(a.Op, e.Scope)
	}
	return e, err
}

// replace makes an edit here, and puts what comes of it in the place of what was read. If
// somebody was faster it does so in a transaction, which has locked what it was refused, so
// that nobody is faster again.
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
	put, err := Put(ctx, d, PutArgs{Kind: a.Kind, ID: a.ID, ExpectVersion: &s.Version, State: next, TTL: a.TTL, Meta: a.Meta})
	if fault.CodeOf(err) == fault.Concurrency {
		return e, true, nil
	}
	return Edited{Scope: put, Changed: err == nil}, false, err
}

// why says why an edit was refused.
func why(op Op, s Scope) error {
	state := s.State
	if s.Version == events.None {
		state = nil
	}
	if _, _, err := op.Apply(state); err != nil {
		return err
	}
	return tooLarge() // the databases do not count the very same bytes
}

func named(r result, kind, id string) Scope {
	r.scope.Kind, r.scope.ID = kind, id
	return r.scope
}

// CheckNames refuses what names no scope.
func CheckNames(kind, id string) error {
	if strings.Contains(kind, "/") {
		return fault.New(fault.Validation, "a scope's kind has no slash: %q", kind).With("field", "kind")
	}
	return cmp.Or(strictjson.Text("kind", kind, events.MaxName), strictjson.Text("id", id, events.MaxName))
}

func checkExpected(want *int64, least int64) error {
	if want != nil && *want < least {
		return fault.New(fault.Validation, "the expected version is %d: it is -1 (there must be none) or a version", *want)
	}
	return nil
}

package scopestore

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// The events of a scope have what each change was given: the patch, the value that was pushed to a list or set under a key,
// or the amount of an inc. A put has the
// difference to the state before (changes, a JSON patch) or, if that is not known or not smaller, the whole state. So the
// state at a version is computed by repeating the changes, from the first version of the scope, from a deletion, or
// from a whole state. Nothing is stored twice, and a change need not read what it replaces.

// change is the data of an event.
type change struct {
	Field   string          `json:"field"`
	Key     string          `json:"key"`
	By      json.Number     `json:"by"`
	Value   json.RawMessage `json:"value"`
	Patch   json.RawMessage `json:"patch"`
	Changes json.RawMessage `json:"changes"`
	State   json.RawMessage `json:"state"`
	Created bool            `json:"created"` // an edit of a missing or expired scope
}

// noteOf returns the data of the event of a put.
func noteOf(a PutArgs) []byte {
	whole := append(append([]byte(`{"state":`), a.State...), '}')
	if a.Was == nil || a.ExpectVersion == nil || *a.ExpectVersion < 0 {
		return whole
	}
	changes, err := strictjson.Difference(a.Was, a.State)
	if err != nil || len(changes) >= len(a.State) {
		return whole
	}
	return append(append([]byte(`{"changes":`), changes...), '}')
}

var bornVerb = store.NewVerb(store.Decl{Name: "scopes.get_born", Lane: store.Read}, nil,
	func(a [2]string, args *store.Args) { bindName(args, a[0], a[1]) }, store.ScanValues[int64])

// GetAt returns a scope as it was at a version. It returns [fault.NotFound] for a version at which the scope did not exist, that it has
// not reached, or whose history is no longer retained.
func GetAt(ctx context.Context, d store.Doer, kind, id string, version int64) (Scope, error) {
	s := Scope{Kind: kind, ID: id, Version: version}
	if err := CheckNames(kind, id); err != nil {
		return s, err
	}
	born, err := bornVerb.Do(ctx, d, [2]string{kind, id})
	if err != nil {
		return s, err
	}
	r := replay{born: events.None, last: events.None}
	if len(born) > 0 {
		r.born = born[0]
	}
	for from := int64(0); from <= version; {
		// A replay needs all events, even beyond the budget of the read.
		page, err := events.Read(store.Whole(ctx), d, events.ReadArgs{Stream: Stream(kind, id), From: from, Limit: replayPage})
		if err != nil {
			return s, err
		}
		for _, e := range page {
			if e.Version > version {
				break
			}
			if err := r.add(e); err != nil {
				return s, err
			}
		}
		if len(page) < replayPage {
			break
		}
		from = page[len(page)-1].Version + 1
	}
	switch {
	case r.last != version || !r.known:
		return s, fault.New(fault.NotFound, "version %d of %s scope %q does not exist, or the changes that led to it are no longer retained", version, kind, id)
	case r.state == nil:
		return s, fault.New(fault.NotFound, "%s scope %q did not exist at version %d", kind, id, version)
	}
	s.State = r.state
	return s, nil
}

// replayPage is the number of events that a replay reads at a time.
const replayPage = 100

// replay repeats the changes of a scope.
type replay struct {
	born  int64  // the first version of the scope's row: 0, or above all versions of the kind's deleted tombstones; None if there is no row
	last  int64  // the version of the last change
	known bool   // whether the state is known
	state []byte // nil for a missing scope
}

func (r *replay) add(e events.Event) error {
	if e.Version == 0 || e.Version == r.born {
		r.known, r.state = true, nil
	} else if e.Version != r.last+1 {
		r.known = false
	}
	r.last = e.Version
	var c change
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return fault.New(fault.DatabaseDamaged, "event %d of stream %s cannot be read: run \"holdfast check\"", e.Version, e.Stream).Wrap(err)
	}
	if c.Created {
		r.known, r.state = true, nil
	}
	switch {
	case e.Name == "deleted" || e.Name == "expired":
		r.known, r.state = true, nil
	case c.State != nil:
		r.known, r.state = true, c.State
	case !r.known:
	case c.Changes != nil:
		var err error
		r.state, err = strictjson.Patched(r.state, c.Changes)
		return err
	default:
		return r.edit(e.Name, c)
	}
	return nil
}

// edit repeats an edit. If the event does not say what it changed, because an old version of Holdfast wrote it, the state
// becomes unknown.
func (r *replay) edit(name string, c change) error {
	op := Op{name: name, field: c.Field, key: c.Key, value: c.Value}
	switch name {
	case opInc:
		op.value = []byte(c.By)
	case opPatch:
		op.value = c.Patch
	}
	if len(op.value) == 0 && name != opUnset {
		r.known, r.state = false, nil
		return nil
	}
	state, _, err := op.Apply(r.state)
	if err == nil {
		r.state = state
	}
	return err
}

package scope

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
)

// cell is a scope in memory or in a file.
type cell struct {
	version int64
	state   []byte // nil: the scope does not exist
	ends    int64  // expiry in Unix milliseconds, 0 for never
}

// none returns the cell of a scope that does not exist, and whose first version will be floor.
func none(floor int64) cell { return cell{version: floor - 1} }

func (c cell) alive(now time.Time) bool {
	return c.state != nil && (c.ends == 0 || c.ends > now.UnixMilli())
}

// seen returns the version that readers see: None for a deleted or expired scope.
func (c cell) seen(now time.Time) int64 {
	if c.alive(now) {
		return c.version
	}
	return events.None
}

func (c cell) scope(kind, id string, now time.Time) scopestore.Scope {
	s := scopestore.Scope{Kind: kind, ID: id, Version: c.seen(now)}
	if c.alive(now) {
		s.State = c.state
	}
	return s
}

// next returns the cell with a new state; nil deletes the scope.
func (c cell) next(state []byte, ttl time.Duration, now time.Time) cell {
	n := cell{version: c.version + 1, state: state}
	if ttl > 0 {
		n.ends = now.Add(max(ttl, time.Millisecond)).UnixMilli()
	}
	return n
}

// change returns the cell after an edit, a put or a removal. It does not modify the cell that it gets.
type change func(c cell, now time.Time) (cell, answer)

// answer is the result of a change.
type answer struct {
	scope   scopestore.Scope
	changed bool
	err     error
}

func notThere(kind, id string) error {
	return fault.New(fault.NotFound, "%s scope %q does not exist", kind, id)
}

func edits(a scopestore.EditArgs) change {
	return func(c cell, now time.Time) (cell, answer) {
		found := c.scope(a.Kind, a.ID, now)
		if !scopestore.Met(a.ExpectVersion, found.Version) {
			return c, answer{scope: found, err: scopestore.Moved(a.Kind, a.ID, *a.ExpectVersion, found.Version)}
		}
		state, changed, err := a.Op.Apply(found.State)
		if err != nil || !changed {
			return c, answer{scope: found, err: err}
		}
		c = c.next(state, a.TTL, now)
		return c, answer{scope: c.scope(a.Kind, a.ID, now), changed: true}
	}
}

func puts(a scopestore.PutArgs) change {
	state, err := scopestore.State(a.State)
	return func(c cell, now time.Time) (cell, answer) {
		found := c.scope(a.Kind, a.ID, now)
		if err != nil {
			return c, answer{scope: found, err: err}
		}
		if !scopestore.Met(a.ExpectVersion, found.Version) {
			return c, answer{scope: found, err: scopestore.Moved(a.Kind, a.ID, *a.ExpectVersion, found.Version)}
		}
		c = c.next(state, a.TTL, now)
		return c, answer{scope: c.scope(a.Kind, a.ID, now), changed: true}
	}
}

func removes(a scopestore.DeleteArgs) change {
	return func(c cell, now time.Time) (cell, answer) {
		found := c.scope(a.Kind, a.ID, now)
		switch {
		case found.Version == events.None:
			return c, answer{scope: found, err: notThere(a.Kind, a.ID)}
		case !scopestore.Met(a.ExpectVersion, found.Version):
			return c, answer{scope: found, err: scopestore.Moved(a.Kind, a.ID, *a.ExpectVersion, found.Version)}
		}
		c = c.next(nil, 0, now)
		gone := found
		gone.Version, gone.State = c.version, nil
		return c, answer{scope: gone, changed: true}
	}
}

// cells is a store that applies changes to cells.
type cells interface {
	change(ctx context.Context, kind, id string, f change) (answer, error)
}

// cellVerbs implements edit, put and remove of [backend] for stores that are made of cells.
type cellVerbs struct{ cells }

func (v cellVerbs) edit(ctx context.Context, a scopestore.EditArgs) (scopestore.Edited, error) {
	got, err := v.change(ctx, a.Kind, a.ID, edits(a))
	return scopestore.Edited{Scope: got.scope, Changed: got.changed}, err
}

func (v cellVerbs) put(ctx context.Context, a scopestore.PutArgs) (scopestore.Scope, error) {
	got, err := v.change(ctx, a.Kind, a.ID, puts(a))
	return got.scope, err
}

func (v cellVerbs) remove(ctx context.Context, a scopestore.DeleteArgs) (scopestore.Scope, error) {
	got, err := v.change(ctx, a.Kind, a.ID, removes(a))
	return got.scope, err
}

package lifecycleengine

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// entityStore stores the entities of a lifecycle, in Holdfast's own table or in a user
// table.
type entityStore interface {
	get(ctx context.Context, id string) (entities.Entity, error)
	// take takes a claim. The function also, if not nil, runs in the same transaction.
	take(ctx context.Context, a entities.ClaimArgs, also func(context.Context, *store.Tx, entities.Entity) error) (entities.Entity, error)
	// end ends a claim, whose claim status is claim. If the entity is then free, the commits run in the same
	// transaction.
	end(ctx context.Context, at store.Partition, a entities.EndArgs, claim string, commits []commit) (entities.Entity, error)
	// move moves an unclaimed entity.
	move(ctx context.Context, a entities.TransitionArgs, commits []commit) (entities.Entity, error)
	// recover releases a claim whose lease expired.
	recover(ctx context.Context, r recovery) (entities.Entity, bool, error)
	// unpark ends the uncertainty of an operation, in a transaction.
	unpark(ctx context.Context, tx *store.Tx, at store.Partition, a entities.UnparkArgs, claim string) (entities.Entity, error)
	// withdraw ends an operation, as [entities.Withdraw] does, and reports whether it did. The function also, if not
	// nil, runs in the same transaction.
	withdraw(ctx context.Context, at store.Partition, a entities.WithdrawArgs, also func(context.Context, *store.Tx, entities.Entity) error) (entities.Entity, bool, error)
	// adopt takes a lease on entities that are in a claim status without a claim, and returns their number. It covers one
	// workspace or, if it is "", all. It reads one page: next is where the following one begins, or 0 at the end.
	adopt(ctx context.Context, workspace string, from int) (n, next int, err error)
}

// recovery is a claim whose lease expired, and how to release it.
type recovery struct {
	entities.Lapsed
	claim  string // the status in which it is held; see heldIn
	resume bool   // the operation may be resumed
	note   []byte // of the event
	also   commit // a write of the module's janitor if the entity is reverted; may be nil
}

func (r recovery) do(ctx context.Context, d store.Doer) (entities.Entity, bool, error) {
	return entities.Recover(ctx, d, r.Lapsed, r.claim, r.resume, lease.MaxCrashes, r.note)
}

// builtinTable is Holdfast's own table.
type builtinTable struct{ bound *bound }

func (p *builtinTable) get(ctx context.Context, id string) (entities.Entity, error) {
	return entities.Get(ctx, p.bound.engine, p.bound.config.Workflow, id)
}

func (p *builtinTable) take(ctx context.Context, a entities.ClaimArgs, also func(context.Context, *store.Tx, entities.Entity) error) (e entities.Entity, err error) {
	if also == nil {
		return entities.Take(ctx, p.bound.engine, a)
	}
	changed := false
	err = p.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if e, err = entities.Take(ctx, tx, a); err != nil {
			return err
		}
		changed = true
		return also(ctx, tx, e)
	})
	return committed(e, changed, err), err
}

// committed returns the entity of a transaction. If the transaction changed it and then failed, there is no such
// entity: it returns the zero value instead of a state that was rolled back.
func committed(e entities.Entity, changed bool, err error) entities.Entity {
	if changed && err != nil {
		return entities.Entity{}
	}
	return e
}

func (p *builtinTable) end(ctx context.Context, at store.Partition, a entities.EndArgs, claim string, commits []commit) (e entities.Entity, err error) {
	a.Claim = claim
	ctx = store.InWorkspace(ctx, at.Workspace)
	if len(commits) == 0 {
		e, _, err = entities.End(ctx, p.bound.engine, at, a)
		return e, err
	}
	changed := false
	err = p.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var again bool
		var err error
		e, again, err = entities.End(ctx, tx, at, a)
		if changed = err == nil && !again; !changed || e.Claim.Phase != entities.Free {
			return err
		}
		return runCommits(ctx, tx, commits)
	})
	return committed(e, changed, err), err
}

// runCommits runs the commits of a body.
func runCommits(ctx context.Context, tx *store.Tx, commits []commit) error {
	for _, f := range commits {
		if err := f(ctx, tx); err != nil {
			return &commitError{err}
		}
	}
	return nil
}

// commitError is an error of a body's commit, regardless of its code.
type commitError struct{ error }

func (c *commitError) Unwrap() error { return c.error }

func (p *builtinTable) move(ctx context.Context, a entities.TransitionArgs, commits []commit) (e entities.Entity, err error) {
	if len(commits) == 0 {
		return entities.Transition(ctx, p.bound.engine, a)
	}
	changed := false
	err = p.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if e, err = entities.Transition(ctx, tx, a); err != nil {
			return err
		}
		changed = true
		return runCommits(ctx, tx, commits)
	})
	return committed(e, changed, err), err
}

func (p *builtinTable) recover(ctx context.Context, r recovery) (e entities.Entity, freed bool, err error) {
	ctx = store.InWorkspace(ctx, r.Workspace)
	if r.also == nil {
		return r.do(ctx, p.bound.engine)
	}
	err = p.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		if e, freed, err = r.do(ctx, tx); err != nil || !freed || e.Claim.Phase != entities.Free {
			return err
		}
		return r.also(ctx, tx)
	})
	return e, freed && err == nil, err
}

func (p *builtinTable) unpark(ctx context.Context, tx *store.Tx, at store.Partition, a entities.UnparkArgs, _ string) (entities.Entity, error) {
	return entities.Unpark(ctx, tx, at, a)
}

func (p *builtinTable) withdraw(ctx context.Context, at store.Partition, a entities.WithdrawArgs, also func(context.Context, *store.Tx, entities.Entity) error) (e entities.Entity, done bool, err error) {
	if also == nil {
		return entities.Withdraw(ctx, p.bound.engine, at, a)
	}
	err = p.bound.engine.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if e, done, err = entities.Withdraw(ctx, tx, at, a); err != nil || !done {
			return err
		}
		return also(ctx, tx, e)
	})
	return e, done && err == nil, err
}

// adopt does nothing: [registry.strays] covers the built-in table for all lifecycles.
func (p *builtinTable) adopt(context.Context, string, int) (n, next int, err error) { return 0, 0, nil }

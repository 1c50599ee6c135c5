package scope

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

type stateKey struct{}

// shared is the house of an engine and of its transactions.
func shared(p *store.Directory) *state {
	return p.Shared(stateKey{}, func() any { return new(state) }).(*state)
}

// verbs are those of a database, on an engine or in a transaction.
type verbs struct {
	doer   store.Doer
	common *state
}

func (v verbs) state() *state { return v.common }

func (v verbs) get(ctx context.Context, kind, id string) (scopestore.Scope, error) {
	return scopestore.Get(ctx, v.doer, kind, id)
}

func (v verbs) edit(ctx context.Context, a scopestore.EditArgs) (scopestore.Edited, error) {
	return scopestore.Edit(ctx, v.doer, a)
}

func (v verbs) put(ctx context.Context, a scopestore.PutArgs) (scopestore.Scope, error) {
	return scopestore.Put(ctx, v.doer, a)
}

func (v verbs) remove(ctx context.Context, a scopestore.DeleteArgs) (scopestore.Scope, error) {
	return scopestore.Delete(ctx, v.doer, a)
}

// engineBackend keeps scopes in the database of an engine.
type engineBackend struct {
	verbs
	engine *engine.Engine
}

func (e *engineBackend) traits() traits                  { return traits{queued: true} }
func (e *engineBackend) ready(ctx context.Context) error { return e.engine.Outside(ctx) }

// watchEvery is how often a scope is looked at whose changes nobody told of: those of nodes
// that do not reach this one, and the end of its time to live.
const watchEvery = 2 * time.Second

// watch leaves the looking to the pulse of a node that runs, which asks for all watchers in
// one statement.
func (e *engineBackend) watch(kind, id string) watching {
	hub := e.engine.Hub()
	woken, end := hub.Wait(scopestore.Topic(kind, id))
	return watching{woken: woken, end: end, every: watchEvery, rest: func(ctx context.Context, seen int64) (<-chan struct{}, func(), bool) {
		at, ok := e.engine.Runner().Directory.Known(store.WorkspaceOf(ctx))
		if !ok { // another node may give the workspace a place that this one would not
			return nil, nil, false
		}
		return hub.Rest(wake.ScopeChanged(at, kind, id, seen))
	}}
}

// txBackend keeps scopes in a transaction. It is one caller, so nobody queues, and it has no
// budget: its owner's context bounds it.
type txBackend struct{ verbs }

func (t *txBackend) traits() traits              { return traits{} }
func (t *txBackend) ready(context.Context) error { return nil }

// watch wakes nobody: see [Scope.Watch].
func (t *txBackend) watch(string, string) watching { return watching{end: func() {}} }

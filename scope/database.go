package scope

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

type stateKey struct{}

// shared returns the state that an engine and its transactions have in common.
func shared(p *store.Directory) *state {
	return p.Shared(stateKey{}, func() any { return new(state) }).(*state)
}

// verbs implements get, edit, put and remove of [backend] in a database, on an engine or in a transaction.
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

func (v verbs) refused(ctx context.Context, kind, id, action string, by events.Meta, err error) error {
	return scopestore.Note(ctx, v.doer, kind, id, action, by, err)
}

// unrecorded is the part of a backend that has no refusals.
type unrecorded struct{}

func (unrecorded) refused(_ context.Context, _, _, _ string, _ events.Meta, err error) error {
	return err
}

// engineBackend stores scopes in the database of an engine.
type engineBackend struct {
	verbs
	engine *engine.Engine
}

func (e *engineBackend) traits() traits                  { return traits{queued: true} }
func (e *engineBackend) ready(ctx context.Context) error { return e.engine.Outside(ctx) }

// watchEvery is the poll interval for changes without a notification: changes by nodes that
// cannot reach this one, and the end of the time to live.
const watchEvery = 2 * time.Second

// watch leaves polling to the idle poller of a running node, which serves all watchers with one
// statement.
func (e *engineBackend) watch(kind, id string) watching {
	hub := e.engine.Hub()
	woken, end := hub.Wait(scopestore.Topic(kind, id))
	return watching{woken: woken, end: end, every: watchEvery, rest: func(ctx context.Context, seen int64) (<-chan struct{}, func(), bool) {
		at, ok := e.engine.Runner().Directory.Known(store.WorkspaceOf(ctx))
		if !ok { // another node may assign the workspace to a partition that this one would not
			return nil, nil, false
		}
		return hub.Rest(wake.ScopeChanged(at, kind, id, seen))
	}}
}

// txBackend stores scopes in a transaction. A transaction is a single caller, so there is no
// queue, and it has no budget: the context of its owner limits it.
type txBackend struct{ verbs }

func (t *txBackend) traits() traits              { return traits{} }
func (t *txBackend) ready(context.Context) error { return nil }

// watch is not supported in a transaction: see [Scope.Watch].
func (t *txBackend) watch(string, string) watching { return watching{end: func() {}} }

package stream

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Projection keeps a table, or anything else in the same database, up to date from events. Each
// event is applied once, in the transaction that acknowledges it. It is a [holdfast.Part].
type Projection struct {
	reaction
	clear func(context.Context, holdfast.Tx) error
}

// Project makes a projection. apply writes the changes that an event causes. clear, for [Projection.Rebuild], removes
// everything that apply has written for the events of the context's workspace ([holdfast.WorkspaceOf]), and nothing of
// another workspace, because only the events of that workspace are applied again. Both must write only through the transaction that they get, and must have no
// other effects, because they may run again. As for [React], a projection exists only in the workspaces that its options
// list or, without a list, in the default workspace.
func Project(name string, sel Select, apply func(context.Context, holdfast.Tx, Event) error,
	clear func(context.Context, holdfast.Tx) error, o Options) *Projection {
	body := func(_ context.Context, d *Delivery) error {
		d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { return apply(ctx, tx, d.Event) })
		return nil
	}
	if apply == nil || clear == nil {
		body = nil // Register refuses it
	}
	return &Projection{reaction: reaction{name: name, sel: sel, body: body, o: o}, clear: clear}
}

// Rebuild clears the projection and applies every stored event again, in the context's workspace. It returns when the
// rebuild has begun; [Projection.GetProgress] returns its progress. If an event is being applied when the rebuild
// begins, what it writes is either removed by clear or rejected.
func (p *Projection) Rebuild(ctx context.Context, e *holdfast.Engine) error {
	_, err := reactions.Rebuild(ctx, engine.Of(e), p.name, store.TxFunc(p.clear))
	if err == nil {
		engine.Of(e).Hub().Wake([]string{store.DueTopic(p.name)})
	}
	return err
}

// Progress describes how far a reaction has come, over all its streams.
type Progress struct {
	Streams int
	Behind  int // streams that have work
	Blocked int
	// Events counts, in each stream, the versions up to the last one that concerns the reaction, and Handled those up
	// to its watermark. Both include versions that the reaction does not select or that are no longer stored, so Handled
	// is equal to Events if no stream is behind.
	Handled, Events int64
}

// GetProgress returns the progress of the projection in the context's workspace. If the projection is not registered
// there, the error is [holdfast.ErrNotFound].
func (p *Projection) GetProgress(ctx context.Context, d holdfast.Doer) (Progress, error) {
	return GetProgress(ctx, d, p.name)
}

// GetProgress returns the progress of a reaction in the context's workspace, or [holdfast.ErrNotFound].
func GetProgress(ctx context.Context, d holdfast.Doer, reaction string) (Progress, error) {
	if _, err := reactions.Get(ctx, store.DoerOf(d), reaction); err != nil {
		return Progress{}, err
	}
	p, err := reactions.ProgressOf(ctx, store.DoerOf(d), reaction)
	return Progress(p), err
}

package runs

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Local is what an engine has for runs.
type Local struct {
	Desk *Desk
	// Worker does the steps whose handlers the program has brought; nil is nobody.
	Worker *Worker
	// Handled tells what is known of those handlers.
	Handled func() map[string]Handled
}

type localKey struct{}

// LocalOf returns what an engine has. Package run fills it before the engine runs.
func LocalOf(e interface {
	Shared(key any, make func() any) any
}) *Local {
	return e.Shared(localKey{}, func() any { return &Local{Desk: new(Desk)} }).(*Local)
}

// Start starts a run. One that is not part of a transaction is begun here at once, where there is room.
func (l *Local) Start(ctx context.Context, d store.Doer, s Start) (at Live, created bool, err error) {
	if _, inside := d.(*store.Tx); inside || l.Worker == nil {
		return l.Desk.Start(ctx, d, s)
	}
	mine, serve, free := l.Worker.Eager(store.WorkspaceOf(ctx))
	defer free()
	s.Mine, s.Holder, s.Lease = mine, l.Worker.Name, l.Worker.HeldFor()
	if at, created, err = l.Desk.Start(ctx, d, s); created && at.Taken() {
		serve(&at)
	}
	return at, created, err
}

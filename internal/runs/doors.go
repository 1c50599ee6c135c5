package runs

import (
	"context"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
)

// What the doors need to know of steps that are done elsewhere.

// HeldTask is the step that a task is, in the context's workspace, as it stands, and says
// whether it is in somebody's hands under that very epoch. What is not cannot be ended: only whoever ended it can be told so again.
func HeldTask(ctx context.Context, d store.Doer, id string, epoch int64) (l Live, held bool, err error) {
	parts, ok := hold.Parts(taskPrefix, id, 3)
	var visit int64
	if ok {
		visit, err = strconv.ParseInt(parts[2], 10, 64)
	}
	if !ok || err != nil {
		return l, false, fault.New(fault.NotFound, "there is no task %q", id)
	}
	at, err := d.Place(ctx, store.Read)
	if err != nil {
		return l, false, err
	}
	l, err = load(ctx, d, at, loadArgs{parts[0], parts[1], visit})
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "there is no task %q", id)
	}
	held = err == nil && l.Step.Epoch == epoch && l.Step.Holder != ""
	return l, held, err
}

// Now is the step as it stands: under the epoch that it has, whatever the one is that l was
// asked for with.
func (l *Live) Now(ctx context.Context, d store.Doer) (Live, error) {
	return load(ctx, d, l.place(), loadArgs{l.Run.ID, l.Step.Name, l.Step.Visit})
}

// Doubtful says whether an earlier attempt of an opaque body may have acted. What this one
// says of itself is no word on that.
func (l *Live) Doubtful(ctx context.Context, d store.Doer) (bool, error) {
	if l.Step.Safety != opaque {
		return false, nil
	}
	return l.doubtful(ctx, d)
}

// Open says whether an effect of the step was begun of which nothing is known, beside an
// opaque body as a whole.
func (l *Live) Open(ctx context.Context, d store.Doer) (bool, error) {
	open, _, err := l.open(ctx, d, nil)
	return open, err
}

// operationPrefix begins the id that an operation has in a path.
const operationPrefix = "opr_"

// OperationID names the step's operation in a path: it has no slash.
func (l *Live) OperationID() string {
	return hold.ID(operationPrefix, l.Run.ID, l.Step.Name, itoa(l.Step.Visit))
}

// OperationOf is the operation that an [Live.OperationID] names, or that id itself where it
// is an operation already; false if it is none of a step.
func OperationOf(id string) (operation string, ok bool) {
	if IsOperation(id) {
		return id, true
	}
	parts, ok := hold.Parts(operationPrefix, id, 3)
	if !ok {
		return "", false
	}
	visit, err := strconv.ParseInt(parts[2], 10, 64)
	return Operation(parts[0], parts[1], visit), err == nil && IsOperation(parts[0])
}

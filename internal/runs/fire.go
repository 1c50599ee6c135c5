package runs

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/transition"
)

// lookAgain is when the fate of an operation is asked for again that goes on elsewhere.
const lookAgain = time.Second

// lookElsewhere is when a transition is given up again by a node that has not its lifecycle.
const lookElsewhere = 5 * time.Second

// Transit does a transition: it fires once, under the step's hold, and then asks what
// became of it.
func Transit(ctx context.Context, firer transition.Firer, l *Live, f transition.Request) (Done, error) {
	if _, here := firer.Steps(ctx, f.Lifecycle); !here { // another node has it, or will
		return Done{}, Pass(lookElsewhere)
	}
	if l.Step.Fired != "" {
		return fated(ctx, firer, l, f)
	}
	output, err := firer.Fire(ctx, f, func(ctx context.Context, tx *store.Tx, operation string) error {
		return Point(ctx, tx, l, operation)
	})
	if err == nil {
		return Done{Output: output}, nil
	}
	x, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return Done{}, err
	}
	switch outcome, _ := x.Fields["outcome"].(string); {
	case outcome == "pending" || outcome == "uncertain":
		return Done{}, Pass(lookAgain)
	case x.Code == fault.ActionFailed && outcome == "released":
		return Done{}, &unfired{err}
	case x.Code == fault.ActionInvalid:
		return Done{}, &unfired{fault.NonRetryable(err)}
	case x.Code == fault.InvalidTransition, x.Code == fault.Forbidden, x.Code == fault.NotFound, x.Code == fault.Validation:
		return Done{}, fault.NonRetryable(err)
	}
	return Done{}, err
}

func fated(ctx context.Context, firer transition.Firer, l *Live, f transition.Request) (Done, error) {
	outcome, output, message, err := firer.Fate(ctx, f, l.Step.Fired)
	switch {
	case err != nil:
		return Done{}, err
	case outcome == "success":
		return Done{Output: output}, nil
	case outcome == "pending" || outcome == "uncertain":
		return Done{}, Pass(lookAgain)
	}
	return Done{}, &unfired{fault.New(fault.ActionFailed, "%s", message)}
}

// unfired is the error of a transition whose operation has ended, without effect: the next
// attempt fires another.
type unfired struct{ error }

func (u *unfired) Unwrap() error { return u.error }

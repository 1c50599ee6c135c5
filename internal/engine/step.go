package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Step does one thing that is due in a workspace, in the calling goroutine and as a background loop does it, and
// reports whether there was anything to do.
type Step = func(ctx context.Context, at store.Partition) (found bool, err error)

type stepper struct {
	kinds func() []wake.WorkKind
	step  Step
}

// Steps adds a loop that a test can step by hand: the work that it serves, and one step of it. A part calls it where it
// adds the loop with [Engine.Background], and both use the same code.
func (e *Engine) Steps(kinds func() []wake.WorkKind, step Step) {
	e.steppers = append(e.steppers, stepper{kinds, step})
}

// Learns adds a function with which a loop begins: it reads what other nodes have declared, such as handlers. A part
// calls it where it adds that loop with [Engine.Background].
func (e *Engine) Learns(learn func(context.Context) error) { e.learners = append(e.learners, learn) }

// Learn reads what other nodes have declared, for a test that steps the loops by hand.
func (e *Engine) Learn(ctx context.Context) error {
	for _, learn := range e.learners {
		if err := learn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Adopts adds the search of a sweep for work that is not listed as due, such as a row that other code has put into a claim
// status. A part calls it where it adds that sweep with [Engine.Sweep].
func (e *Engine) Adopts(adopt Step) { e.adopters = append(e.adopters, adopt) }

// Adopt searches a workspace for such work, for a test that steps the loops by hand, and reports whether there is any.
func (e *Engine) Adopt(ctx context.Context, at store.Partition) (found bool, err error) {
	for _, adopt := range e.adopters {
		some, failed := adopt(ctx, at)
		found, err = found || some, errors.Join(err, failed)
	}
	return found, err
}

// StepOf returns the step of the loops or the sweep that serve a kind of work; nil if this engine has none. Several loops
// serve a kind if a handler of that name is at a URL in one workspace and a function or a worker in another.
func (e *Engine) StepOf(k wake.WorkKind) Step {
	var steps []Step
	for _, s := range e.steppers {
		if slices.Contains(s.kinds(), k) {
			steps = append(steps, s.step)
		}
	}
	for _, s := range e.janitor.Sweeps {
		if slices.Contains(s.Needs, k) {
			steps = append(steps, func(ctx context.Context, _ store.Partition) (bool, error) {
				freed, err := s.Run(store.OnlyWorkspace(ctx), true)
				return freed > 0, err
			})
		}
	}
	if len(steps) == 0 {
		return nil
	}
	return func(ctx context.Context, at store.Partition) (found bool, err error) {
		for _, step := range steps {
			if found, err = step(ctx, at); found || err != nil {
				break
			}
		}
		return found, err
	}
}

// Running reports whether Run runs.
func (e *Engine) Running() bool { return e.running.Load() }

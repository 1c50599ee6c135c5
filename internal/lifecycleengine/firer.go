package lifecycleengine

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/transition"
)

// firer fires the steps of this engine's lifecycles for runs.
type firer struct{ board *board }

// Fire fires a step.
func (f firer) Fire(ctx context.Context, x transition.Request, begun func(context.Context, *store.Tx, string) error) ([]byte, error) {
	s, err := f.board.find(ctx, x.Lifecycle)
	if err != nil {
		return nil, err
	}
	var output json.RawMessage
	o := []FireOption{Beginning(begun), OutputTo(&output)}
	if len(x.Input) > 0 {
		o = append(o, Input(x.Input))
	}
	e, err := s.fire(ctx, x.Entity, x.StepKey, x.Requester, o)
	if err != nil {
		return nil, err
	}
	return toRun(e.Status, e.Version, output), nil
}

// toRun is what a run is told of a step that was done.
func toRun(status string, version int64, output json.RawMessage) []byte {
	out := map[string]any{"status": status, "version": version}
	if len(output) > 0 {
		out["output"] = output
	}
	text, _ := json.Marshal(out) // of what is JSON already, it does not fail
	return text
}

// Fate says what became of an operation.
func (f firer) Fate(ctx context.Context, x transition.Request, operation string) (outcome string, output []byte, message string, err error) {
	s, err := f.board.find(ctx, x.Lifecycle)
	if err != nil {
		return "", nil, "", err
	}
	fate, err := s.fateOf(ctx, x.Entity, operation)
	if err != nil {
		return "", nil, "", err
	}
	e, err := s.ground.get(ctx, x.Entity)
	return fate.Outcome, toRun(e.Status, e.Version, fate.Output), fate.Message, err
}

// Steps returns which steps a lifecycle has.
func (f firer) Steps(ctx context.Context, name string) (map[string]bool, bool) {
	s, err := f.board.find(ctx, name)
	if err != nil {
		return nil, false
	}
	keys := make(map[string]bool)
	for i := range s.config.Steps {
		keys[s.config.Steps[i].Key] = true
	}
	return keys, true
}

package lifecycleengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/transition"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Check checks the lifecycle for an engine without the database.
func (c *Lifecycle) Check(e *engine.Engine) error {
	_, err := c.check(e)
	return err
}

func (c *Lifecycle) check(e *engine.Engine) (warnings []lifecycleconfig.Violation, err error) {
	violations, warnings := c.config.Lint(c.declared())
	if len(violations) > 0 {
		err = invalidConfig(violations)
	}
	return warnings, errors.Join(err, c.bad, c.checkClaimsRecovered(registryOf(e).modules[c.config.OwningModule]), c.checkDeliveries(), c.checkTimeouts())
}

// checkTimeouts refuses the timeout of a validation or of an unclaimed action that has no effect, because the step ends first. Lint
// does the same for claimed actions (R14).
func (c *Lifecycle) checkTimeouts() error {
	for i := range c.config.Steps {
		s := &c.config.Steps[i]
		for _, requester := range s.Offered() {
			name, _ := s.Validation.For(requester)
			names := []string{name}
			if _, claimed := s.Claim.For(requester); !claimed {
				name, _ = s.Action.For(requester)
				names = append(names, name)
			}
			for _, name := range names {
				if h := c.handlers[name]; h != nil && h.Timeout >= timeoutOf(s) {
					return fault.New(fault.Validation, "lifecycle %q: the timeout of handler %q (%s) must be shorter than that of step %q (%s)", c.config.Workflow, name, h.Timeout, s.Key, timeoutOf(s))
				}
			}
		}
	}
	return nil
}

// Start checks the lifecycle and registers it with an engine that is being opened.
func (c *Lifecycle) Start(ctx context.Context, e *engine.Engine) error {
	warnings, err := c.check(e)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		e.Log().Warn("lifecycle config warning", "lifecycle", c.config.Workflow, "rule", w.Rule, "path", w.Path, "line", w.Line, "message", w.Message)
	}
	s := &bound{Lifecycle: c, engine: e, registry: registryOf(e), registering: make(chan struct{}, 1)}
	if s.store, err = s.newStore(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.addAfterEffects(), s.registry.add(s)); err != nil {
		return err
	}
	if err := checkOrigin(ctx, e, originAPI, c.config.Workflow); err != nil {
		return err
	}
	return s.registerAll(ctx)
}

// add registers a lifecycle. The first call starts the background loops that all lifecycles share.
func (b *registry) add(s *bound) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := s.config.Workflow
	if b.bound[name] != nil {
		return fault.New(fault.Conflict, "two lifecycles are named %q: rename one of them", name)
	}
	for _, other := range b.bound {
		if err := s.checkRowsUnshared(other); err != nil {
			return err
		}
	}
	b.bound[name] = s
	b.start()
	return nil
}

// checkRowsUnshared refuses two lifecycles of a program that have the same status column of the same rows: they would not exclude
// each other.
func (s *bound) checkRowsUnshared(other *bound) error {
	mine, ok := s.store.(*userTable)
	its, too := other.store.(*userTable)
	if !ok || !too || !mine.table.SharesRows(its.table) || !strings.EqualFold(cmp.Or(s.config.Table.Status, "status"), cmp.Or(other.config.Table.Status, "status")) {
		return nil
	}
	return fault.New(fault.Validation, "the tables of lifecycles %q and %q %s: give each lifecycle its own table or its own status column",
		other.config.Workflow, s.config.Workflow, sharedRows(its.table, mine.table))
}

// start starts the background loops, once per engine.
func (b *registry) start() {
	b.once.Do(func() {
		transition.Register(b.engine, transitioner{b})
		b.engine.Background(b.resume)
		b.engine.Serves(b.workKinds)
		b.engine.Steps(b.workKinds, b.step) // for tests that run the loop step by step
		b.engine.Leases("operations", b.expire, wake.WorkKind{Kind: wake.HeldOperation})
		b.engine.Sweep("lifecycles", b.adopt)
		b.engine.Adopts(b.adoptAll)
	})
}

// ServePublished makes an engine serve lifecycles that are published through the API. It must be called before the engine
// runs. The configs may name the given user tables; a table that cannot be used is an error.
func ServePublished(ctx context.Context, e *engine.Engine, r Caller, tables map[string]EntityTable) error {
	b := registryOf(e)
	if b.published != nil {
		return fault.New(fault.Conflict, "this engine already serves published lifecycles")
	}
	if err := checkTables(ctx, e, tables); err != nil {
		return err
	}
	b.published = &publishedSet{registry: b, remote: r, tables: tables, rows: make(map[publishedKey]string), unserved: make(map[publishedKey]bool), withheld: make(map[publishedKey]bool), worker: reactions.CallingWorker(e), bound: make(map[publishedKey]*cached), known: make(map[string][]string), served: make(map[string]bool), since: make(map[int16]int64)}
	b.start()
	e.Background(b.published.learn)
	e.Learns(b.published.poll) // for tests that run the loops step by step
	remotehandler.Watch(e)
	return nil
}

// transitioner fires steps of this engine's lifecycles for runs.
type transitioner struct{ registry *registry }

// Fire fires a step. begun is called with the operation's id in the transaction that begins the operation.
func (f transitioner) Fire(ctx context.Context, x transition.Request, begun func(context.Context, *store.Tx, string) error) ([]byte, error) {
	s, err := f.registry.find(ctx, x.Lifecycle)
	if err != nil {
		return nil, err
	}
	var output json.RawMessage
	o := FireOptions{Begin: begun, Output: &output}
	if len(x.Input) > 0 {
		o.SetInput(x.Input)
	}
	e, err := s.fire(ctx, x.Entity, x.StepKey, x.Requester, o)
	if err != nil {
		return nil, err
	}
	return runResult(e.Status, e.Version, output), nil
}

// runResult encodes the result of a step for the run that fired it.
func runResult(status string, version int64, output json.RawMessage) []byte {
	out := map[string]any{"status": status, "version": version}
	if len(output) > 0 {
		out["output"] = output
	}
	text, _ := json.Marshal(out) // cannot fail: every value is valid JSON
	return text
}

// Outcome returns the outcome of an operation.
func (f transitioner) Outcome(ctx context.Context, x transition.Request, operation string) (outcome string, output []byte, message string, err error) {
	s, err := f.registry.find(ctx, x.Lifecycle)
	if err != nil {
		return "", nil, "", err
	}
	known, err := s.outcomeOf(ctx, x.Entity, operation)
	if err != nil {
		return "", nil, "", err
	}
	e, err := s.store.get(ctx, x.Entity)
	return known.Outcome, runResult(e.Status, e.Version, known.Output), known.Message, err
}

// Steps returns the keys of a lifecycle's steps.
func (f transitioner) Steps(ctx context.Context, name string) (map[string]bool, bool) {
	s, err := f.registry.find(ctx, name)
	if err != nil {
		return nil, false
	}
	keys := make(map[string]bool)
	for i := range s.config.Steps {
		keys[s.config.Steps[i].Key] = true
	}
	return keys, true
}

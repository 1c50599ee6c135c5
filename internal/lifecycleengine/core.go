package lifecycleengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Lifecycle is a config with its handlers, for entities whose data is whatever JSON it is. Package lifecycle is its public face.
type Lifecycle struct {
	config     *lifecycles.Config
	text       string
	handlers   map[string]*handler
	janitors   []Janitor
	standard   bool // the standard janitor is asked for
	workspaces []string
	// bound is where a lifecycle is that was put through the door: in one
	// workspace of one engine.
	bound *site
}

// handler is named user code.
type handler struct {
	lifecycles.Handler
	name string
	body body
	// queue is where its workers take what there is to do; "" is for one that is
	// called. unknown is what they do about an effect of which nothing is known.
	queue   string
	unknown effects.Policy
	missing bool // it is named, and nobody has declared it
	// after is how an after-effect is delivered, where the program says it.
	after *lifecycles.AfterEffect
}

// body is a handler's code.
type body func(context.Context, *work) error

func (c *Lifecycle) add(kind, name string, b body, o []HandlerOption) {
	if c.handlers[name] != nil || name == "" {
		panic(fmt.Sprintf("lifecycle: the handler %q is set twice, or has no name", name))
	}
	h := &handler{Handler: lifecycles.Handler{Kind: kind}, name: name, body: b}
	for _, set := range o {
		set(h)
	}
	c.handlers[name] = h
}

// site is a lifecycle on an engine.
type site struct {
	*Lifecycle
	engine *engine.Engine
	board  *board
	ground ground
	afters []reactions.Definition

	known sync.Map      // workspaces that the lifecycle is registered in
	turn  chan struct{} // of who registers it
}

// ready registers the lifecycle in the context's workspace when it is first used
// there. Where another config is in force it stays: a node that comes late does not
// take back what one that was started after it has brought.
func (s *site) ready(ctx context.Context) error {
	space := store.WorkspaceOf(ctx)
	if _, known := s.known.Load(space); known {
		return nil
	}
	if o, ok := s.ground.(*own); ok && o.space != "" && o.space != space {
		return nil // there is nothing of it there
	}
	if len(s.workspaces) > 0 && !slices.Contains(s.workspaces, space) {
		return fault.New(fault.Validation, "the lifecycle %q is not for the workspace %q: name it in In", s.config.Workflow, space)
	}
	return s.enlist(ctx, false)
}

// enlist registers the lifecycle in the context's workspace; replace says that its
// config replaces another.
func (s *site) enlist(ctx context.Context, replace bool) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, known := s.known.Load(store.WorkspaceOf(ctx)); known && !replace {
		return nil
	}
	if err := s.register(ctx, replace); err != nil {
		return err
	}
	if err := s.registerAfterEffects(ctx); err != nil {
		return err
	}
	s.known.Store(store.WorkspaceOf(ctx), true)
	return nil
}

// at returns the lifecycle on an engine that it was started on.
func (c *Lifecycle) at(e *engine.Engine) (*site, error) {
	if c.bound != nil && c.bound.engine == e {
		return c.bound, nil
	}
	if s := boardOf(e).site(c.config.Workflow); s != nil && s.Lifecycle == c {
		return s, nil
	}
	return nil, fault.New(fault.Validation, "the lifecycle %q is not part of this engine: hand it to holdfast.Open", c.config.Workflow)
}

// start checks the lifecycle and makes it known to the engine.
func (c *Lifecycle) start(ctx context.Context, e *engine.Engine) error {
	known := make(map[string]lifecycles.Handler, len(c.handlers))
	for name, h := range c.handlers {
		known[name] = h.Handler
	}
	violations, warnings := c.config.Lint(known)
	if len(violations) > 0 {
		return refused(violations)
	}
	for _, w := range warnings {
		e.Log().Warn("a lifecycle's config could be better", "lifecycle", c.config.Workflow, "rule", w.Rule, "path", w.Path, "line", w.Line, "message", w.Message)
	}
	if err := errors.Join(c.covered(), c.checkDeliveries()); err != nil {
		return err
	}
	s := &site{Lifecycle: c, engine: e, board: boardOf(e), turn: make(chan struct{}, 1)}
	var err error
	if s.ground, err = s.newGround(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.addAfterEffects(), s.board.add(s)); err != nil {
		return err
	}
	if err := notOf(ctx, e, "door", c.config.Workflow); err != nil {
		return err
	}
	return s.enlistAll(ctx)
}

// enlistAll brings the config into force in every workspace that it is for, and
// where another is in force. There may be many workspaces, and in most of them
// nothing changes when a node starts: these wait for their first use.
func (s *site) enlistAll(ctx context.Context) error {
	spaces := s.spaces()
	shards, err := store.Shards(ctx, s.engine)
	for _, shard := range shards {
		behind, failed := behindVerb.DoAt(ctx, s.engine, store.Place{Shard: shard}, behindArgs{s.config.Workflow, s.text})
		err = errors.Join(err, failed)
		if len(s.workspaces) == 0 {
			spaces = append(spaces, behind...)
		}
	}
	if err != nil {
		return err
	}
	slices.Sort(spaces)
	for _, space := range slices.Compact(spaces) {
		if err := s.enlist(store.InWorkspace(ctx, space), true); err != nil {
			return err
		}
	}
	return nil
}

// spaces are the workspaces that the lifecycle is for.
func (c *Lifecycle) spaces() []string {
	if len(c.workspaces) == 0 {
		return []string{store.DefaultWorkspace}
	}
	return c.workspaces
}

// handler returns the handler that a step names for a requester, or nil.
func (c *Lifecycle) handler(p lifecycles.Per[string], requester string) *handler {
	name, _ := p.For(requester)
	return c.handlers[name]
}

// offered returns the steps of a key that a requester may fire.
func (c *Lifecycle) offered(key, requester string) ([]*lifecycles.Step, error) {
	var steps []*lifecycles.Step
	known := false
	for i := range c.config.Steps {
		s := &c.config.Steps[i]
		if s.Key != key {
			continue
		}
		known = true
		if s.Offers(requester) {
			steps = append(steps, s)
		}
	}
	switch {
	case !known:
		return nil, fault.New(fault.NotFound, "the lifecycle %q has no step %q", c.config.Workflow, key)
	case len(steps) == 0:
		return nil, fault.New(fault.Forbidden, "the step %q of %q is not for the requester %q", key, c.config.Workflow, requester)
	}
	return steps, nil
}

// stepAt returns the step of some that starts at a status.
func stepAt(steps []*lifecycles.Step, status string) *lifecycles.Step {
	for _, s := range steps {
		if slices.Contains(s.Status, status) {
			return s
		}
	}
	return nil
}

// acts says whether a step runs code for a requester.
func (c *Lifecycle) acts(s *lifecycles.Step, requester string) bool {
	return c.handler(s.Action, requester) != nil || c.handler(s.Validation, requester) != nil
}

// claimAt returns the claim that a step takes for a requester at a status. The code of a
// serialized requester runs under a lease: a claim that leaves the status as it is, and
// excludes all others as any claim does. A config without claims has nobody to exclude,
// and perhaps no janitor: then no lease is taken.
func (c *Lifecycle) claimAt(s *lifecycles.Step, status, requester string) (entities.Choice, bool) {
	if claim, ok := s.Claim.For(requester); ok {
		return entities.Choice{Into: claim.Into, Revert: claim.Revert}, true
	}
	leased := c.acts(s, requester) && c.config.Serialized(s.Key, status, requester) && len(c.config.Claims()) > 0
	return entities.Choice{Into: status, Revert: status}, leased
}

// heldAt says whether an operation of a step is held at a status: that of its claim or,
// under a lease, where the step starts.
func heldAt(s *lifecycles.Step, status, requester string) bool {
	if c, claimed := s.Claim.For(requester); claimed {
		return c.Into == status
	}
	return slices.Contains(s.Status, status)
}

// choices are the claims of steps by the status that they leave; ok is false where
// the requester does not take one.
func (c *Lifecycle) choices(steps []*lifecycles.Step, requester string) (all map[string]entities.Choice, ok bool) {
	all = make(map[string]entities.Choice)
	for _, s := range steps {
		for _, status := range s.Status {
			if all[status], ok = c.claimAt(s, status, requester); !ok {
				return nil, false
			}
		}
	}
	return all, true
}

// lease is how long a claim of a fired step is held without a renewal.
func (s *site) lease(a *asked) time.Duration {
	if a.lease > 0 {
		return a.lease
	}
	return min(hold.Lease, s.stuckAfter())
}

// stuckAfter is how long a claim is held that nobody renews.
func (s *site) stuckAfter() time.Duration {
	if j := s.config.Janitor; j != nil && j.StuckAfter > 0 {
		return j.StuckAfter
	}
	return cmp.Or(s.engine.StuckAfter(), stuckAfter)
}

// stuckAfter is the default of a config's stuck_after.
const stuckAfter = 5 * time.Minute

func timeoutOf(s *lifecycles.Step) time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return hold.Timeout
}

package lifecycleengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
)

// How far a node looks back for lifecycles that others have put, in ms: a transaction
// that began earlier may commit later.
const (
	lookBack  = 60_000
	learnPage = 500
)

// learn finds the lifecycles that were put, on whatever node, until ctx ends: this
// node resumes their operations, frees what is left of them, and runs their
// after-effects.
func (d *publishedSet) learn(ctx context.Context) {
	ticks := time.NewTicker(remotehandler.LearnEvery)
	defer ticks.Stop()
	woken, end := d.registry.engine.Hub().Wait(remotehandler.Topic)
	defer end()
	for {
		if err := d.poll(ctx); err != nil && ctx.Err() == nil {
			d.registry.engine.Log().Warn("lifecycles that were put through the API could not be read", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-ticks.C:
		}
	}
}

func (d *publishedSet) poll(ctx context.Context) error {
	urls, err := remotehandler.URLs(ctx, d.registry.engine)
	if err != nil {
		return err
	}
	d.urls.Store(&urls)
	handled, err := reactions.AllHandled(ctx, d.registry.engine, "http")
	if err != nil {
		return err
	}
	for _, x := range handled { // also those that no config names any more
		if (After{}).Is(x.Info) {
			if err := d.serve(workflowOf(x.Info), x.Options.Handler, x.Definition); err != nil {
				return err
			}
		}
	}
	shards, err := store.Shards(ctx, d.registry.engine)
	for _, shard := range shards {
		d.mu.Lock()
		since := d.since[shard]
		d.mu.Unlock()
		from, limit := max(0, since-lookBack), learnPage
		for {
			page, failed := listPublishedVerb.DoAt(ctx, d.registry.engine, store.Partition{Shard: shard}, listPublishedArgs{from, limit})
			if failed != nil {
				return errors.Join(err, failed)
			}
			last := from
			for _, p := range page {
				last = max(last, p.at)
				err = errors.Join(err, d.meet(p))
			}
			d.mu.Lock()
			d.since[shard] = max(d.since[shard], last)
			d.mu.Unlock()
			if len(page) < limit {
				break
			}
			if last == from { // all of them at once: a larger page gets past them
				limit *= 2
			}
			from = last
		}
	}
	return err
}

// meet makes a lifecycle known to the loops of this node.
func (d *publishedSet) meet(p putThrough) error {
	c, violations := lifecycleconfig.Parse([]byte(p.config))
	if len(violations) > 0 {
		return nil // of a later program
	}
	d.mu.Lock()
	claims := append([]string{}, d.known[p.name]...) // it is read without the lock
	for _, x := range c.Claims() {
		if !slices.Contains(claims, x.Into) {
			claims = append(claims, x.Into)
		}
	}
	d.known[p.name] = claims
	d.mu.Unlock()
	for _, name := range named(c)["afterEffect"] {
		if err := d.serve(c.Workflow, name, afterElsewhere(c, name)); err != nil {
			return err
		}
	}
	return nil
}

// serve has the node serve an after-effect where its handler is a URL, in whatever
// workspace it is. Workers ask for theirs.
func (d *publishedSet) serve(workflow, name string, def reactions.Definition) error {
	d.mu.Lock()
	served := d.served[def.Name]
	d.served[def.Name] = true
	d.mu.Unlock()
	if served {
		return nil
	}
	h := &reactions.Handler{Every: true, Definition: def, Kind: "http", Timeout: 2 * remotehandler.Longest,
		Ready: func() bool {
			urls := d.urls.Load()
			return urls != nil && (*urls)[name]
		},
		Body: func(ctx context.Context, x *reactions.Delivery) error {
			s, err := d.boundTo(ctx, workflow)
			if err == nil {
				s, err = s.knowing(ctx, map[string]string{"afterEffect": name})
			}
			if err != nil {
				return err
			}
			h := s.handlers[name]
			if h == nil || h.body == nil { // it was declared anew, just now
				return &reactions.Snoozed{}
			}
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, lease.Timeout))
			defer cancel()
			return Counted(s.after(ctx, h, x))
		}}
	if err := d.worker.Add(h); err != nil {
		d.mu.Lock()
		delete(d.served, def.Name)
		d.mu.Unlock()
		return err
	}
	return nil
}

// After makes the tasks of after-effects, which are given out with the events of reactions.
type After struct{ Engine *engine.Engine }

// Is says whether a reaction is an after-effect whose handler is elsewhere.
func (After) Is(x reactions.Info) bool {
	return strings.HasPrefix(x.Name, reactions.AfterPrefix) && x.Options.Handler != ""
}

// Wants says whether an event is one that an after-effect follows.
func (After) Wants(x reactions.Info, e events.Event) (bool, error) {
	t, err := stepFactsOf(e)
	return t.After == x.Options.Handler, err
}

// Task is the task that a delivery of an after-effect is to a worker. The
// operation is the delivery's, not the step's: it acts in its own right.
func (a After) Task(ctx context.Context, t reactions.Task) (remote.Task, error) {
	workflow := workflowOf(t.Reaction)
	s, err := registryOf(a.Engine).find(ctx, workflow)
	if err != nil {
		return remote.Task{}, err
	}
	w, _, err := s.afterEffectWork(ctx, t.Reaction.Options.Handler, t.Event)
	if err != nil {
		return remote.Task{}, err
	}
	x := t.Remote()
	x.Kind, x.Reaction, x.Event = "afterEffect", "", nil
	x.Lifecycle, x.StepKey, x.Requester, x.Input, x.Entity = workflow, w.step, w.requester, w.input, &w.entity
	return x, nil
}

// Put is what became of a config that was put.
type Put struct {
	Revision int64
	Created  bool
	Warnings []lifecycleconfig.Violation
}

// PutConfig puts a config into the context's workspace, or, with dryRun, only judges
// it. The error tells every violation.
func PutConfig(ctx context.Context, e *engine.Engine, name string, config []byte, dryRun bool) (Put, error) {
	b := registryOf(e)
	if b.published == nil {
		return Put{}, fault.New(fault.Conflict, "this program takes no lifecycles through the API")
	}
	if b.boundTo(name) != nil {
		return Put{}, fault.New(fault.Conflict, "there is a lifecycle %q already, which a program has brought", name)
	}
	s, warnings, err := b.published.validate(ctx, name, config)
	if err != nil || dryRun {
		return Put{Warnings: warnings}, err
	}
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return Put{}, err
	}
	if err := notOf(ctx, e, "program", name); err != nil {
		return Put{}, err
	}
	before, err := readConfigVerb.DoAt(ctx, e, at, name)
	if err != nil {
		return Put{}, err
	}
	if err := s.enlist(ctx, true); err != nil {
		return Put{}, err
	}
	if err := b.published.meet(putThrough{name: name, config: string(config)}); err != nil {
		return Put{}, err
	}
	now, err := readConfigVerb.DoAt(ctx, e, at, name)
	return Put{Revision: now.revision, Created: before.revision == 0, Warnings: warnings}, err
}

// validate holds a config to every rule that can be seen here.
func (d *publishedSet) validate(ctx context.Context, name string, config []byte) (*bound, []lifecycleconfig.Violation, error) {
	s, err := d.build(ctx, config, nil)
	if err != nil {
		return nil, nil, err
	}
	c := s.config
	violations, warnings := c.Lint(s.declared())
	if c.Workflow != name {
		violations = append(violations, lifecycleconfig.Violation{Rule: "name", Path: "/workflow", Message: fmt.Sprintf("the config is of %q, and is put as %q", c.Workflow, name)})
	}
	for i := range c.Steps {
		violations = append(violations, unclaimedWork(s, i)...)
	}
	if c.Table != nil {
		violations = append(violations, lifecycleconfig.Violation{Rule: "table", Path: "/entity_table", Message: "a table of the user's own is named in a program, not through the API"})
	}
	if err := s.covered(); err != nil {
		violations = append(violations, lifecycleconfig.Violation{Rule: "coverage", Path: "/janitor", Message: fault.New(fault.Validation, "%s", err).Message})
	}
	if len(violations) > 0 {
		return nil, warnings, refused(violations)
	}
	return s, warnings, nil
}

// unclaimedWork tells of handlers of a step that are workers', for requesters who do not
// claim it: a task is its claim.
func unclaimedWork(s *bound, nth int) (all []lifecycleconfig.Violation) {
	step := &s.config.Steps[nth]
	tell := func(what, name, requester string) {
		h := s.handlers[name]
		if _, claimed := step.Claim.For(requester); h == nil || h.queue == "" || claimed {
			return
		}
		all = append(all, lifecycleconfig.Violation{Rule: "worker", Path: fmt.Sprintf("/steps/%d/%s", nth, what),
			Message: fmt.Sprintf("the %s %q of the step %q is done by workers, and a step that they do is claimed: name a successful_claim_state", what, name, step.Key)})
	}
	for what, p := range map[string]lifecycleconfig.Per[string]{"action": step.Action, "validation": step.Validation} {
		if p.All != nil {
			tell(what, *p.All, "")
		}
		for requester, name := range p.By {
			tell(what, name, requester)
		}
	}
	return all
}

// PutNames returns the lifecycles that were put into the context's workspace, and the
// handlers that each of them names.
func PutNames(ctx context.Context, d store.Doer) (map[string][]string, error) {
	all, err := put(ctx, d)
	names := make(map[string][]string, len(all))
	for _, x := range all {
		names[x.name] = HandlersOf([]byte(x.config))
	}
	return names, err
}

// HandlersOf returns the handlers that a config names, or none if it is no config.
func HandlersOf(config []byte) (names []string) {
	c, violations := lifecycleconfig.Parse(config)
	if len(violations) > 0 {
		return nil
	}
	for _, some := range named(c) {
		names = append(names, some...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

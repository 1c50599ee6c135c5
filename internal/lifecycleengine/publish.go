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
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// lookBack is how far a node looks back for lifecycles that other nodes published, in ms: a
	// transaction that began earlier may commit later.
	lookBack = 60_000
	// learnPage is the number of lifecycles that a node reads at once.
	learnPage = 500
)

// learn discovers published lifecycles, from any node, until ctx ends. This node then resumes
// their operations, releases their expired leases and runs their after-effects.
func (d *publishedSet) learn(ctx context.Context) {
	ticks := time.NewTicker(remotehandler.LearnEvery)
	defer ticks.Stop()
	woken, end := d.registry.engine.Hub().Wait(store.DeclaredTopic)
	defer end()
	for {
		if err := d.poll(ctx); err != nil && ctx.Err() == nil {
			d.registry.engine.Log().Warn("failed to read published lifecycles", "error", err)
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
	for _, x := range handled { // includes those that no config names any more
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
				err = errors.Join(err, d.addKnown(p))
			}
			d.mu.Lock()
			d.since[shard] = max(d.since[shard], last)
			d.mu.Unlock()
			if len(page) < limit {
				break
			}
			if last == from { // a whole page has one timestamp: a larger page gets past it
				limit *= 2
			}
			from = last
		}
	}
	return err
}

// addKnown makes a published lifecycle known to the background loops of this node.
func (d *publishedSet) addKnown(p publishedConfig) error {
	c, violations := lifecycleconfig.Parse([]byte(p.config))
	if len(violations) > 0 {
		return nil // published by a newer version of Holdfast
	}
	if !d.addRows(p, c) {
		return nil // another node serves it
	}
	d.mu.Lock()
	claims := append([]string{}, d.known[p.name]...) // a copy, because it is read without the lock
	for _, x := range c.Claims() {
		if !slices.Contains(claims, x.Into) {
			claims = append(claims, x.Into)
		}
	}
	d.known[p.name] = claims
	d.mu.Unlock()
	for _, name := range handlerNames(c)["afterEffect"] {
		if err := d.serve(c.Workflow, name, remoteAfterEffect(c, name)); err != nil {
			return err
		}
	}
	return nil
}

// serve makes the node serve an after-effect whose handler is a URL, in any workspace.
// Workers poll for theirs.
func (d *publishedSet) serve(workflow, name string, def reactions.Definition) error {
	d.mu.Lock()
	served := d.served[def.Name]
	d.served[def.Name] = true
	d.mu.Unlock()
	if served {
		return nil
	}
	h := &reactions.Handler{Every: true, Definition: def, Kind: "http",
		Timeout: 2 * remotehandler.Longest, // longer than any timeout of a handler, which the body applies
		Ready: func() bool {
			urls := d.urls.Load()
			return urls != nil && (*urls)[name] && d.servesEverywhere(workflow)
		},
		Body: func(ctx context.Context, x *reactions.Delivery) error {
			s, err := d.boundTo(ctx, workflow)
			if err == nil {
				s, err = s.withHandlers(ctx, map[string]string{"afterEffect": name})
			}
			if err != nil {
				return err
			}
			h := s.handlers[name]
			if h == nil || h.body == nil { // the handler has just been deleted, or declared as a worker
				return &reactions.Snoozed{}
			}
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, lease.Timeout))
			defer cancel()
			return CountNoResponse(s.after(ctx, h, x))
		}}
	if err := d.worker.Add(h); err != nil {
		d.mu.Lock()
		delete(d.served, def.Name)
		d.mu.Unlock()
		return err
	}
	return nil
}

// After creates the tasks of after-effects, which are handed out with the events of reactions.
type After struct{ Engine *engine.Engine }

// Is reports whether a reaction is an after-effect with a remote handler.
func (After) Is(x reactions.Info) bool {
	return strings.HasPrefix(x.Name, reactions.AfterPrefix) && x.Options.Handler != ""
}

// Wants reports whether an after-effect follows an event.
func (After) Wants(x reactions.Info, e events.Event) (bool, error) {
	t, err := stepFactsOf(e)
	return t.After == x.Options.Handler, err
}

// Task returns the task for a delivery of an after-effect to a worker. The operation is the
// delivery's, not the step's, because an after-effect is an operation of its own.
func (a After) Task(ctx context.Context, t reactions.Task) (remote.Task, error) {
	workflow := workflowOf(t.Reaction)
	s, err := registryOf(a.Engine).find(ctx, workflow)
	if err != nil {
		return remote.Task{}, err
	}
	w, ours, err := s.afterEffectWork(ctx, t.Reaction.Options.Handler, t.Event)
	if ours && fault.CodeOf(err) == fault.NotFound {
		return remote.Task{}, &reactions.Undeliverable{Err: s.deleted(w), Skip: s.delivery(t.Reaction.Options.Handler).OnMissing == lifecycleconfig.Skip}
	}
	if err != nil {
		return remote.Task{}, err
	}
	x := t.Remote()
	x.Kind, x.Reaction, x.Event = "afterEffect", "", nil
	x.Lifecycle, x.StepKey, x.Requester, x.Input, x.Entity = workflow, w.step, w.requester, w.input, &w.entity
	return x, nil
}

// Put is the result of publishing a config.
type Put struct {
	Revision int64
	Created  bool
	Warnings []lifecycleconfig.Violation
}

// PutConfig publishes a config into the context's workspace. With dryRun it only validates the
// config. The error lists every violation.
func PutConfig(ctx context.Context, e *engine.Engine, name string, config []byte, dryRun bool) (Put, error) {
	b := registryOf(e)
	if b.published == nil {
		return Put{}, fault.New(fault.Conflict, "this program does not accept lifecycles through the API: pass an httpapi.API to holdfast.Open")
	}
	if b.boundTo(name) != nil {
		return Put{}, fault.New(fault.Conflict, "lifecycle %q already exists and is defined by a program: choose another name", name)
	}
	s, warnings, err := b.published.validate(ctx, name, config)
	if err != nil || dryRun {
		return Put{Warnings: warnings}, err
	}
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return Put{}, err
	}
	if err := checkOrigin(ctx, e, originProgram, name); err != nil {
		return Put{}, err
	}
	before, err := getConfigVerb.DoAt(ctx, e, at, name)
	if err != nil {
		return Put{}, err
	}
	if err := s.registerOnce(audit.Requested(ctx), true); err != nil {
		return Put{}, err
	}
	if err := b.published.addKnown(publishedConfig{workspace: at.Workspace, name: name, config: string(config)}); err != nil {
		return Put{}, err
	}
	now, err := getConfigVerb.DoAt(ctx, e, at, name)
	return Put{Revision: now.shown(), Created: before.first(), Warnings: warnings}, err
}

// validate checks a config against every rule that can be checked on this node.
func (d *publishedSet) validate(ctx context.Context, name string, config []byte) (*bound, []lifecycleconfig.Violation, error) {
	s, err := d.build(ctx, config, nil)
	if err != nil {
		return nil, nil, err
	}
	c := s.config
	violations, warnings := c.Lint(s.remoteHandlers())
	if c.Workflow != name {
		violations = append(violations, lifecycleconfig.Violation{Rule: "name", Path: "/workflow", Message: fmt.Sprintf("workflow must match the name in the path: the config has %q, the path has %q", c.Workflow, name)})
	}
	violations = append(violations, s.tableViolations()...)
	if err := s.checkClaimsRecovered(s.registry.modules[c.OwningModule]); err != nil {
		violations = append(violations, lifecycleconfig.Violation{Rule: "coverage", Path: "/janitor", Message: fault.New(fault.Validation, "%s", err).Message})
	}
	if len(violations) > 0 {
		return nil, warnings, invalidConfig(violations)
	}
	return s, warnings, nil
}

// remoteHandlers returns the declared handlers, none of which has a kind of its own.
func (s *bound) remoteHandlers() map[string]lifecycleconfig.Handler {
	known := s.declared()
	for name, h := range known {
		h.Kind, h.Workers = "", s.handlers[name].queue != ""
		known[name] = h
	}
	return known
}

// PutNames returns the lifecycles published into the context's workspace, with the handlers
// that each of them names.
func PutNames(ctx context.Context, d store.Doer) (map[string][]string, error) {
	all, err := listPublished(ctx, d)
	names := make(map[string][]string, len(all))
	for _, x := range all {
		names[x.name] = HandlersOf([]byte(x.config))
	}
	return names, err
}

// HandlersOf returns the handlers that a config names, or nil if the config is invalid.
func HandlersOf(config []byte) (names []string) {
	c, violations := lifecycleconfig.Parse(config)
	if len(violations) > 0 {
		return nil
	}
	for _, some := range handlerNames(c) {
		names = append(names, some...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

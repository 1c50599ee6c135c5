package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// A lifecycle can also be put through the API, into one workspace; its handlers are
// then not functions of a program but URLs, declared in the workspace too. What is
// written stays the same: a node reads the config and the handlers, makes of them what
// a program would have brought, and goes by it as long as the registry's revision is
// the one that it read them at. Whoever changes either raises the revision.

// ErrNoResponse is the error of a handler elsewhere whose answer was not heard: it may
// have acted.
var ErrNoResponse = errors.New("the handler's answer was not heard")

// Caller calls a handler elsewhere.
type Caller func(context.Context, RemoteCall) (RemoteAnswer, error)

// RemoteCall is what a handler elsewhere is told.
type RemoteCall struct {
	To remotehandler.Handler
	remote.Task
}

// RemoteAnswer is what it answers. State is a merge patch of the entity's data.
type RemoteAnswer struct {
	State  json.RawMessage
	Output json.RawMessage
	// Reported says that the answer to a probe is there, which is Happened.
	Reported, Happened bool
}

// publishedSet is the lifecycles of an engine that were put through the API.
type publishedSet struct {
	registry *registry
	remote   Caller
	worker   *reactions.Worker // serves after-effects that are URLs
	// urls are the handlers that are URLs, in whatever workspace. The worker asks for
	// them under its own lock, so there is none here.
	urls atomic.Pointer[map[string]bool]

	mu     sync.Mutex
	bound  map[spaced]*cached
	known  map[string][]string // names, in whatever workspace, and the claim statuses that they ever had
	served map[string]bool     // after-effects
	since  map[int16]int64     // up to when each shard was read
}

type spaced struct{ workspace, name string }

// cached is a lifecycle as it was read at a revision of its registry.
type cached struct {
	revision int64
	bound    *bound
}

// maxBound is how many lifecycles are remembered.
const maxBound = 10_000

// bound returns a lifecycle of the context's workspace.
func (d *publishedSet) boundTo(ctx context.Context, name string) (*bound, error) {
	e := d.registry.engine
	at, err := e.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	g, err := e.Registry(ctx, at, true) // what is remembered may be of yesterday
	if err != nil {
		return nil, err
	}
	key := spaced{at.Workspace, name}
	d.mu.Lock()
	k := d.bound[key]
	d.mu.Unlock()
	if k != nil && k.revision == g.Revision {
		return k.bound, nil
	}
	now, err := readConfigVerb.DoAt(ctx, e, at, name)
	if err != nil {
		return nil, err
	}
	if now.revision == 0 || now.origin != "door" {
		return nil, unknown(name)
	}
	s, err := d.build(ctx, []byte(now.config), nil)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.bound) >= maxBound {
		clear(d.bound)
	}
	d.bound[key] = &cached{g.Revision, s}
	return s, nil
}

func unknown(name string) error { return fault.New(fault.NotFound, "there is no lifecycle %q", name) }

// put returns the lifecycles that were put into the context's workspace.
func put(ctx context.Context, d store.Doer) ([]putThrough, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	return listPublishedVerb.DoAt(ctx, d, at, listPublishedArgs{limit: maxBound})
}

// build makes of a config and the handlers of the context's workspace what a program
// would have brought.
// more are handlers, by kind, besides those that the config names.
func (d *publishedSet) build(ctx context.Context, text []byte, more map[string][]string) (*bound, error) {
	c, violations := lifecycleconfig.Parse(text)
	if len(violations) > 0 {
		return nil, refused(violations)
	}
	s := &bound{engine: d.registry.engine, registry: d.registry, turn: make(chan struct{}, 1)}
	s.Lifecycle = &Lifecycle{config: c, text: string(text), handlers: make(map[string]*handler), workspaces: []string{store.WorkspaceOf(ctx)}, bound: s}
	s.store = &builtinTable{bound: s}
	for kind, names := range named(c) {
		for _, name := range append(names, more[kind]...) {
			h, err := remotehandler.Get(ctx, d.registry.engine, name)
			if fault.CodeOf(err) == fault.NotFound {
				s.handlers[name] = undeclared(kind, name)
				continue
			}
			if err != nil {
				return nil, err
			}
			s.handlers[name] = d.handler(kind, c, store.WorkspaceOf(ctx), h)
			if kind == "afterEffect" {
				s.afters = append(s.afters, afterElsewhere(c, name))
			}
		}
	}
	return s, nil
}

// named are the handlers that a config names, by kind.
func named(c *lifecycleconfig.Config) map[string][]string {
	out := make(map[string][]string)
	for i := range c.Steps {
		for kind, p := range map[string]lifecycleconfig.Per[string]{"action": c.Steps[i].Action, "validation": c.Steps[i].Validation, "afterEffect": c.Steps[i].AfterEffect} {
			if p.All != nil {
				out[kind] = append(out[kind], *p.All)
			}
			out[kind] = slices.AppendSeq(out[kind], maps.Values(p.By))
		}
	}
	for kind, names := range out {
		slices.Sort(names)
		out[kind] = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	}
	return out
}

// undeclared is a handler that a config names and nobody has declared: a step that
// needs it is refused.
func undeclared(kind, name string) *handler {
	return &handler{Handler: lifecycleconfig.Handler{Kind: kind}, name: name, missing: true, body: func(context.Context, *work) error {
		return fault.NonRetryable(fault.New(fault.Unavailable, "the handler %q is not declared", name))
	}}
}

// handler makes a handler of one that is elsewhere.
func (d *publishedSet) handler(kind string, c *lifecycleconfig.Config, workspace string, h remotehandler.Handler) *handler {
	made := &handler{Handler: lifecycleconfig.Handler{Kind: kind, Safety: lifecycleconfig.Safety(h.Safety), Timeout: h.Timeout}, name: h.Name, unknown: effects.Policy(h.OnUnknown)}
	if h.Kind == "worker" {
		made.queue = entities.Workers(workspace, h.Name)
		return made
	}
	made.body = func(ctx context.Context, w *work) error {
		var err error
		call := RemoteCall{h, remote.Task{Kind: kind, Lifecycle: c.Workflow, Entity: &w.entity, StepKey: w.step, Requester: w.requester,
			Operation: w.operation, Epoch: w.entity.Claim.Epoch, Attempt: w.attempt, Input: w.input}}
		var a RemoteAnswer
		if kind == "action" && w.doubtful && h.OnUnknown == string(effects.Probe) {
			if a, err = d.probe(ctx, call); err != nil {
				return err
			}
			w.cleared = !a.Happened
		}
		if w.cleared && w.held != nil { // the question may have taken long
			if err := w.held(ctx); err != nil {
				return err
			}
		}
		if !a.Happened {
			a, err = d.remote(ctx, call)
		}
		switch kind {
		case "action":
			w.output = a.Output
		case "afterEffect":
			err = retriable(err, c.AfterEffects[h.Name])
		}
		if err != nil || len(a.State) == 0 || kind != "action" {
			return err
		}
		if w.data, err = strictjson.Merge(w.entity.Data, a.State); err != nil { // it has acted, whatever it answers
			return fmt.Errorf("%w: what it answered cannot be used: %w", ErrNoResponse, err)
		}
		return nil
	}
	return made
}

// probe asks a handler whether it has acted, on an earlier attempt. Whatever is no
// answer to that leaves it open.
func (d *publishedSet) probe(ctx context.Context, call RemoteCall) (RemoteAnswer, error) {
	call.Kind = kindProbe
	a, err := d.remote(ctx, call)
	if err == nil && !a.Reported {
		err = errors.New("it did not say whether it has acted (happened)")
	}
	if err != nil {
		err = fault.New(fault.Unavailable, "the handler %q was asked whether it has acted: %s", call.To.Name, err).Wrap(ErrNoResponse)
	}
	return a, err
}

// Counted makes a failure of a call whose answer was not heard: it is known to have
// been tried, and counts.
func Counted(err error) error {
	if errors.Is(err, ErrNoResponse) {
		return fault.New(fault.ActionFailed, "%s", err)
	}
	return err
}

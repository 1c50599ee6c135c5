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
)

// A lifecycle can also be published through the API, into one workspace. Its handlers are
// then URLs or workers, declared in the same workspace, instead of functions of a program. Everything
// else is the same as for a lifecycle of a program: a node reads the config and the handlers, builds the
// lifecycle that a program would have defined, and uses it until the revision of the workspace's
// registry changes. Every change of the config or the handlers raises the revision.

// ErrNoResponse is the error for a remote handler whose response did not arrive. The handler
// may have acted.
var ErrNoResponse = errors.New("no valid response from the handler")

// Caller calls a remote handler.
type Caller func(context.Context, RemoteCall) (RemoteAnswer, error)

// RemoteCall is the request to a remote handler.
type RemoteCall struct {
	To remotehandler.Handler
	remote.Task
}

// RemoteAnswer is the response of a remote handler. State is a merge patch for the entity's data.
type RemoteAnswer struct {
	State  json.RawMessage
	Output json.RawMessage
	// Reported reports whether the response answers a probe; Happened is the answer.
	Reported, Happened bool
}

// publishedSet contains the lifecycles of an engine that were published through the API.
type publishedSet struct {
	registry *registry
	remote   Caller
	worker   *reactions.Worker      // serves after-effects whose handlers are URLs
	tables   map[string]EntityTable // by the names that configs use
	// urls are the handlers that are URLs, across all workspaces. The worker reads
	// them under its own lock, so this field is atomic instead of guarded by mu.
	urls atomic.Pointer[map[string]bool]

	mu       sync.Mutex
	bound    map[publishedKey]*cached
	known    map[string][]string     // names that this node serves in some workspace, with all claim statuses that they ever had
	rows     map[publishedKey]string // lifecycles whose entities are in user tables, with the tables
	unserved map[publishedKey]bool   // lifecycles in rows whose tables this node cannot use
	withheld map[publishedKey]bool   // the handlers of the unserved lifecycles
	served   map[string]bool         // the reactions of after-effects that worker serves
	since    map[int16]int64         // the time up to which changes of each shard were read, in ms
}

// publishedKey is a lifecycle or a handler of a workspace.
type publishedKey struct{ workspace, name string }

// cached is a lifecycle as read at a revision of its workspace's registry.
type cached struct {
	revision int64
	bound    *bound
}

// maxBound limits how many lifecycles are cached.
const maxBound = 10_000

// boundTo returns a lifecycle of the context's workspace.
func (d *publishedSet) boundTo(ctx context.Context, name string) (*bound, error) {
	e := d.registry.engine
	at, err := e.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	g, err := e.Registry(ctx, at, true) // read now: the cached revision may be outdated
	if err != nil {
		return nil, err
	}
	key := publishedKey{at.Workspace, name}
	d.mu.Lock()
	k := d.bound[key]
	d.mu.Unlock()
	if k != nil && k.revision == g.Revision {
		return k.bound, nil
	}
	now, err := getConfigVerb.DoAt(ctx, e, at, name)
	if err != nil {
		return nil, err
	}
	if now.revision == 0 || now.origin != originAPI {
		return nil, noLifecycle(name)
	}
	s, err := d.build(ctx, []byte(now.config), nil)
	if err != nil {
		return nil, err
	}
	if _, broken := s.store.(noTable); broken { // looked up again, because the table may be repaired
		return s, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.bound) >= maxBound {
		clear(d.bound)
	}
	d.bound[key] = &cached{g.Revision, s}
	return s, nil
}

// noLifecycle returns the error for a name that no lifecycle has.
func noLifecycle(name string) error {
	return fault.New(fault.NotFound, "lifecycle %q does not exist", name)
}

// build builds, from a config and the handlers of the context's workspace, the lifecycle that
// a program would have defined. more are handlers by kind that the config does not name.
func (d *publishedSet) build(ctx context.Context, text []byte, more map[string][]string) (*bound, error) {
	c, violations := lifecycleconfig.Parse(text)
	if len(violations) > 0 {
		return nil, invalidConfig(violations)
	}
	s := &bound{engine: d.registry.engine, registry: d.registry, registering: make(chan struct{}, 1)}
	s.Lifecycle = &Lifecycle{config: c, text: string(text), handlers: make(map[string]*handler), workspaces: []string{store.WorkspaceOf(ctx)}, bound: s}
	var err error
	if s.store, err = d.storeOf(ctx, s); err != nil {
		return nil, err
	}
	for kind, names := range handlerNames(c) {
		for _, name := range append(names, more[kind]...) {
			h, err := remotehandler.Get(ctx, d.registry.engine, name)
			if fault.CodeOf(err) == fault.NotFound {
				s.handlers[name] = undeclared(kind, name)
				continue
			}
			if err != nil {
				return nil, err
			}
			s.handlers[name] = d.handler(kind, s, store.WorkspaceOf(ctx), h)
			if kind == "afterEffect" {
				s.afters = append(s.afters, remoteAfterEffect(c, name))
			}
		}
	}
	return s, nil
}

// handlerNames returns the handlers that a config names, by kind.
func handlerNames(c *lifecycleconfig.Config) map[string][]string {
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

// undeclared returns a handler that a config names but that has no declaration. A step that
// needs it is refused.
func undeclared(kind, name string) *handler {
	return &handler{Handler: lifecycleconfig.Handler{Kind: kind}, name: name, missing: true, body: func(context.Context, *work) error {
		return fault.NonRetryable(fault.New(fault.Unavailable, "handler %q is not declared in this workspace: declare it first", name))
	}}
}

// handler returns the handler that calls a remote one.
func (d *publishedSet) handler(kind string, s *bound, workspace string, h remotehandler.Handler) *handler {
	made := &handler{Handler: lifecycleconfig.Handler{Kind: kind, Safety: lifecycleconfig.Safety(h.Safety), Timeout: h.Timeout}, name: h.Name, unknown: effects.Policy(h.OnUnknown)}
	if h.Kind == "worker" {
		made.queue = entities.Workers(workspace, h.Name)
		return made
	}
	made.body = func(ctx context.Context, w *work) error {
		var err error
		call := RemoteCall{h, remote.Task{Kind: kind, Lifecycle: s.config.Workflow, Entity: &w.entity, StepKey: w.step, Requester: w.requester,
			Operation: w.operation, Epoch: w.entity.Claim.Epoch, Attempt: w.attempt, Input: w.input}}
		var a RemoteAnswer
		if kind == "action" && w.doubtful && h.OnUnknown == string(effects.Probe) {
			if a, err = d.probe(ctx, call); err != nil {
				return err
			}
			w.cleared = !a.Happened
		}
		if w.cleared && w.held != nil { // the probe may have taken long
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
			err = retriable(err, s.config.AfterEffects[h.Name])
		}
		if err != nil || len(a.State) == 0 || kind != "action" {
			return err
		}
		if err = s.patch(w, w.entity, a.State); err != nil { // the handler has acted, whatever it returned
			return fmt.Errorf("%w: the returned state cannot be applied: %w", ErrNoResponse, err)
		}
		return nil
	}
	return made
}

// probe asks a handler whether an earlier attempt acted. If the response does not say so, this stays
// unknown, and probe returns an error.
func (d *publishedSet) probe(ctx context.Context, call RemoteCall) (RemoteAnswer, error) {
	call.Kind = kindProbe
	a, err := d.remote(ctx, call)
	if err == nil && !a.Reported {
		err = errors.New(`the response has no "happened" field`)
	}
	if err != nil {
		err = fault.New(fault.Unavailable, "probe of handler %q failed: %s", call.To.Name, err).Wrap(ErrNoResponse)
	}
	return a, err
}

// CountNoResponse turns a missing response into a failure: the call is known to have been attempted,
// so the attempt counts.
func CountNoResponse(err error) error {
	if errors.Is(err, ErrNoResponse) {
		return fault.New(fault.ActionFailed, "%s", err)
	}
	return err
}

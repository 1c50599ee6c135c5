package httpapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batches"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/handlers"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/runs"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/wire"
)

// servant serves the reactions, in all workspaces, whose handlers are URLs.
type servant struct {
	*caller
	worker *reactions.Worker
	served map[handledKey]reactions.Definition // only the loop that learns knows them
	names  atomic.Pointer[[]string]            // of handlers that are URLs
}

// calledAtOnce is how many items of batches a node has URLs do at once, and how many steps of runs. One URL of one
// workspace has half of it at the most.
const calledAtOnce = 128

type handledKey struct{ workspace, reaction string }

// learn keeps to what is registered, until ctx ends.
func (s *servant) learn(ctx context.Context) {
	woken, end := s.engine.Hub().Wait(handlers.Topic)
	defer end()
	tick := time.NewTicker(handlers.LearnEvery)
	defer tick.Stop()
	for {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.engine.Log().Warn("looking for reactions that handlers serve failed", "error", err)
		}
		select {
		case <-woken:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look begins to serve what is new, and leaves what is gone or another's.
func (s *servant) look(ctx context.Context) error {
	urls, err := handlers.URLs(ctx, s.engine)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(urls))
	s.names.Store(&names)
	all, err := reactions.AllHandled(ctx, s.engine, "http")
	if err != nil {
		return err
	}
	there := make(map[handledKey]bool, len(all))
	for _, x := range all {
		if reactions.Reserved(x.Name) { // after-effects are their lifecycles'
			continue
		}
		key := handledKey{x.Workspace, x.Name}
		there[key] = true
		was, served := s.served[key]
		if served && was.Options == x.Options && was.Same(&x.Definition) {
			continue
		}
		if served {
			s.worker.Drop(key.workspace, key.reaction)
		}
		if err := s.worker.Add(s.handler(x)); err != nil {
			s.engine.Log().Warn("a reaction cannot be served", "workspace", x.Workspace, "reaction", x.Name, "error", err)
			delete(s.served, key)
			continue
		}
		s.served[key] = x.Definition
	}
	for key := range s.served {
		if !there[key] {
			s.worker.Drop(key.workspace, key.reaction)
			delete(s.served, key)
		}
	}
	return nil
}

func (s *servant) handler(x reactions.Handled) *reactions.Handler {
	return &reactions.Handler{Definition: x.Definition, Workspace: x.Workspace, Kind: "http", Timeout: 2 * handlers.Longest,
		Body: func(ctx context.Context, d *reactions.Delivery) error { return s.deliver(ctx, x.Options.Handler, d) }}
}

// deliver has the handler told of one event.
func (s *servant) deliver(ctx context.Context, name string, d *reactions.Delivery) error {
	h, err := handlers.Get(ctx, s.engine, name)
	if fault.CodeOf(err) == fault.NotFound || err == nil && h.Kind != "http" { // since it was taken
		return &reactions.Later{}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, hold.Timeout))
	defer cancel()
	e := toldEvent(d.Event)
	_, err = s.send(ctx, h, wire.HandlerCall{Kind: "reaction", Attempt: d.Attempt, IdempotencyKey: d.Lease.Operation(d.Event.Version), Input: d.Event.Data,
		Reaction: d.Lease.Reaction, Event: &e})
	return lifecycleengine.Counted(err)
}

// urls are the names of handlers that are URLs, in whatever workspace.
func (s *servant) urls() []string {
	if names := s.names.Load(); names != nil {
		return *names
	}
	return nil
}

// item has a URL do an item of a batch.
func (s *servant) item(ctx context.Context, t batches.Taken) ([]byte, []batches.Commit, error) {
	h, err := handlers.Get(ctx, s.engine, t.Handler)
	if err != nil {
		return nil, nil, err
	}
	if h.Kind != "http" { // since it was taken
		return nil, nil, fault.New(fault.Unavailable, "the handler %q is not a URL any more", h.Name)
	}
	body := ctx
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, hold.Timeout))
	defer cancel()
	a, err := s.send(ctx, h, wire.HandlerCall{Kind: "batchItem", Attempt: t.Attempt(), IdempotencyKey: t.Operation(), Input: t.Input, Batch: t.Batch, Item: t.Key, ArtifactPrefix: prefixOf(t)})
	switch {
	case err != nil && body.Err() != nil: // this node stops, or the item is not wanted any more
		err = body.Err()
	case fault.CodeOf(err) == fault.ActionInvalid: // it refuses the item, and would again
		err = holdfast.NonRetryable(err)
	}
	return a.Output, nil, err
}

// toldEvent is an event as a handler is told of it: its place in the feed is not
// known yet, as like as not.
func toldEvent(e events.Event) wire.Event {
	return wire.Event{Stream: e.Stream, Version: e.Version, Name: e.Name, Data: e.Data, Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor, At: wire.At(e.At)}
}

// handled are the reactions of a workspace that handlers serve, as its registry had
// them at a revision.
type handled struct {
	revision int64
	all      []reactions.Info
	workers  map[string]runs.Handled // what is known of the handlers that are workers'
}

// servedBy returns the reactions that some handlers serve.
func (h handled) servedBy(names []string) (some []reactions.Info) {
	for _, x := range h.all {
		if slices.Contains(names, x.Options.Handler) {
			some = append(some, x)
		}
	}
	return some
}

// named returns what is known of some handlers, as far as they are workers'.
func (h handled) named(names []string) map[string]runs.Handled {
	some := make(map[string]runs.Handled, len(names))
	for _, name := range names {
		if w, ok := h.workers[name]; ok {
			some[name] = w
		}
	}
	return some
}

// declared is what the call's workspace has declared. It is read again when its registry has
// changed.
func (c *call) declared() (handled, error) {
	e := c.api.hf
	at, err := engine.Of(e).Place(c.ctx(), store.Read)
	if err != nil {
		return handled{}, err
	}
	g, err := engine.Of(e).Registry(c.ctx(), at, true)
	if err != nil {
		return handled{}, err
	}
	known, _ := c.api.handled.Load(at.Workspace)
	if now, ok := known.(handled); ok && now.revision == g.Revision {
		return now, nil
	}
	now := handled{revision: g.Revision, workers: make(map[string]runs.Handled)}
	all, err := reactions.List(c.ctx(), engine.Of(e), "")
	if err != nil {
		return now, err
	}
	for _, x := range all {
		if x.Options.Handler != "" {
			now.all = append(now.all, x)
		}
	}
	if err := now.readWorkers(c.ctx(), e); err != nil {
		return now, err
	}
	c.api.handled.Store(at.Workspace, now)
	return now, nil
}

// readWorkers reads the handlers of the context's workspace that are workers'.
func (n handled) readWorkers(ctx context.Context, d holdfast.Doer) error {
	const page = 500
	for behind := ""; ; {
		all, err := handlers.List(ctx, store.DoerOf(d), behind, page)
		if err != nil {
			return err
		}
		for _, h := range all {
			behind = h.Name
			if h.Kind == "worker" {
				n.workers[h.Name] = runs.Handled{Safety: h.Safety, Unknown: h.OnUnknown, Timeout: h.Timeout}
			}
		}
		if len(all) < page {
			return nil
		}
	}
}

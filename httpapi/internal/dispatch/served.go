package dispatch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
)

// urlDispatcher serves the reactions and batch items whose handlers are URLs, in all workspaces.
type urlDispatcher struct {
	*caller
	worker *reactions.Worker
	served map[handledKey]reactions.Definition // used only by the learn loop
	names  atomic.Pointer[[]string]            // of URL handlers
}

// calledAtOnce is the maximum number of batch items that a node sends to URLs at once, and the same
// for run steps. One URL of one workspace gets at most half of it.
const calledAtOnce = 128

// urlsLearned wakes those who use [urlDispatcher.urls] after its names were read. They would miss a name if they were
// woken by the change of the declaration itself, because that also starts the reading of the names.
const urlsLearned = "handlers/http"

type handledKey struct{ workspace, reaction string }

// learn keeps the served reactions up to date with the registered ones, until ctx ends.
func (s *urlDispatcher) learn(ctx context.Context) {
	woken, end := s.engine.Hub().Wait(store.DeclaredTopic)
	defer end()
	tick := time.NewTicker(remotehandler.LearnEvery)
	defer tick.Stop()
	for {
		if err := s.poll(ctx); err != nil && ctx.Err() == nil {
			s.engine.Log().Warn("failed to refresh the reactions of http handlers", "error", err)
		}
		select {
		case <-woken:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// poll starts to serve new reactions, and drops those that were removed or are no longer served by
// a URL.
func (s *urlDispatcher) poll(ctx context.Context) error {
	urls, err := remotehandler.URLs(ctx, s.engine)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(urls))
	s.names.Store(&names)
	s.engine.Hub().WakeHere(urlsLearned)
	all, err := reactions.AllHandled(ctx, s.engine, "http")
	if err != nil {
		return err
	}
	there := make(map[handledKey]bool, len(all))
	for _, x := range all {
		if reactions.Reserved(x.Name) { // after-effects belong to their lifecycles
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
			s.engine.Log().Warn("failed to start a reaction", "workspace", x.Workspace, "reaction", x.Name, "error", err)
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

func (s *urlDispatcher) handler(x reactions.Handled) *reactions.Handler {
	// deliver applies the timeout of the handler, which may change meanwhile. This one only has to be longer than any.
	return &reactions.Handler{Definition: x.Definition, Workspace: x.Workspace, Kind: "http", Timeout: 2 * remotehandler.Longest,
		Body: func(ctx context.Context, d *reactions.Delivery) error { return s.deliver(ctx, x.Options.Handler, d) }}
}

// deliver calls the handler for one event.
func (s *urlDispatcher) deliver(ctx context.Context, name string, d *reactions.Delivery) error {
	h, err := remotehandler.Get(ctx, s.engine, name)
	if fault.CodeOf(err) == fault.NotFound || err == nil && h.Kind != "http" { // changed since the stream was taken
		return &reactions.Snoozed{}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, lease.Timeout))
	defer cancel()
	_, err = s.send(ctx, h, callOf(remote.Task{Kind: "reaction", Attempt: d.Attempt, Operation: d.Lease.Operation(d.Event.Version), Input: d.Event.Data,
		Reaction: d.Lease.Reaction, Event: &d.Event}))
	return lifecycleengine.CountNoResponse(err)
}

// urls returns the names of URL handlers in all workspaces.
func (s *urlDispatcher) urls() []string {
	if names := s.names.Load(); names != nil {
		return *names
	}
	return nil
}

// undo calls a URL to undo an item of a batch.
func (s *urlDispatcher) undo(ctx context.Context, x batchengine.Swept) error {
	h, err := remotehandler.Get(ctx, s.engine, x.Handler)
	if err != nil {
		return err
	}
	if h.Kind != "http" { // changed since the item was taken
		return fault.New(fault.Unavailable, "handler %q is no longer an http handler", h.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, lease.Timeout))
	defer cancel()
	_, err = s.send(ctx, h, callOf(x.Remote(x.Until)))
	return err
}

// item calls a URL for an item of a batch.
func (s *urlDispatcher) item(ctx context.Context, t batchengine.Taken) ([]byte, []batchengine.Commit, error) {
	h, err := remotehandler.Get(ctx, s.engine, t.Handler)
	if err != nil {
		return nil, nil, err
	}
	if h.Kind != "http" { // changed since the item was taken
		return nil, nil, fault.New(fault.Unavailable, "handler %q is no longer an http handler", h.Name)
	}
	itemCtx := ctx
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(h.Timeout, lease.Timeout))
	defer cancel()
	a, err := s.send(ctx, h, callOf(t.Remote()))
	switch {
	case err != nil && itemCtx.Err() != nil: // this node is stopping, or the item was cancelled
		err = itemCtx.Err()
	case fault.CodeOf(err) == fault.ActionInvalid: // the handler refuses the item, and would refuse it again
		err = holdfast.NonRetryable(err)
	}
	return a.Output, nil, err
}

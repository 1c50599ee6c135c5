// Package webhooksender sends events to webhooks. Each webhook is followed by a reaction of
// its own ([webhooks.Reaction]); a [Service] learns which webhooks there are, in all
// workspaces, and serves their reactions.
//
// They have a worker of their own beside the engine's. A receiver that does not answer
// takes up a body until its time is over; were it one of the bodies that after-effects
// and reactions run in, dead receivers would hold those up. Among themselves webhooks
// are kept apart by a [gate] each.
package webhooksender

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/httpapi/internal/egress"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/webhooks"
)

const (
	// parallel is how many messages a node sends at once, to all webhooks. One of them has half of it at the most.
	parallel = 128
	// bodyWithin is longer than a call may take, so that one that takes too long
	// is a failure, and not a death.
	bodyWithin = 2 * callWithin
)

// Service serves webhooks. It is made by [New].
type Service struct {
	// Client makes the calls. It is there for tests, and not changed while the
	// service runs.
	Client *http.Client

	engine *engine.Engine
	box    *seal.Box
	policy egress.Policy
	log    *slog.Logger
	worker *reactions.Worker
	served map[string]string // the workspaces of reactions; only the loop that learns knows them
}

// New makes a service.
func New(e *engine.Engine, box *seal.Box, policy egress.Policy, log *slog.Logger) *Service {
	remotehandler.Watch(e)
	return &Service{Client: policy.Client(), engine: e, box: box, policy: policy, log: log, served: make(map[string]string),
		worker: &reactions.Worker{Engine: e, Hub: e.Hub(), Log: log, Name: e.Node(), MaxConcurrency: parallel, ByHandler: true, Idle: true}}
}

// Run serves webhooks until ctx ends, and then waits for the messages that are being
// sent.
func (s *Service) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer s.Client.CloseIdleConnections()
	defer working.Wait()
	working.Go(func() { s.worker.Run(ctx) })
	woken, end := s.engine.Hub().Wait(webhooks.Topic, remotehandler.Topic)
	defer end()
	tick := time.NewTicker(remotehandler.LearnEvery)
	defer tick.Stop()
	for {
		if err := s.learn(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("looking for webhooks failed", "error", err)
		}
		select {
		case <-woken:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// learn begins to serve the webhooks that are new, and leaves those that are gone.
func (s *Service) learn(ctx context.Context) error {
	all, err := webhooks.All(ctx, s.engine)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(all))
	for _, x := range all {
		name := x.Definition.Name
		there[name] = true
		if s.served[name] != "" {
			continue
		}
		if err := s.worker.Add(s.handler(x)); err != nil {
			s.log.Warn("a webhook cannot be served", "workspace", x.Workspace, "webhook", x.ID, "error", err)
			continue
		}
		s.served[name] = x.Workspace
	}
	for name, workspace := range s.served {
		if !there[name] {
			s.worker.Drop(workspace, name)
			delete(s.served, name)
		}
	}
	return nil
}

func (s *Service) handler(x webhooks.Served) *reactions.Handler {
	g := &gate{now: clock.Now}
	return &reactions.Handler{Definition: x.Definition, Workspace: x.Workspace, Timeout: bodyWithin, Ready: g.open,
		Body: func(ctx context.Context, d *reactions.Delivery) error { return s.deliver(ctx, g, x.ID, d) }}
}

// Package webhooksender sends events to webhooks. Each webhook has its own reaction
// ([webhooks.Reaction]). A [Service] discovers the webhooks of all workspaces and serves their
// reactions.
//
// Webhooks have their own worker beside the engine's. A receiver that does not respond occupies a
// slot until its timeout; in the slots of after-effects and reactions, dead receivers would delay
// those. A [gate] per webhook isolates webhooks from each other.
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
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/internal/webhooks"
)

const (
	// parallel is the maximum number of messages that a node sends at once, to all webhooks. One
	// webhook gets at most half of it.
	parallel = 128
	// bodyWithin is longer than the timeout of a call, so that a slow call counts as a failure and
	// not as a crash.
	bodyWithin = 2 * callWithin
)

// Service serves webhooks. It is created by [New].
type Service struct {
	// Client makes the calls. Tests replace it before the service runs.
	Client *http.Client

	engine *engine.Engine
	box    *seal.Box
	policy egress.Policy
	log    *slog.Logger
	worker *reactions.Worker
	served map[string]receiver // by reaction; used only by the learn loop, and by a test that steps
}

// receiver is a webhook that is served.
type receiver struct {
	workspace string
	gate      *gate
}

// New creates a service.
func New(e *engine.Engine, box *seal.Box, policy egress.Policy, log *slog.Logger) *Service {
	remotehandler.Watch(e)
	s := &Service{Client: policy.Client(), engine: e, box: box, policy: policy, log: log, served: make(map[string]receiver),
		worker: &reactions.Worker{Engine: e, Hub: e.Hub(), Log: log, Name: e.Node(), MaxConcurrency: parallel, ByHandler: true, Idle: true, Tallies: reactions.TalliesOf(e)}}
	e.Learns(s.learn) // Learns and Steps add the loops for tests that step them: holdfasttest.Settle
	e.Steps(s.stepped, s.worker.Step)
	return s
}

// Run serves webhooks until ctx ends, and then waits for the messages in flight.
func (s *Service) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer s.Client.CloseIdleConnections()
	defer working.Wait()
	working.Go(func() { s.worker.Run(ctx) })
	woken, end := s.engine.Hub().Wait(webhooks.Topic, store.DeclaredTopic)
	defer end()
	tick := time.NewTicker(remotehandler.LearnEvery)
	defer tick.Stop()
	for {
		if err := s.learn(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("failed to refresh webhooks", "error", err)
		}
		select {
		case <-woken:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// learn starts to serve new webhooks, and drops those that were removed.
func (s *Service) learn(ctx context.Context) error {
	all, err := webhooks.All(ctx, s.engine)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(all))
	for _, x := range all {
		name := x.Definition.Name
		there[name] = true
		if _, served := s.served[name]; served {
			continue
		}
		g := &gate{now: clock.Now}
		if err := s.worker.Add(s.handler(x, g)); err != nil {
			s.log.Warn("failed to start a webhook", "workspace", x.Workspace, "webhook", x.ID, "error", err)
			continue
		}
		s.served[name] = receiver{x.Workspace, g}
	}
	for name, r := range s.served {
		if !there[name] {
			s.worker.Drop(r.workspace, name)
			delete(s.served, name)
		}
	}
	return nil
}

// stepped returns the work that a test can step. Such a test moves the clock of the database and not that of the node,
// so it would never see the end of a pause: every webhook resumes.
func (s *Service) stepped() []wake.WorkKind {
	for _, r := range s.served {
		r.gate.resume()
	}
	return s.worker.WorkKinds()
}

func (s *Service) handler(x webhooks.Served, g *gate) *reactions.Handler {
	return &reactions.Handler{Definition: x.Definition, Workspace: x.Workspace, Timeout: bodyWithin, Ready: g.open,
		Body: func(ctx context.Context, d *reactions.Delivery) error { return s.deliver(ctx, g, x.ID, d) }}
}

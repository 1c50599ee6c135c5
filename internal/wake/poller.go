package wake

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Intervals of a poller. A poller that finds nothing polls less and less often, down to every 1.5 seconds, with
// jitter; a wake-up makes it poll at once. A poller whose needs an [IdlePoller] can query then parks, and polls
// by itself only once a minute.
const (
	eager = 25 * time.Millisecond
	idle  = time.Second
	// Seldom is how often a parked poller polls by itself.
	Seldom = time.Minute
)

// Poller polls for work periodically.
type Poller struct {
	Hub    *Hub
	Topics []string
	// Poll polls once and reports whether there was work. While there is, it is called again without a pause.
	Poll func(context.Context) (found bool, err error)
	// WorkKinds returns the current needs of the poller, if an [IdlePoller] can query them. It is called from
	// another goroutine. If it is nil, or without an idle poller, the poller polls by itself.
	WorkKinds func() []WorkKind
	Log       *slog.Logger
	// Idle is the longest pause of a poller that is not parked; 0 is two seconds.
	Idle time.Duration
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	woken, end := p.Hub.Wait(p.Topics...)
	defer end()
	defer p.Hub.serve(p)()
	longest := p.Idle
	if longest == 0 {
		longest = 2 * idle // with jitter, every 1.5 seconds on average
	}
	for pause := eager; ctx.Err() == nil; {
		found, err := p.Poll(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			p.Log.Warn("failed to poll for work", "topics", p.Topics, "error", err)
			pause = idle
		case found:
			pause = eager
			continue
		}
		if p.waitIdle(ctx, woken, pause, pause >= longest) {
			pause = eager
		} else {
			pause = min(2*pause, longest)
		}
	}
}

// waitIdle waits, and reports whether it was woken. Work found by the idle poller is not a wake-up: if the next
// poll finds nothing, the poller stays idle.
func (p *Poller) waitIdle(ctx context.Context, woken <-chan struct{}, d time.Duration, long bool) bool {
	var due chan struct{}
	if long && p.WorkKinds != nil {
		r := &idleState{p.WorkKinds, newWaiter()}
		if end, ok := p.Hub.park(r); ok {
			defer end()
			due, d = r.woken, Seldom
		}
	}
	timer := time.NewTimer(clock.Jitter(d))
	defer timer.Stop()
	select {
	case <-woken:
		return true
	case <-due:
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

package wake

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Intervals of a poller. One that finds nothing asks less and less often, down
// to once a second and a half, with jitter; a wake-up makes it ask at once. One whose
// needs a [IdlePoller] knows leaves the looking to that when it has come so far, and looks
// by itself once a minute.
const (
	eager = 25 * time.Millisecond
	idle  = time.Second
	// Seldom is how often one who rests looks all the same.
	Seldom = time.Minute
)

// Poller looks for something to do, again and again.
type Poller struct {
	Hub    *Hub
	Topics []string
	// Poll looks once and says whether there was something. While there is,
	// it is called again without a pause.
	Poll func(context.Context) (found bool, err error)
	// WorkKinds are what it looks for, as they are now, if a [IdlePoller] can tell that
	// there is some. It is called from another goroutine. With nil, or without
	// a pulse, the poller looks by itself.
	WorkKinds func() []WorkKind
	Log       *slog.Logger
	// Idle is the longest pause of one that looks by itself; 0 is two seconds.
	Idle time.Duration
}

// Run looks until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	woken, end := p.Hub.Wait(p.Topics...)
	defer end()
	longest := p.Idle
	if longest == 0 {
		longest = 2 * idle // with jitter, once a second and a half
	}
	for pause := eager; ctx.Err() == nil; {
		found, err := p.Poll(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			p.Log.Warn("looking for work failed", "topics", p.Topics, "error", err)
			pause = idle
		case found:
			pause = eager
			continue
		}
		if p.rest(ctx, woken, pause, pause >= longest) {
			pause = eager
		} else {
			pause = min(2*pause, longest)
		}
	}
}

// idleState waits, and says whether it was woken. A glance that saw something is no
// wake-up: if the look that follows finds nothing, the rest goes on.
func (p *Poller) rest(ctx context.Context, woken <-chan struct{}, d time.Duration, long bool) bool {
	var due chan struct{}
	if long && p.WorkKinds != nil {
		r := &idleState{needs: p.WorkKinds, due: make(chan struct{}, 1)}
		if end, ok := p.Hub.park(r); ok {
			defer end()
			due, d = r.due, Seldom
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

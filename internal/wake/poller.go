package wake

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Intervals of a poller. One that finds nothing asks less and less often, down
// to once a second; a wake-up makes it ask at once.
const (
	eager = 25 * time.Millisecond
	idle  = time.Second
)

// Poller looks for something to do, again and again.
type Poller struct {
	Hub    *Hub
	Topics []string
	// Look looks once and says whether there was something. While there is,
	// it is called again without a pause.
	Look func(context.Context) (found bool, err error)
	Log  *slog.Logger
	// Idle is the longest pause; 0 is two seconds.
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
		found, err := p.Look(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			p.Log.Warn("looking for work failed", "topics", p.Topics, "error", err)
			pause = idle
		case found:
			pause = eager
			continue
		}
		if p.rest(ctx, woken, clock.Jitter(pause)) {
			pause = eager
		} else {
			pause = min(2*pause, longest)
		}
	}
}

// rest waits, and says whether it was woken.
func (p *Poller) rest(ctx context.Context, woken <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-woken:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

package feed_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// timed is a doer that records when the rounds of a sequencer begin.
type timed struct {
	store.Doer
	mu     sync.Mutex
	rounds []time.Time
}

func (d *timed) Do(ctx context.Context, c store.Command) error {
	if c.Decl().Name == "reactions.list_turns" {
		d.mu.Lock()
		d.rounds = append(d.rounds, clock.Now())
		d.mu.Unlock()
	}
	return d.Doer.Do(ctx, c)
}

// quick reports whether two rounds began within less than the pace.
func (d *timed) quick() bool {
	for i := 1; i < len(d.rounds); i++ {
		if d.rounds[i].Sub(d.rounds[i-1]) < feed.Pace {
			return true
		}
	}
	return false
}

// TestTheFeedIsNumberedAtItsPace verifies that a sequencer pauses between two rounds while events keep coming, but
// neither while a reader waits nor after a full batch, and that it numbers everything in each case.
func TestTheFeedIsNumberedAtItsPace(t *testing.T) {
	for name, c := range map[string]struct {
		reader, full bool
	}{"nobody waits": {}, "a reader waits": {reader: true}, "full batches": {full: true}} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
				if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
					t.Fatal(err)
				}
				d := &timed{Doer: engine.Of(hf)}
				s := feed.Sequencer{Doer: d, Hub: engine.Of(hf).Hub(), Log: quiet}
				if c.full {
					s.Batch = feed.Batch{Streams: 1, Events: 1}
				}
				if c.reader {
					_, end := s.Hub.Wait(feed.Topic(store.DefaultWorkspace))
					defer end()
				}
				names := make([]string, 40)
				for i := range names {
					names[i] = fmt.Sprint("s", i)
				}
				if c.full { // a backlog
					for _, name := range names {
						write(t, hf, name, 1)
					}
				}
				begun := clock.Now()
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { s.Run(ctx) })
				for _, name := range names {
					write(t, hf, name, 1)
					_ = clock.Wait(ctx, 5*time.Millisecond)
				}
				n := len(names)
				if c.full {
					n *= 2
				}
				all := arrived(t, hf, n)
				stop()
				running.Wait()
				took := clock.Since(begun)
				wantComplete(t, hf, all, names...)
				if most := 2 + int(took/feed.Pace); !c.reader && !c.full && len(d.rounds) > most {
					t.Errorf("%d rounds in %s, want at most %d", len(d.rounds), took, most)
				}
				if (c.reader || c.full) && !d.quick() {
					t.Errorf("%d rounds in %s, all with a pause between them", len(d.rounds), took)
				}
			})
		})
	}
}

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// cluster starts a server of the test's own.
func cluster(t *testing.T) *pgtest.Cluster {
	t.Helper()
	c, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// writer appends to a stream of its own until it is stopped, and records the result of each append.
// Every event has a name of its own.
type writer struct {
	name   string
	update bool // two events in a transaction instead of a single one
	pause  time.Duration

	stop            atomic.Bool
	acked           atomic.Int64
	known           []string // acknowledged
	unknown, failed []string
	strange         []error
}

func (w *writer) run(ctx context.Context, hf *holdfast.Engine) {
	for i := 0; !w.stop.Load() && clock.Wait(ctx, w.pause) == nil; i++ {
		name := fmt.Sprintf("%s-%d", w.name, i)
		err := w.append(ctx, hf, name)
		switch {
		case err == nil:
			w.known = append(w.known, name)
			w.acked.Add(1)
		case errors.Is(err, holdfast.ErrOutcomeUnknown):
			w.unknown = append(w.unknown, name)
		case errors.Is(err, holdfast.ErrUnavailable):
			w.failed = append(w.failed, name)
		default:
			w.strange = append(w.strange, err)
			w.failed = append(w.failed, name)
		}
	}
}

func (w *writer) append(ctx context.Context, hf *holdfast.Engine, name string) error {
	if !w.update {
		_, err := stream.Append(ctx, hf, w.name, stream.Any, event(name))
		return err
	}
	return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := stream.Append(ctx, tx, w.name, stream.Any, event(name)); err != nil {
			return err
		}
		_, err := stream.Append(ctx, tx, w.name+"-beside", stream.Any, event(name))
		return err
	})
}

// check compares the results of the writer with the stored events.
func (w *writer) check(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	there := make(map[string]int)
	names := wantGapless(t, hf, w.name)
	for _, name := range names {
		there[name]++
	}
	for _, name := range w.known {
		if there[name] != 1 {
			t.Errorf("%s was acknowledged, but stored %d times", name, there[name])
		}
	}
	for _, name := range w.failed {
		if there[name] != 0 {
			t.Errorf("%s was reported as failed, but is stored", name)
		}
	}
	for _, name := range w.unknown {
		if there[name] > 1 {
			t.Errorf("%s was reported as unknown, but stored %d times", name, there[name])
		}
	}
	for _, err := range w.strange {
		t.Errorf("%s: got error %v (%s) during an outage", w.name, err, fault.CodeOf(err))
	}
	if w.update && !slices.Equal(names, wantGapless(t, hf, w.name+"-beside")) {
		t.Errorf("%s: the two streams of one transaction differ", w.name)
	}
}

// TestAnEngineOutlivesItsServer verifies that an engine survives a restart of its server: stopped
// in order or as by a crash, in the middle of writes, and started again. Writes during the outage
// wait, or fail with a code that shows whether they may have been applied; afterwards they succeed
// in the same engine. Every acknowledged append exists once, no failed one does, and one of unknown
// outcome exists at most once.
func TestAnEngineOutlivesItsServer(t *testing.T) {
	t.Parallel()
	server := cluster(t)
	both := []string{"fast", "immediate"}
	for _, mode := range testlevel.Pick([]string{"immediate"}, both, both) {
		t.Run(mode, func(t *testing.T) {
			hf := openEngine(t, postgres.URL(server.URL()))
			writers := make([]*writer, 4)
			var wg sync.WaitGroup
			for i := range writers {
				w := &writer{name: fmt.Sprintf("%s-%d", mode, i), update: i%2 == 1}
				writers[i] = w
				wg.Go(func() { w.run(t.Context(), hf) })
			}
			for range testlevel.Pick(1, 3, 30) {
				progress(t, writers, 20)
				if err := server.Stop(mode); err != nil {
					t.Fatal(err)
				}
				if _, err := hf.Status(expired(t)); err == nil {
					t.Error("status of a stopped server succeeded, want an error")
				}
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			progress(t, writers, 20)
			for _, w := range writers {
				w.stop.Store(true)
			}
			wg.Wait()
			for _, w := range writers {
				w.check(t, hf)
				t.Logf("%s: %d acknowledged, %d unknown, %d failed", w.name, len(w.known), len(w.unknown), len(w.failed))
			}
		})
	}
}

// progress waits until every writer has a number of further acknowledged appends.
func progress(t *testing.T, writers []*writer, more int64) {
	t.Helper()
	for _, w := range writers {
		goal := w.acked.Load() + more
		testkit.Eventually(t, "appends go through", func() bool { return w.acked.Load() >= goal })
	}
}

// TestAServerThatIsDownIsToldAsSuch verifies that without a server an engine does not open, and
// returns an error; and that the wait for one ends with the context.
func TestAServerThatIsDownIsToldAsSuch(t *testing.T) {
	t.Parallel()
	server := cluster(t)
	if err := server.Stop("fast"); err != nil {
		t.Fatal(err)
	}
	hf, err := holdfast.Open(expired(t), postgres.URL(server.URL()), quiet)
	if err == nil {
		hf.Close()
	}
	testkit.WantCode(t, err, fault.Unavailable, "cannot be reached")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

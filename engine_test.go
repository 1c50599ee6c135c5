package holdfast_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCloseWaitsForWhatIsUnderWay verifies that Close returns only when an update
// that had begun is committed, that later calls are told so, and that closing
// twice is harmless.
func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		inside, updated := make(chan struct{}), make(chan error, 1)
		go func() {
			updated <- hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
				close(inside)
				if err := clock.Wait(ctx, 100*time.Millisecond); err != nil {
					return err
				}
				_, err := stream.Append(ctx, tx, "s", stream.None, stream.Event{Name: "a"})
				return err
			})
		}()
		<-inside
		if err := hf.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-updated:
			if err != nil {
				t.Errorf("update: %v", err)
			}
		default:
			// Close has returned, so the update has: its answer is on its way.
			if err := <-updated; err != nil {
				t.Errorf("update: %v", err)
			}
		}
		if _, err := holdfast.Collect(stream.Read(context.Background(), hf, "s", 0)); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("read after close: got %v, want ErrUnavailable", err)
		}
		if err := hf.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
	})
}

// TestCallersLeaveWhileTheWriterIsBusy verifies that callers whose contexts end
// while an update holds SQLite's only writer leave at once, and are not applied
// later.
func TestCallersLeaveWhileTheWriterIsBusy(t *testing.T) {
	hf := holdfasttest.Open(t)
	if _, err := stream.Append(context.Background(), hf, "s", stream.None, stream.Event{Name: "first"}); err != nil {
		t.Fatal(err)
	}
	err := hf.Update(context.Background(), func(context.Context, holdfast.Tx) error {
		won, lost := holdfasttest.Race(t, 8, func(int) error {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			_, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "late"})
			return err
		})
		for _, err := range lost {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("caller got %v, want context.DeadlineExceeded", err)
			}
		}
		if won != 0 {
			t.Errorf("%d callers wrote while the writer was busy, want 0", won)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Append(context.Background(), hf, "s", 0, stream.Event{Name: "second"}); err != nil {
		t.Errorf("a canceled write was applied late: %v", err)
	}
}

// slowSweep is a part whose sweep ends only with the engine.
type slowSweep chan struct{}

func (s slowSweep) Register(_ context.Context, e *holdfast.Engine) error {
	begun := sync.OnceFunc(func() { close(s) })
	engine.Of(e).Sweep("slow", func(ctx context.Context) (int, error) {
		begun()
		<-ctx.Done()
		return 0, nil
	})
	return nil
}

// TestAShortTurnOfTheJanitorIsNoStall verifies that an engine whose janitor takes much longer
// than its turns is ready all the same: a server asks that when it starts, and ends if it is not.
func TestAShortTurnOfTheJanitorIsNoStall(t *testing.T) {
	sweeping := make(slowSweep)
	hf, err := holdfast.Open(t.Context(), sqlite.File(holdfasttest.SQLite(t)), holdfast.Config{SweepEvery: time.Nanosecond}, sweeping)
	if err != nil {
		t.Fatal(err)
	}
	defer hf.Close()
	defer testkit.Run(t, hf)()
	<-sweeping
	if _, err := hf.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// Verifies that a negative interval of the janitor is refused.
func TestSweepEveryIsChecked(t *testing.T) {
	_, err := holdfast.Open(t.Context(), sqlite.File(filepath.Join(t.TempDir(), "x.db")), holdfast.Config{SweepEvery: -1})
	if !errors.Is(err, holdfast.ErrValidation) {
		t.Errorf("got %v, want ErrValidation", err)
	}
}

// Verifies that a function that is nil is refused, and not called.
func TestFunctionsAreChecked(t *testing.T) {
	hf := holdfasttest.Open(t)
	if err := hf.Update(t.Context(), nil); !errors.Is(err, holdfast.ErrValidation) {
		t.Errorf("Update: got %v, want ErrValidation", err)
	}
	hf.Background(nil)
	if err := hf.Run(t.Context()); !errors.Is(err, holdfast.ErrValidation) {
		t.Errorf("Run with a loop that is nil: got %v, want ErrValidation", err)
	}
}

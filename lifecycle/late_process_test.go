//go:build unix

package lifecycle_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

const lateVar = "HOLDFAST_LATE_CHILD"

// pausing is a database that waits for a byte from outside when an effect was begun.
type pausing struct{ store.Database }

func (d pausing) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := d.Database.Open(ctx, o)
	return pausingStore{s, new(atomic.Bool)}, err
}

type pausingStore struct {
	store.Store
	paused *atomic.Bool
}

func (s pausingStore) Base() store.Store { return s.Store }

// Do blocks renewals after the pause: otherwise the renewer might find the lease lost before the body continues.
func (s pausingStore) Do(ctx context.Context, c store.Command) error {
	if c.Decl().Name == "entities.renew" && s.paused.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	err := s.Store.Do(ctx, c)
	if c.Decl().Name == "effects.begin" {
		s.paused.Store(true)
		fmt.Println("begun")
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
	return err
}

// TestLateChild is no test, but a process of its own, which waits between the intent of an effect and
// its call. In any other process it does nothing.
func TestLateChild(t *testing.T) {
	db := os.Getenv(lateVar)
	if db == "" {
		return
	}
	ctx := context.Background()
	w := newFxWorld(t)
	body := func(ctx context.Context, _ *fxAct) error {
		_, err := holdfast.Effect(ctx, "card", func(context.Context, string) (int, error) { fmt.Println("called"); return 7, nil })
		return err
	}
	e, err := holdfast.Open(ctx, store.HandleDatabase(pausing{store.DatabaseOf(fxDatabase(db))}), holdfast.Config{Log: slog.New(slog.DiscardHandler)}, w.Lifecycle)
	if err == nil {
		w.e = e
		w.make("b", body)
		_, err = w.Fire(ctx, e, "b", "charge", "admin", lifecycle.Lease(2*time.Second)) // a busy machine may take a while to the intent
	}
	fmt.Printf("ended: %q\n", fmt.Sprint(err))
	os.Exit(0)
}

// Verifies that a process that is stopped (SIGSTOP) between the intent of an effect and its call, until its
// lease has expired and a person has reported that the effect did not happen, does not make the call when it
// continues.
func TestAStoppedHolderDoesNotCall(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := newFxWorld(t)
		w.open(fxDatabase(db))
		w.does("b", func(ctx context.Context, _ *fxAct) error { _, err := w.charge(ctx, "card", nil); return err })
		child := testkit.Start(t, testkit.Self("TestLateChild", lateVar+"="+db))
		child.Expect("begun")
		storetest.Stop(t, w.e, child)
		testkit.Eventually(t, "its lease has expired", func() bool { // in real time: it is the child's clock that counts
			engine.Of(w.e).Round(t.Context())
			return w.get("b").Claimed.Phase == "due"
		})
		w.resumed("b")
		(&late{fxWorld: w}).resolve("card", false, lifecycle.Failure)
		child.Send("go on")
		child.Signal(syscall.SIGCONT)
		if said := child.Wait(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "LEASE_LOST") {
			t.Errorf("the child printed %q, want one line with LEASE_LOST", said)
		}
		(&late{fxWorld: w}).reported("", 0, false)
		w.is("b", "open", "")
	})
}

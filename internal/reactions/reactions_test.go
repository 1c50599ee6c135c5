package reactions_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/stream"
)

// TestAnEventReachesItsReaction verifies that what is appended is delivered, in
// order, and acknowledged.
func TestAnEventReachesItsReaction(t *testing.T) {
	for _, backend := range []string{"sqlite", "postgres"} {
		t.Run(backend, func(t *testing.T) {
			got := make(chan string, 1000)
			part := stream.React("r", stream.Select{}, func(ctx context.Context, d *stream.Delivery) error {
				got <- fmt.Sprint(d.Stream, " ", d.Version)
				return nil
			}, stream.Options{})
			hf := open(t, backend, part)
			run(t, hf)
			for i := range 10 {
				begun := time.Now()
				if _, err := stream.Append(t.Context(), hf, "a", stream.Any, stream.Event{Name: "n"}); err != nil {
					t.Fatal(err)
				}
				if s := <-got; s != fmt.Sprint("a ", i) {
					t.Errorf("got %s", s)
				}
				t.Log(time.Since(begun))
			}
		})
	}
}

func open(t *testing.T, backend string, parts ...holdfast.Part) *holdfast.Engine {
	t.Helper()
	var hf *holdfast.Engine
	if backend == "sqlite" {
		hf = holdfasttest.Open(t, parts...)
	} else {
		hf = holdfasttest.OpenOn(t, pg(t), parts...)
	}
	return hf
}

func run(t *testing.T, hf *holdfast.Engine) {
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := hf.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
}

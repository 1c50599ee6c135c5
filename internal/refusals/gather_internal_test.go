package refusals

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// pages counts the pages that are written.
type pages struct {
	store.Doer
	n atomic.Int64
}

func (p *pages) Do(context.Context, store.Command) error {
	p.n.Add(1)
	return nil
}

// TestRefusalsShareACommit verifies that the first refusal is written at once, that later ones are written together, and that
// Flush, a full page, Close and a refusal without a version do not wait for others.
func TestRefusalsShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pages)
		l := &Log{d: p, waiting: make(map[int16][]noted), tenants: make(map[string]*tenant), counts: make(map[Counted]int64), written: make(chan struct{})}
		note := func(n int) {
			for range n {
				l.add(0, noted{Workspace: "w", StandsFor: 1, Version: new(int64(3))}, fault.Concurrency)
			}
			synctest.Wait()
		}
		want := func(n int64) {
			t.Helper()
			if got := p.n.Load(); got != n {
				t.Fatalf("%d pages were written, want %d", got, n)
			}
		}
		note(1)
		want(1)
		for range 10 {
			note(1)
		}
		want(1)
		time.Sleep(gatherFor)
		synctest.Wait()
		want(2)
		note(2)
		want(2)
		l.Flush(t.Context())
		want(3)
		synctest.Wait()
		note(page)
		want(4)
		note(1)
		want(4)
		l.add(0, noted{Workspace: "w", StandsFor: 1}, fault.LeaseLost)
		synctest.Wait()
		want(5)
		note(1)
		want(5)
		l.Close()
		want(6)
	})
}

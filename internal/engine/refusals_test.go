package engine_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// in returns a context of a workspace that exists.
func in(t *testing.T, e *holdfast.Engine, workspace string) context.Context {
	t.Helper()
	ctx := holdfast.InWorkspace(t.Context(), workspace)
	if _, err := engine.Of(e).Partition(ctx, store.Write); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func recent(t *testing.T, ctx context.Context, e *holdfast.Engine) (all []refusals.Refusal) {
	t.Helper()
	for before := ""; ; before = all[len(all)-1].ID {
		page, err := refusals.Recent(ctx, engine.Of(e), before, 500)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < 500 {
			return all
		}
	}
}

// Verifies that a refusal is recorded with everything that is known of it, at the time at which it happened.
func TestARefusalIsRecordedWhole(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx := refusals.WithCaller(in(t, e, "w"), refusals.Caller{Actor: "key:1", Request: "r-1"})
		version := int64(7)
		err := fault.New(fault.ClaimFailed, "taken").With("operation", "op").With("holder", "n2")
		for _, x := range []struct {
			try refusals.Try
			err error
		}{
			{refusals.Try{Stream: "$entity/a/1", Action: "close", Requester: "admin", Version: &version}, err},
			{refusals.Try{Stream: "$entity/a/2", Action: "close", Actor: "ann"}, fault.New(fault.Concurrency, "moved").With("lastVersion", int64(3))},
			{refusals.Try{Stream: "$entity/a/3", Action: "settle", Operation: "mine", Epoch: 4}, fault.New(fault.LeaseLost, "lost")},
		} {
			if got := refusals.Note(ctx, engine.Of(e), x.try, x.err); !errors.Is(got, x.err) {
				t.Errorf("Note returned %v, want %v", got, x.err)
			}
		}
		for _, other := range []error{nil, errors.New("down"), fault.New(fault.NotFound, "missing"), fault.New(fault.Validation, "bad")} {
			_ = refusals.Note(ctx, engine.Of(e), refusals.Try{Stream: "s"}, other)
		}
		engine.Of(e).Refusals().Flush(t.Context())
		all := recent(t, ctx, e)
		if len(all) != 3 {
			t.Fatalf("got %d refusals, want 3: %+v", len(all), all)
		}
		lost, moved, claimed := all[0], all[1], all[2]
		node := engine.Of(e).Node()
		if c := claimed; c.Stream != "$entity/a/1" || c.Action != "close" || c.Requester != "admin" || c.Actor != "key:1" || c.Request != "r-1" || c.Node != node ||
			c.Version != 7 || c.Code != "CLAIM_FAILED" || c.Operation != "op" || c.StandsFor != 1 || c.Detail["holder"] != "n2" || time.Since(c.At).Abs() > time.Minute {
			t.Errorf("got %+v", c)
		}
		if m := moved; m.Version != 3 || m.Actor != "ann" || m.Code != "CONCURRENCY_ERROR" || m.Operation != "" {
			t.Errorf("got %+v", m)
		}
		if l := lost; l.Operation != "mine" || l.Epoch != 4 || l.Code != "LEASE_LOST" || l.Version != -1 {
			t.Errorf("got %+v", l)
		}
		if n := engine.Of(e).Refusals().Counts()[refusals.Counted{Kind: "entity", Code: fault.ClaimFailed}]; n != 1 {
			t.Errorf("counted %d refused claims, want 1", n)
		}
	})
}

// Verifies that every refusal is recorded up to the documented burst; that above it some are left out, and that the
// recorded ones stand for all of them; that another workspace is not affected; and that a long detail is not stored.
func TestRefusalsAreSampled(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		note := func(ctx context.Context, stream string, detail string) {
			_ = refusals.Note(ctx, engine.Of(e), refusals.Try{Stream: stream, Action: "append"}, fault.New(fault.Concurrency, "moved").With("status", detail))
		}
		loud, quiet := in(t, e, "loud"), in(t, e, "quiet")
		const tries = 2 * refusals.Burst
		for i := range refusals.Burst {
			note(loud, strconv.Itoa(i), "")
		}
		engine.Of(e).Refusals().Flush(t.Context())
		if n := len(recent(t, loud, e)); n != refusals.Burst {
			t.Errorf("%d of %d refusals are recorded", n, refusals.Burst)
		}
		for i := range tries {
			note(loud, strconv.Itoa(i), "")
		}
		note(quiet, "q", strings.Repeat("x", 1<<20))
		engine.Of(e).Refusals().Flush(t.Context())
		all, stands := recent(t, loud, e), int64(0)
		for _, r := range all {
			stands += r.StandsFor
		}
		if len(all) == refusals.Burst+tries || stands != refusals.Burst+tries {
			t.Errorf("%d recorded refusals stand for %d, want fewer that stand for %d", len(all), stands, refusals.Burst+tries)
		}
		if all := recent(t, quiet, e); len(all) != 1 || all[0].Detail["status"] != nil || all[0].Detail["truncated"] != true {
			t.Errorf("the other workspace has %+v, want 1 refusal without its detail", all)
		}
	})
}

// Verifies that those who wait for the recorded refusals do not wait for later ones, however many there are, and that all refusals
// that were noted before the call are then recorded, also by one that stands for them.
func TestAFlushEndsWhileOthersAreRefused(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx := in(t, e, "w")
		var noted atomic.Int64
		note := func() {
			noted.Add(1)
			_ = refusals.Note(ctx, engine.Of(e), refusals.Try{Stream: "s", Action: "append"}, fault.New(fault.Concurrency, "moved"))
		}
		for range 2 * refusals.Burst {
			note()
		}
		ended := make(chan struct{})
		var callers sync.WaitGroup
		callers.Go(func() {
			for { // many more than are recorded
				select {
				case <-ended:
					return
				default:
					note()
				}
			}
		})
		for range 3 {
			before, patience := noted.Load(), time.AfterFunc(time.Minute, func() { panic("the flush does not end") })
			engine.Of(e).Refusals().Flush(t.Context())
			patience.Stop()
			stands := int64(0)
			for _, r := range recent(t, ctx, e) {
				stands += r.StandsFor
			}
			if stands < before-1 { // the last may have been counted here and not yet noted
				t.Errorf("the recorded refusals stand for %d, want at least %d", stands, before-1)
			}
		}
		close(ended)
		callers.Wait()
		gone, cancel := context.WithCancel(ctx)
		cancel()
		engine.Of(e).Refusals().Flush(gone)
	})
}

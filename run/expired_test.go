package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// TestALateStartOfADeletedRunIsRefused verifies that a start with the key of a run that was deleted after its retention is
// refused for as long as keys are kept, whether it has the same input or another, in a transaction or not, and for a
// definition that starts at once as for one that waits; that only the key is left of the run; and that the key
// is free after its own retention.
func TestALateStartOfADeletedRunIsRefused(t *testing.T) {
	waits := run.Define("waits", "1", run.Signal("paid", "payment"))
	remote := run.Define("remote", "1", run.Remote("first", "w", run.Idempotent()))
	opaque := run.Define("opaque", "1", run.Remote("first", "w"))
	instant := run.Define("instant", "1", run.If("only", "true", "end", "end"))
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		defs := map[string]*run.Definition{"waits": waits, "remote": remote, "opaque": opaque, "instant": instant}
		old := make(map[string]string)
		for name, def := range defs {
			r, created, err := def.Start(ctx, hf, order{"o", 1}, run.Key("key-"+name))
			if err != nil || !created {
				t.Fatal(created, err)
			}
			if !r.Over() {
				if _, err := run.Cancel(ctx, hf, r.ID); err != nil {
					t.Fatal(err)
				}
			}
			old[name] = r.ID
			if _, _, err := def.Start(ctx, hf, order{"o", 1}); err != nil { // without a key
				t.Fatal(err)
			}
		}
		holdfasttest.Advance(t, hf, time.Hour+time.Minute)
		engine.Of(hf).Round(ctx)
		for name, def := range defs {
			for _, of := range []order{{"o", 1}, {"p", 2}} {
				_, created, err := def.Start(ctx, hf, of, run.Key("key-"+name))
				if f, _ := errors.AsType[*fault.Error](err); !errors.Is(err, holdfast.ErrKeyExpired) || created || f.Fields["runId"] != old[name] {
					t.Errorf("%s started again: created %t, error %v, want ErrKeyExpired with run %s", name, created, err, old[name])
				}
			}
			err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, _, err := def.Start(ctx, tx, order{"o", 1}, run.Key("key-"+name))
				return err
			})
			if !errors.Is(err, holdfast.ErrKeyExpired) {
				t.Errorf("%s started again in a transaction: error %v, want ErrKeyExpired", name, err)
			}
			if _, err := run.Get(ctx, hf, old[name]); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("%s: error %v, want ErrNotFound", name, err)
			}
		}
		left, err := holdfast.Collect(run.List(ctx, hf, run.Filter{}))
		if err != nil || len(left) != len(defs)-1 { // those without a key that have not ended
			t.Errorf("%d runs are listed, error %v, want %d", len(left), err, len(defs)-1)
		}
		keyed, err := runengine.ListByKey(ctx, engine.Of(hf), "key-", 10)
		if err != nil || len(keyed) != 0 {
			t.Errorf("the keys %v are found, error %v, want none", keyed, err)
		}

		holdfasttest.Advance(t, hf, time.Hour)
		p := retention.Pruner{Retention: time.Hour}
		if _, _, err := p.Sweep(ctx, engine.Of(hf), 2000); err != nil {
			t.Fatal(err)
		}
		for name, id := range old {
			if events, err := holdfast.Collect(stream.Read(ctx, hf, "$run/"+id, 0)); err != nil || len(events) != 0 {
				t.Errorf("%s has %d events, error %v, want none", name, len(events), err)
			}
		}
		if report, err := hf.Check(ctx); err != nil || !report.Clean() {
			t.Errorf("check: %v, error %v", report.Violations, err)
		}

		holdfasttest.Advance(t, hf, 24*time.Hour)
		engine.Of(hf).Round(ctx)
		for name, def := range defs {
			if r, created, err := def.Start(ctx, hf, order{"o", 1}, run.Key("key-"+name)); err != nil || !created || r.ID == old[name] {
				t.Errorf("%s after its key was deleted: run %s, created %t, error %v, want a new run", name, r.ID, created, err)
			}
		}
	}, run.Retention(time.Hour), run.KeyRetention(24*time.Hour), waits, remote, opaque, instant)
}

// TestStartsAndDeletionsRace verifies that of many starts with one key exactly one starts a run, although runs are deleted
// as soon as they end; and that all others get that run, or the error that it has expired.
func TestStartsAndDeletionsRace(t *testing.T) {
	instant := run.Define("instant", "1", run.If("only", "true", "end", "end"))
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		var callers sync.WaitGroup
		expired := make([]atomic.Int64, 30)
		for k := range expired {
			var created atomic.Int64
			for range 8 {
				callers.Go(func() {
					for !t.Failed() {
						_, fresh, err := instant.Start(ctx, hf, nil, run.Key(fmt.Sprint("key-", k)))
						if fresh && created.Add(1) > 1 {
							t.Errorf("key %d has started two runs", k)
						}
						if errors.Is(err, holdfast.ErrKeyExpired) {
							expired[k].Add(1)
							return
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		over := make(chan struct{})
		go func() { callers.Wait(); close(over) }()
		for done := false; !done; {
			select {
			case <-over:
				done = true
			default:
				engine.Of(hf).Round(ctx)
			}
		}
		for k := range expired {
			if n := expired[k].Load(); n != 8 {
				t.Errorf("key %d: %d callers were told that the run has expired, want 8", k, n)
			}
		}
	}, run.Retention(time.Millisecond), instant)
}

// TestTheHistoryOfAFollowedRun verifies that the history of a deleted run stays until every reaction to it has handled all of it, and that
// its events and the positions of the reactions, which would else be beyond the end of the history, are then deleted.
func TestTheHistoryOfAFollowedRun(t *testing.T) {
	instant := run.Define("instant", "1", run.If("only", "true", "end", "end"))
	storetest.OnEach(t, func(t *testing.T, db string) {
		var broken atomic.Bool
		broken.Store(true)
		handled := make(map[stream.Version]int) // Settle calls one body at a time
		open := func(pattern string) *holdfast.Engine {
			follow := stream.React("follow", stream.Select{Pattern: pattern, Source: stream.Histories}, func(_ context.Context, d *stream.Delivery) error {
				if strings.HasPrefix(d.Stream, "$run/") {
					handled[d.Version]++
				}
				return nil
			}, stream.Options{})
			fails := stream.React("fails", stream.Select{Pattern: `^\$run/`, Source: stream.Histories}, func(context.Context, *stream.Delivery) error {
				if broken.Load() {
					return holdfast.NonRetryable(errors.New("no"))
				}
				return nil
			}, stream.Options{})
			return holdfasttest.OpenOn(t, holdfasttest.At(db), run.Retention(time.Hour), instant, follow, fails)
		}
		hf := open(`^\$run/`)
		ctx := t.Context()
		settle := func() {
			t.Helper()
			if _, err := holdfasttest.Settle(ctx, hf); err != nil {
				t.Fatal(err)
			}
		}
		sweep := func() {
			t.Helper()
			p := retention.Pruner{Retention: time.Hour}
			if _, _, err := p.Sweep(ctx, engine.Of(hf), 2000); err != nil {
				t.Fatal(err)
			}
		}
		r, _, err := instant.Start(ctx, hf, nil, run.Key("k"))
		if err != nil {
			t.Fatal(err)
		}
		settle()
		want := func(when string, events, positions int) {
			t.Helper()
			left, err := holdfast.Collect(stream.Read(ctx, hf, "$run/"+r.ID, 0))
			if err != nil || len(left) != events {
				t.Errorf("%s: %d events are left, error %v, want %d", when, len(left), err, events)
			}
			found := 0
			for _, name := range []string{"follow", "fails"} {
				if _, err := reactions.Stands(ctx, engine.Of(hf), name, "$run/"+r.ID); err == nil {
					found++
				} else if fault.CodeOf(err) != fault.NotFound {
					t.Fatal(err)
				}
			}
			if found != positions {
				t.Errorf("%s: %d positions are left, want %d", when, found, positions)
			}
			if report, err := hf.Check(ctx); err != nil || !report.Clean() {
				t.Errorf("%s: check: %v, error %v", when, report.Violations, err)
			}
		}
		events, err := holdfast.Collect(stream.Read(ctx, hf, "$run/"+r.ID, 0))
		if err != nil || len(events) < 2 {
			t.Fatalf("%d events, error %v, want several", len(events), err)
		}
		holdfasttest.Advance(t, hf, 3*time.Hour)
		sweep()
		want("the run exists", len(events), 2) // the reaction that fails has handled none
		engine.Of(hf).Round(ctx)
		sweep()
		want("a reaction is blocked", len(events), 2)
		if err := hf.Close(); err != nil {
			t.Fatal(err)
		}
		hf = open(`^\$(run|entity)/`) // the other one looks for histories that it does not know
		settle()
		broken.Store(false)
		if touched, _, err := reactions.Repair(ctx, engine.Of(hf), "unblock", "", reactions.Filter{}); err != nil || len(touched) != 1 {
			t.Fatal(touched, err)
		}
		sweep()
		want("a reaction is due", len(events), 2)
		settle()
		sweep()
		want("all is handled", 0, 0)
		if err := hf.Close(); err != nil {
			t.Fatal(err)
		}
		hf = open(`^\$`)
		settle()
		want("afterwards", 0, 0)
		for version, times := range handled {
			if times != 1 {
				t.Errorf("version %d was handled %d times", version, times)
			}
		}
		if len(handled) != len(events) {
			t.Errorf("%d events were handled, want %d", len(handled), len(events))
		}
	})
}

// TestAHistoryThatGoesDuringARegistration verifies that a reaction has no position on the history of a deleted run that was deleted while the
// transaction that registers the reaction was open.
func TestAHistoryThatGoesDuringARegistration(t *testing.T) {
	instant := run.Define("instant", "1", run.If("only", "true", "end", "end"))
	url := holdfasttest.PostgreSQL(t) // on SQLite, there is one writer
	hf := holdfasttest.OpenOn(t, holdfasttest.At(url), run.Retention(time.Hour), instant)
	ctx := t.Context()
	for range 3 {
		if _, _, err := instant.Start(ctx, hf, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		t.Fatal(err)
	}
	holdfasttest.Advance(t, hf, 3*time.Hour)
	engine.Of(hf).Round(ctx)
	err := engine.Of(hf).Update(ctx, func(inside context.Context, tx *store.Tx) error {
		if err := reactions.Enlist(inside, tx, reactions.Definition{Name: "late", Streams: `^\$run/`, Options: reactions.DefaultOptions()}); err != nil {
			return err
		}
		p := retention.Pruner{Retention: time.Hour}
		n, _, err := p.Sweep(ctx, engine.Of(hf), 2000)
		if err == nil && n == 0 {
			t.Error("no event was deleted")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		engine.Of(hf).Round(ctx)
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		t.Fatal(err)
	}
	if info, err := reactions.Get(ctx, engine.Of(hf), "late"); err != nil || !info.Settled {
		t.Errorf("%+v, error %v", info, err)
	}
	if report, err := hf.Check(ctx); err != nil || !report.Clean() {
		t.Errorf("check: %v, error %v", report.Violations, err)
	}
}

package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// breaker is a proxy between an engine and its server that breaks one connection at a chosen
// moment: when the client has sent the marker.
type breaker struct {
	*testkit.Proxy
	marker atomic.Pointer[[]byte]
	// deliver selects whether the server still gets the message with the marker. Its response is
	// then awaited, so that the server has executed it, and discarded.
	deliver atomic.Bool
	// hang makes the connection hang instead of closing it.
	hang   atomic.Bool
	broken atomic.Int32
	// listened counts the connections that began to listen.
	listened atomic.Int32
}

// newBreaker starts a proxy, and returns it and the URL through it.
func newBreaker(t *testing.T, base string) (b *breaker, through string) {
	t.Helper()
	b = &breaker{}
	b.Proxy, through = testkit.NewProxy(t, base, b.action, nil)
	return b, through
}

func (b *breaker) action(sent []byte) testkit.Action {
	if bytes.Contains(sent, []byte("LISTEN ")) {
		b.listened.Add(1)
	}
	marker := b.marker.Load()
	if marker == nil || !bytes.Contains(sent, *marker) {
		return testkit.Pass
	}
	b.marker.Store(nil)
	b.broken.Add(1)
	switch hang, deliver := b.hang.Load(), b.deliver.Load(); {
	case hang && deliver:
		return testkit.DeliverAndHang
	case hang:
		return testkit.Hang
	case deliver:
		return testkit.LoseResponse
	}
	return testkit.Cut
}

// arm makes the next message with the marker the last one.
func (b *breaker) arm(marker string, deliver bool) {
	text := []byte(marker)
	b.deliver.Store(deliver)
	b.marker.Store(&text)
}

// TestAWriteWhoseAnswerIsLostIsNeverAppliedTwice verifies that a write whose response is lost,
// whether the server had received it or not, by itself or at the COMMIT of an update, is applied
// exactly once if the caller gets success, and at most once if the outcome is unknown. The engine
// continues to work.
func TestAWriteWhoseAnswerIsLostIsNeverAppliedTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, marker string
		deliver      bool
		write        func(context.Context, *holdfast.Engine) error
	}{
		{"a command that arrived", "precious", true, appendOnce},
		{"a command that did not arrive", "precious", false, appendOnce},
		{"a commit that arrived", "commit\x00", true, updateOnce},
		{"a commit that did not arrive", "commit\x00", false, updateOnce},
	} {
		for _, mode := range []string{"cache_statement", "cache_describe", "exec"} {
			t.Run(c.name+", "+mode, func(t *testing.T) {
				t.Parallel()
				b, through := newBreaker(t, prepared(t))
				hf := openEngine(t, postgres.URL(as(t, through, "", "", "default_query_exec_mode="+mode)))
				for range 2 { // so that the stream exists and everything is prepared
					mustAppend(t, hf, "s", stream.Any)
				}
				b.arm(c.marker, c.deliver)
				err := c.write(t.Context(), hf)
				if b.broken.Load() != 1 {
					t.Fatalf("%d connections were broken, want 1", b.broken.Load())
				}
				there := len(wantGapless(t, hf, "s")) - 2
				switch {
				case err == nil && there != 1:
					t.Errorf("append was acknowledged, but stored %d times, want 1", there)
				case err != nil && !errors.Is(err, holdfast.ErrOutcomeUnknown):
					t.Errorf("got error %v, want ErrOutcomeUnknown", err)
				case err != nil && there != 0 && !c.deliver, there > 1:
					t.Errorf("append is stored %d times with error %v", there, err)
				}
				t.Logf("got error %v, stored %d times", err, there)
				mustAppend(t, hf, "s", stream.Any)
			})
		}
	}
}

// TestAVerbWhoseAnswerIsLostStillHasItsAnswer verifies that the caller of a verb whose response is
// lost, after the server received it or before, gets the same result as any other: every verb is
// applied once, and the returned value is the stored one.
func TestAVerbWhoseAnswerIsLostStillHasItsAnswer(t *testing.T) {
	t.Parallel()
	for _, deliver := range []bool{true, false} {
		t.Run(fmt.Sprintf("arrived %v", deliver), func(t *testing.T) {
			t.Parallel()
			b, through := newBreaker(t, prepared(t))
			hf := openEngine(t, postgres.URL(through))
			ctx := t.Context()
			mustAppend(t, hf, "warm", stream.None)
			armed := func() { b.arm("precious", deliver) }

			armed()
			v, err := stream.Append(ctx, hf, "precious", stream.None, event("a"), event("b"))
			if names := wantGapless(t, hf, "precious"); err != nil || v != 1 || len(names) != 2 {
				t.Errorf("append returned version %d, stored %v: %v", v, names, err)
			}
			armed()
			made, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "thing", ID: "precious", Status: "new", Data: []byte(`{"n":1}`)})
			wantEntity(t, hf, "created", made, err, 0)
			armed()
			moved, err := entities.Transition(ctx, engine.Of(hf), entities.TransitionArgs{Lifecycle: "thing", ID: "precious", From: []string{"new"}, To: "old", Event: "aged", Data: []byte(`{"n":2}`)})
			wantEntity(t, hf, "moved", moved, err, 1)
			armed()
			kept, err := entities.Transition(ctx, engine.Of(hf), entities.TransitionArgs{Lifecycle: "thing", ID: "precious", From: []string{"old"}, To: "older", Event: "aged"})
			wantEntity(t, hf, "moved with its data kept", kept, err, 2)
			armed()
			taken, err := entities.Take(ctx, engine.Of(hf), entities.ClaimArgs{Lifecycle: "thing", ID: "precious", Operation: "op", Step: "s", Requester: "r", Holder: "h",
				Lease: time.Minute, Choices: map[string]entities.Choice{"older": {Into: "aging", Revert: "older"}}})
			wantEntity(t, hf, "claimed", taken, err, 3)
			if taken.Claim.Phase != entities.Held || taken.Claim.Epoch != 1 {
				t.Errorf("got claim %+v, want phase held and epoch 1", taken.Claim)
			}
			at, err := engine.Of(hf).Partition(ctx, store.Write)
			if err != nil {
				t.Fatal(err)
			}
			armed()
			if x, err := effects.Begin(ctx, engine.Of(hf), at, taken.Ticket(), "charge", 0, effects.Hold, nil); err != nil || x.State != effects.New {
				t.Errorf("begin effect: got %+v, %v, want state new", x, err)
			}
			armed()
			if x, err := effects.End(ctx, engine.Of(hf), at, taken.Ticket(), "charge", 0, effects.NotDone, nil, false); err != nil || x != effects.NotDone {
				t.Errorf("end effect: got %v, %v, want not done", x, err)
			}
			armed()
			ended, _, err := entities.End(ctx, engine.Of(hf), at, entities.EndArgs{Ticket: taken.Ticket(), How: entities.Back, Event: "released", Outcome: "failed", Claim: "aging"})
			wantEntity(t, hf, "given back", ended, err, 4)
			armed()
			put, err := scopestore.Put(ctx, engine.Of(hf), scopestore.PutArgs{Kind: "box", ID: "precious", State: []byte(`{"n":1}`)})
			wantScope(t, hf, "put", put, err, 0)
			armed()
			sum, err := storetest.Inc(ctx, hf, storetest.IncArgs{Kind: "box", ID: "precious", Field: "n", By: 4})
			wantScope(t, hf, "inc", sum.Scope, err, 1)
			if sum.Value != 5 {
				t.Errorf("got sum %d, want 5", sum.Value)
			}
			armed()
			gone, err := scopestore.Delete(ctx, engine.Of(hf), scopestore.DeleteArgs{Kind: "box", ID: "precious"})
			if _, missing := scopestore.Get(ctx, engine.Of(hf), "box", "precious"); err != nil || gone.Version != 2 || !errors.Is(missing, holdfast.ErrNotFound) {
				t.Errorf("delete returned %+v, %v, and the next get %v", gone, err, missing)
			}
			if n := b.broken.Load(); n != 11 {
				t.Errorf("%d connections were broken, want 11", n)
			}
		})
	}
}

func wantEntity(t *testing.T, hf *holdfast.Engine, what string, got entities.Entity, err error, version int64) {
	t.Helper()
	stored, found := entities.Get(t.Context(), engine.Of(hf), "thing", "precious")
	got.Data, stored.Data = compact(got.Data), compact(stored.Data)
	if got.Claim.Operation == "" { // a verb that does not return it
		stored.Claim = got.Claim
	}
	if err != nil || found != nil || got.Version != version || fmt.Sprint(got) != fmt.Sprint(stored) {
		t.Errorf("%s: got response %s, %v; stored is %s, %v", what, fmt.Sprint(got), err, fmt.Sprint(stored), found)
	}
}

// compact returns a document without insignificant white space.
func compact(doc []byte) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, doc); err != nil {
		return doc
	}
	return out.Bytes()
}

func wantScope(t *testing.T, hf *holdfast.Engine, what string, got scopestore.Scope, err error, version int64) {
	t.Helper()
	stored, found := scopestore.Get(t.Context(), engine.Of(hf), "box", "precious")
	if err != nil || found != nil || got.Version != version || string(compact(got.State)) != string(compact(stored.State)) {
		t.Errorf("%s: got response %d %s, %v; stored is %d %s, %v", what, got.Version, got.State, err, stored.Version, stored.State, found)
	}
}

func appendOnce(ctx context.Context, hf *holdfast.Engine) error {
	_, err := stream.Append(ctx, hf, "s", stream.Any, event("precious"))
	return err
}

func updateOnce(ctx context.Context, hf *holdfast.Engine) error {
	return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, "s", stream.Any, event("precious"))
		return err
	})
}

// TestAnUpdateThatBreaksBeforeItsCommitRunsAgain verifies that an update whose connection breaks
// before its COMMIT is run again, and is applied once.
func TestAnUpdateThatBreaksBeforeItsCommitRunsAgain(t *testing.T) {
	t.Parallel()
	for _, deliver := range []bool{true, false} {
		direct := prepared(t)
		b, through := newBreaker(t, direct)
		hf := openEngine(t, postgres.URL(through))
		mustAppend(t, hf, "warm", stream.Any)
		b.arm("precious", deliver)
		if err := updateOnce(t.Context(), hf); err != nil {
			t.Errorf("delivered %v: %v", deliver, err)
		}
		if names := wantGapless(t, hf, "s"); len(names) != 1 || b.broken.Load() != 1 {
			t.Errorf("delivered %v: stored %d times after %d breaks, want 1 and 1", deliver, len(names), b.broken.Load())
		}
	}
}

// TestAReadWhoseAnswerIsLostIsRepeated verifies that a read whose response is lost is repeated.
func TestAReadWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	direct := prepared(t)
	b, through := newBreaker(t, direct)
	hf := openEngine(t, postgres.URL(through))
	mustAppend(t, hf, "precious", stream.None)
	b.arm("precious", true)
	all, err := holdfast.Collect(stream.Read(t.Context(), hf, "precious", 0))
	if err != nil || len(all) != 1 || b.broken.Load() != 1 {
		t.Errorf("got %d events after %d breaks, want 1 and 1: %v", len(all), b.broken.Load(), err)
	}
}

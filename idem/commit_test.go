package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

// order is a handler's write: an event.
func order(ctx context.Context) error {
	return idem.Commit(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, "orders", stream.Any, stream.Event{Name: "ordered"})
		return err
	})
}

func wantEvents(t *testing.T, hf *holdfast.Engine, want int) {
	t.Helper()
	all, err := holdfast.Collect(stream.Read(context.Background(), hf, "orders", 0))
	if err != nil || len(all) != want {
		t.Errorf("got %d orders, want %d; %v", len(all), want, err)
	}
}

// TestCommit verifies that what a handler commits is written once, that its answer is
// kept whatever its status is, and what Commit refuses.
func TestCommit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var late context.Context
		c := &counted{then: func(w http.ResponseWriter, r *http.Request, _ int64) {
			late = r.Context()
			err := idem.Commit(r.Context(), func(context.Context, holdfast.Tx) error { return errors.New("by plan") })
			if err == nil {
				t.Error("a failed commit returned no error")
			}
			if err := order(r.Context()); err != nil {
				t.Error(err)
			}
			testkit.WantCode(t, order(r.Context()), fault.Conflict)
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "tea")
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		first := call{key: "k"}.to(h)
		wantStatus(t, first, http.StatusTeapot)
		wantReplay(t, call{key: "k"}.to(h), first)
		wantRuns(t, c, 1)
		wantEvents(t, hf, 1)
		testkit.WantCode(t, order(late), fault.Conflict)
		testkit.WantCode(t, order(context.Background()), fault.Validation)
		wantEvents(t, hf, 1)
	})
}

// TestCommitFails verifies that a handler whose commit fails has written nothing, and
// that its key is free when it refuses the request.
func TestCommitFails(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		c := &counted{then: func(w http.ResponseWriter, r *http.Request, n int64) {
			err := idem.Commit(r.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, "orders", stream.Any, stream.Event{Name: "ordered"})
				if n == 1 {
					err = errors.New("by plan")
				}
				return err
			})
			if err != nil {
				w.WriteHeader(http.StatusConflict)
			}
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		wantStatus(t, call{key: "k"}.to(h), 409)
		wantEvents(t, hf, 0)
		wantStatus(t, call{key: "k", body: "other"}.to(h), 200)
		wantEvents(t, hf, 1)
	})
}

// TestCommitAndPanic verifies that a handler that dies after its commit is not run
// again, and that the replay says that its answer is lost.
func TestCommitAndPanic(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		c := &counted{then: func(_ http.ResponseWriter, r *http.Request, _ int64) {
			if err := order(r.Context()); err != nil {
				t.Error(err)
			}
			panic(http.ErrAbortHandler)
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		func() {
			defer func() { _ = recover() }()
			call{key: "k"}.to(h)
		}()
		wantProblem(t, call{key: "k"}.to(h), 409, fault.KeyInFlight) // its answer may be on its way
		holdfasttest.Advance(t, hf, 31*time.Second)
		wantLost(t, call{key: "k"}.to(h), "lost")
		wantRuns(t, c, 1)
		wantEvents(t, hf, 1)
	})
}

// TestCommitTooLate verifies that a handler whose hold has run out commits nothing,
// whether another has run meanwhile or not.
func TestCommitTooLate(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for i, another := range []bool{true, false} {
			key := fmt.Sprint("k", another)
			var h http.Handler
			c := &counted{}
			c.then = func(w http.ResponseWriter, r *http.Request, n int64) {
				if n > 1 {
					if err := order(r.Context()); err != nil {
						t.Error(err)
					}
					return
				}
				holdfasttest.Advance(t, hf, time.Minute)
				if another {
					wantStatus(t, call{key: key}.to(h), 200)
				}
				testkit.WantCode(t, order(r.Context()), fault.LeaseLost)
				w.WriteHeader(http.StatusConflict)
			}
			h = wrapped(hf, c, idem.Options{SharedKeys: true})
			wantStatus(t, call{key: key}.to(h), 409)
			wantStatus(t, call{key: key}.to(h), 200)
			wantRuns(t, c, 2)
			wantEvents(t, hf, i+1)
		}
	})
}

// TestCommitAtOnce verifies that of 20 equal requests at once one is committed, and
// that two commits in one handler at once are one.
func TestCommitAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		c := &counted{then: func(_ http.ResponseWriter, r *http.Request, _ int64) {
			won, lost := holdfasttest.Race(t, 3, func(int) error { return order(r.Context()) })
			if won != 1 {
				t.Errorf("%d commits won, want 1: %v", won, errors.Join(lost...))
			}
		}}
		h := wrapped(hf, c, idem.Options{SharedKeys: true})
		holdfasttest.Race(t, 20, func(int) error {
			if w := (call{key: "k"}).to(h); w.Code != 200 && w.Code != 409 {
				t.Errorf("got status %d %s, want 200 or 409", w.Code, w.Body)
			}
			return nil
		})
		wantRuns(t, c, 1)
		wantEvents(t, hf, 1)
	})
}

// crashing is a client that sends a request until it has an answer, to a handler with
// faults in it.
type crashing struct {
	commits bool
	mu      sync.Mutex
	runs    map[string]int // of the handler, by workspace
}

func (c *crashing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.runs[store.WorkspaceOf(r.Context())]++
	c.mu.Unlock()
	if c.commits {
		if err := order(r.Context()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, "ordered")
}

func (c *crashing) do(ctx context.Context, hf *holdfast.Engine) error {
	w := httptest.NewRecorder()
	idem.Middleware(hf, idem.Options{SharedKeys: true})(c).ServeHTTP(w, call{key: "k"}.request(ctx))
	if w.Code == http.StatusConflict { // it waits, as it is told
		after, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if err == nil {
			err = store.Shift(ctx, engine.Of(hf), time.Duration(after)*time.Second)
		}
		return errors.Join(err, errors.New("under way"))
	}
	if w.Code == http.StatusCreated && w.Body.String() == "ordered" || w.Code == http.StatusNoContent && w.Header().Get("Idempotency-Answer") == "lost" {
		return nil
	}
	return fmt.Errorf("got status %d %s", w.Code, w.Body)
}

func (c *crashing) ran(ctx context.Context) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[store.WorkspaceOf(ctx)]
}

// check sends the request once more: a handler that has committed does not run again, and
// the key of one that has not is not stuck.
func (c *crashing) check(ctx context.Context, hf *holdfast.Engine) error {
	all, err := holdfast.Collect(stream.Read(ctx, hf, "orders", 0))
	if err != nil {
		return err
	}
	runs := c.ran(ctx)
	if c.commits && len(all) != 1 || runs == 0 {
		return fmt.Errorf("got %d orders after %d runs", len(all), runs)
	}
	err = c.do(ctx, hf)
	if err != nil { // its answer was not recorded, and its hold has run out by now
		err = c.do(ctx, hf)
	}
	if c.commits && c.ran(ctx) != runs {
		err = errors.New("the handler ran again for a replay")
	}
	return err
}

// TestCrash verifies that a request that a handler commits is done once, wherever a
// fault strikes; and that one of a handler that writes by its own means is done at
// least once, and its key never stuck.
func TestCrash(t *testing.T) {
	for name, commits := range map[string]bool{"commits": true, "plain": false} {
		c := &crashing{commits: commits, runs: make(map[string]int)}
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Do: c.do, Check: c.check, Pairs: commits})
	}
}

package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

// inOneCommand is a request that appends one event, whose response is the version of the event.
func inOneCommand(ctx context.Context, hf *holdfast.Engine, key, to string, want stream.Version) (answer string, done bool, err error) {
	f := flightOn(hf)
	f.Key = key
	done, err = f.InCommand(ctx, func(ctx context.Context, d store.Doer) (int, []byte, error) {
		last, err := stream.Append(ctx, d, to, want, stream.Event{Name: "done"})
		answer = fmt.Sprint(last)
		return 200, []byte(answer), err
	})
	return answer, done, err
}

// wantRequest checks the stored response of a request, or that there is none ("").
func wantRequest(t *testing.T, hf *holdfast.Engine, key, answer string) {
	t.Helper()
	q, err := idempotency.Get(context.Background(), engine.Of(hf), key)
	if want := idempotency.State(""); err != nil || string(q.Answer) != answer || answer == "" && q.State != want || answer != "" && (q.State != idempotency.Done || q.Status != 200 || q.Fingerprint != "print") {
		t.Errorf("request %s is %+v, error %v, want response %q", key, q, err, answer)
	}
}

func wantLength(t *testing.T, hf *holdfast.Engine, name string, want int) {
	t.Helper()
	all, err := holdfast.Collect(stream.Read(context.Background(), hf, name, 0))
	if err != nil || len(all) != want {
		t.Errorf("stream %s has %d events, want %d; error %v", name, len(all), want, err)
	}
}

// TestCrashOfACommand verifies that a request in one command that is repeated until it gets a
// response, by a command or else by a transaction, is done once, wherever a fault strikes, and that
// the stored response is that of its event.
func TestCrashOfACommand(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			answer, done, err := inOneCommand(ctx, hf, "k", "done", stream.Any)
			if err == nil && done && answer != "0" {
				err = fmt.Errorf("got response %s, want 0", answer)
			}
			if err != nil || done {
				return err
			}
			q, mine, err := inOneTransaction(ctx, hf, store.NewID().String())
			if err == nil && !mine && q.State != idempotency.Done {
				err = fmt.Errorf("got request %+v, want it done", q)
			}
			return err
		},
		Check: doneOnce,
		Pairs: true,
	})
}

// TestCommandsAtOnce verifies that of 20 callers with one request one does it, in a command or in a
// transaction, and that all others find its response.
func TestCommandsAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var did atomic.Int64
		_, failed := holdfasttest.Race(t, 20, func(int) error {
			_, done, err := inOneCommand(context.Background(), hf, "k", "done", stream.Any)
			if err == nil && !done {
				_, done, err = inOneTransaction(context.Background(), hf, store.NewID().String())
			}
			if done {
				did.Add(1)
			}
			return err
		})
		if did.Load() != 1 || failed != nil {
			t.Errorf("%d callers did the request, want 1; errors %v", did.Load(), failed)
		}
		wantEvents(t, hf, 1)
		mustFind(t, engine.Of(hf), idempotency.Done)
	})
}

// TestCommandsShareTheirTransactions verifies that of many callers whose commands share
// transactions, each has its own outcome: a new request is done and stored; one whose key is known
// adds nothing and does not make others fail; a refused one stores nothing.
func TestCommandsShareTheirTransactions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		const callers, rounds = 24, 6
		name := func(i, n int) (key, to string) { return fmt.Sprint("k", i, "-", n), fmt.Sprint("s", i) }
		for i := 0; i < callers; i += 3 {
			for n := range rounds {
				key, to := name(i, n)
				if _, done, err := inOneCommand(t.Context(), hf, key, to, stream.Any); err != nil || !done {
					t.Fatalf("not done: %v", err)
				}
			}
		}
		_, failed := holdfasttest.Race(t, callers, func(i int) error {
			for n := range rounds {
				key, to := name(i, n)
				want := stream.Any
				if i%3 == 1 {
					want = 100
				}
				answer, done, err := inOneCommand(t.Context(), hf, key, to, want)
				if err != nil || done != (i%3 == 2) || done && answer != fmt.Sprint(n) {
					return fmt.Errorf("caller %d, request %d: got response %s, done %t, error %w", i, n, answer, done, err)
				}
			}
			return nil
		})
		for _, err := range failed {
			t.Error(err)
		}
		for i := range callers {
			length := rounds
			if i%3 == 1 {
				length = 0
			}
			_, to := name(i, 0)
			wantLength(t, hf, to, length)
			for n := range rounds {
				key, _ := name(i, n)
				if length == 0 {
					wantRequest(t, hf, key, "")
				} else {
					wantRequest(t, hf, key, fmt.Sprint(n))
				}
			}
		}
	})
}

// TestACommandLeavesAKnownKeyAlone verifies that a request whose key exists in any state, even an
// expired one, is not done by a command.
func TestACommandLeavesAKnownKeyAlone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		notDone := func(when string) {
			t.Helper()
			if _, done, err := inOneCommand(t.Context(), hf, "k", "done", stream.Any); done || err != nil {
				t.Errorf("%s: done %t, error %v", when, done, err)
			}
		}
		q := mustTake(t, engine.Of(hf))
		notDone("held")
		holdfasttest.Advance(t, hf, time.Hour)
		notDone("held by a crashed holder")
		q = mustTake(t, engine.Of(hf))
		wantNil(t, leaseAt(q.Epoch).Finish(t.Context(), engine.Of(hf), 200, nil))
		notDone("done")
		holdfasttest.Advance(t, hf, 2*idempotency.TTL)
		notDone("expired")
		wantLength(t, hf, "done", 0)
		_, err := idempotency.PruneAll(t.Context(), engine.Of(hf))
		wantNil(t, err)
		if answer, done, err := inOneCommand(t.Context(), hf, "k", "done", stream.Any); !done || err != nil {
			t.Errorf("after the prune: got response %s, done %t, error %v", answer, done, err)
		}
		wantRequest(t, hf, "k", "0")
	})
}

// TestOnlyOneWriteInACommand verifies what a function of one command can do: it can read before and
// after its write, and everything else writes nothing.
func TestOnlyOneWriteInACommand(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		write := func(ctx context.Context, d store.Doer, to string) error {
			_, err := stream.Append(ctx, d, to, stream.Any, stream.Event{Name: "done"})
			return err
		}
		read := func(ctx context.Context, d store.Doer) int {
			all, err := holdfast.Collect(stream.Read(ctx, d, "done", 0))
			wantNil(t, err)
			return len(all)
		}
		failed := errors.New("failed")
		run := func(f func(context.Context, store.Doer) error) (bool, error) {
			return flightOn(hf).InCommand(t.Context(), func(ctx context.Context, d store.Doer) (int, []byte, error) {
				return 200, []byte(`1`), f(ctx, d)
			})
		}
		for name, f := range map[string]func(context.Context, store.Doer) error{
			"no write": func(context.Context, store.Doer) error { return nil },
			"two writes, and the error of the second is ignored": func(ctx context.Context, d store.Doer) error {
				_ = write(ctx, d, "done")
				_ = write(ctx, d, "other")
				return nil
			},
			"two writes": func(ctx context.Context, d store.Doer) error {
				return errors.Join(write(ctx, d, "done"), write(ctx, d, "other"))
			},
			"a lease": func(ctx context.Context, d store.Doer) error {
				_, err := leaseAt(1).Renew(ctx, d, time.Minute)
				return err
			},
			"fails after its write": func(ctx context.Context, d store.Doer) error { return errors.Join(write(ctx, d, "done"), failed) },
			"opens a transaction": func(ctx context.Context, d store.Doer) error {
				return store.Within(ctx, d, func(context.Context, *store.Tx) error { return nil })
			},
		} {
			if done, err := run(f); done || err != nil {
				t.Errorf("%s: done %t, error %v", name, done, err)
			}
		}
		func() {
			defer func() {
				if got := recover(); got != "no" {
					t.Errorf("recovered %v, want the panic of the function", got)
				}
			}()
			_, _ = run(func(ctx context.Context, d store.Doer) error { wantNil(t, write(ctx, d, "done")); panic("no") })
		}()
		done, err := flightOn(hf).InCommand(t.Context(), func(ctx context.Context, d store.Doer) (int, []byte, error) {
			return 99, nil, write(ctx, d, "done")
		})
		if done || err != nil {
			t.Errorf("an invalid status: done %t, error %v", done, err)
		}
		wantLength(t, hf, "done", 0)
		wantLength(t, hf, "other", 0)
		wantRequest(t, hf, "k", "")

		done, err = run(func(ctx context.Context, d store.Doer) error {
			if !store.Uncommitted(d) || read(ctx, d) != 0 {
				t.Error("it reads its write too early")
			}
			wantNil(t, write(ctx, d, "done"))
			if n := read(ctx, d); n != 1 {
				t.Errorf("read %d events after the write, want 1", n)
			}
			return nil
		})
		if !done || err != nil {
			t.Errorf("done %t, error %v", done, err)
		}
		wantRequest(t, hf, "k", "1")
	})
}

// TestACommandWhoseContextEnds verifies that a command that is cancelled before it begins writes
// nothing.
func TestACommandWhoseContextEnds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		wantNil(t, engine.Of(hf).Update(t.Context(), func(context.Context, *store.Tx) error { return nil }))
		ctx, cancel := context.WithCancel(t.Context())
		done, err := flightOn(hf).InCommand(ctx, func(ctx context.Context, d store.Doer) (int, []byte, error) {
			cancel()
			_, err := stream.Append(ctx, d, "done", stream.Any, stream.Event{Name: "done"})
			testkit.WantCode(t, err, fault.CodeOf(context.Canceled))
			return 200, nil, err
		})
		if done || err != nil {
			t.Errorf("done %t, error %v", done, err)
		}
		wantLength(t, hf, "done", 0)
		wantRequest(t, hf, "k", "")
	})
}

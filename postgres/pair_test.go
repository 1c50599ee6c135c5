package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// keyedCall appends an event under an idempotency key, in one command. The response is the version.
func keyedCall(ctx context.Context, hf *holdfast.Engine, key, to, name string) (answer string, done bool, err error) {
	f := idempotency.Flight{Lease: idempotency.Lease{Key: key}, Fingerprint: "cut-print", Engine: engine.Of(hf)}
	done, err = f.InCommand(ctx, func(ctx context.Context, d store.Doer) (int, []byte, error) {
		last, err := stream.Append(ctx, d, to, stream.Any, event(name))
		answer = fmt.Sprint(last)
		return 200, []byte(answer), err
	})
	return answer, done, err
}

// TestKeyedCallsThroughACutConnectionAgree verifies that of calls with an idempotency key through a
// proxy that cuts connections, the event and the response are stored together or not at all. The
// connection is cut at the statement of the work, or at that of the response, which commits, before
// or after the server has executed it: callers one by one, and sixteen that share transactions.
func TestKeyedCallsThroughACutConnectionAgree(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) { t.Parallel(); cutKeyedCalls(t, 1, testlevel.Pick(12, 150, 3000)) })
	t.Run("grouped", func(t *testing.T) { t.Parallel(); cutKeyedCalls(t, 16, testlevel.Pick(48, 320, 3200)) })
}

func cutKeyedCalls(t *testing.T, callers, calls int) {
	b, through := newBreaker(t, prepared(t))
	hf := openEngine(t, postgres.URL(through))
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for n := range calls / callers {
				if callers == 1 || rand.IntN(4) == 0 {
					b.arm([]string{"cut-event", "cut-print"}[rand.IntN(2)], rand.IntN(2) == 0)
				}
				key, to := fmt.Sprintf("cut-key-%d-%d", caller, n), fmt.Sprintf("s%d-%d", caller, n)
				answer, done, err := keyedCall(t.Context(), hf, key, to, "cut-event")
				checkKeyed(t, hf, key, to, answer, done, err)
			}
		})
	}
	group.Wait()
	t.Logf("%d connections were cut in %d calls", b.broken.Load(), calls)
	if int(b.broken.Load()) < calls/20 {
		t.Errorf("only %d connections were cut, too few for the test to mean anything", b.broken.Load())
	}
}

// checkKeyed checks that a call has its event and its response, or neither.
func checkKeyed(t *testing.T, hf *holdfast.Engine, key, to, answer string, done bool, err error) {
	q, failed := idempotency.Get(t.Context(), engine.Of(hf), key)
	if failed != nil {
		t.Errorf("%s: %v", key, failed)
		return
	}
	events, stored := len(wantGapless(t, hf, to)), 0
	if q.State == idempotency.Done {
		stored = 1
	}
	unknown := errors.Is(err, holdfast.ErrOutcomeUnknown)
	switch {
	case events != stored:
		t.Errorf("%s: %d events and request %+v", key, events, q)
	case err != nil && !unknown:
		t.Errorf("%s: %v", key, err)
	case !unknown && done != (stored == 1):
		t.Errorf("%s: done %t, but request is %+v", key, done, q)
	case stored == 1 && done && (string(q.Answer) != answer || answer != "0"):
		t.Errorf("%s: got response %s, stored is %s", key, answer, q.Answer)
	}
}

// TestACommandDoesNotWait verifies that a request whose key, or whose stream, is locked by a
// transaction that is still open is not done in a command, and that it delays no other that it might
// share a transaction with.
func TestACommandDoesNotWait(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(context.Context, *store.Tx) error{
		"for a key": func(ctx context.Context, tx *store.Tx) error {
			_, _, err := idempotency.Take(ctx, tx, idempotency.TakeArgs{Key: "k0", Fingerprint: "f", Holder: "other"})
			return err
		},
		"for a stream": func(ctx context.Context, tx *store.Tx) error {
			_, err := stream.Append(ctx, tx, "s0", stream.Any, event("other"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := prepared(t)
			hf := openEngine(t, postgres.URL(url))
			mustAppend(t, hf, "s0", stream.None)
			user, err := connect(t, url).Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tx, err := postgres.Join(hf, user)
			if err != nil {
				t.Fatal(err)
			}
			if err := lock(t.Context(), store.TxOf(tx)); err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for i := range 16 {
				group.Go(func() {
					for n := range 8 {
						key := fmt.Sprint("k", i, "-", n)
						if i == 0 {
							key = "k0"
						}
						_, done, err := keyedCall(t.Context(), hf, key, fmt.Sprint("s", i), "event")
						if err != nil || done != (i > 0) {
							t.Errorf("%s: done %t, error %v", key, done, err)
						}
					}
				})
			}
			group.Wait() // while it is locked
			if err := user.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if names := wantGapless(t, hf, "s0"); len(names) != 1 {
				t.Errorf("got events %v", names)
			}
			if _, done, err := keyedCall(t.Context(), hf, "k0", "s0", "event"); err != nil || !done {
				t.Errorf("done %t, error %v", done, err)
			}
		})
	}
}

// TestAKeyThatIsStoredBehindTheProbe verifies that a request whose key becomes known after its probe,
// which the locks prevent but for a moment, is not done, and that others in its transaction are not
// half done.
func TestAKeyThatIsStoredBehindTheProbe(t *testing.T) {
	t.Parallel()
	url := prepared(t)
	hf := openEngine(t, postgres.URL(url))
	mustAppend(t, hf, "s", stream.None) // the workspace exists
	raw := connect(t, url)
	f := idempotency.Flight{Lease: idempotency.Lease{Key: "k"}, Fingerprint: "mine", Engine: engine.Of(hf)}
	done, err := f.InCommand(t.Context(), func(ctx context.Context, d store.Doer) (int, []byte, error) {
		_, err := stream.Append(ctx, d, "s", stream.Any, event("mine"))
		execute(t, raw, `INSERT INTO holdfast.request (shard, workspace, key, fingerprint, state, epoch, status, answer, created_at, expires_at)
			SELECT shard, name, 'k', 'theirs', 'done', 1, 200, '1', now(), now() + interval '1 hour' FROM holdfast.workspace`)
		return 200, []byte(`0`), err
	})
	if done || err != nil {
		t.Errorf("done %t, error %v", done, err)
	}
	if names := wantGapless(t, hf, "s"); len(names) != 1 {
		t.Errorf("got events %v", names)
	}
	if q, err := idempotency.Get(t.Context(), engine.Of(hf), "k"); err != nil || q.Fingerprint != "theirs" {
		t.Errorf("the request is %+v, error %v", q, err)
	}
}

// TestACommandWhoseCommitIsLost verifies that a request whose COMMIT does not arrive is not done, nor
// reported as done, if a competitor that waited for its locks changes the stream or takes the key
// before the outcome is resolved: the handler has run, but its result no longer holds. If the COMMIT
// arrives and its response is lost, the request is done.
func TestACommandWhoseCommitIsLost(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{false, true} {
		for _, sameKey := range []bool{false, true} {
			t.Run(fmt.Sprintf("arrives %t, same key %t", arrives, sameKey), func(t *testing.T) {
				t.Parallel()
				url := prepared(t)
				b, through := newBreaker(t, url)
				hf, other := openEngine(t, postgres.URL(through)), openEngine(t, postgres.URL(url))
				mustAppend(t, hf, "s", stream.None)
				if _, done, err := keyedCall(t.Context(), hf, "first", "first", "first"); err != nil || !done { // everything is prepared
					t.Fatal(done, err)
				}
				compete := func() error {
					_, err := stream.Append(t.Context(), other, "s", stream.Any, event("theirs"))
					return err
				}
				if sameKey {
					compete = func() error {
						return engine.Of(other).Update(t.Context(), func(ctx context.Context, tx *store.Tx) error {
							q, mine, err := idempotency.Take(ctx, tx, idempotency.TakeArgs{Key: "k", Fingerprint: "theirs", Holder: "other"})
							if err != nil || !mine {
								return err
							}
							return idempotency.Lease{Key: "k", Epoch: q.Epoch}.Finish(ctx, tx, 200, nil)
						})
					}
				}
				competitor, watcher := make(chan error, 1), connect(t, url)
				f := idempotency.Flight{Lease: idempotency.Lease{Key: "k"}, Fingerprint: "cut-mine", Engine: engine.Of(hf)}
				done, err := f.InCommand(t.Context(), func(ctx context.Context, d store.Doer) (int, []byte, error) {
					last, err := stream.Append(ctx, d, "s", 0, event("mine"))
					if err == nil {
						b.arm("cut-mine", arrives)
						go func() { competitor <- compete() }()
						testkit.Eventually(t, "the competitor waits", func() bool { return waiting(t, watcher) > 0 })
					}
					return 200, fmt.Append(nil, last), err
				})
				if err := <-competitor; err != nil {
					t.Error(err)
				}
				q, failed := idempotency.Get(t.Context(), engine.Of(other), "k")
				if err != nil || failed != nil || done != arrives || arrives != (q.Fingerprint == "cut-mine") {
					t.Errorf("done %t, error %v; the request is %+v, error %v", done, err, q, failed)
				}
				if mine := slices.Contains(wantGapless(t, other, "s"), "mine"); mine != arrives {
					t.Errorf("the event is written: %t, want %t", mine, arrives)
				}
			})
		}
	}
}

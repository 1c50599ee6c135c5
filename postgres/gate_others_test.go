package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/claimtoken"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

// scopeScene is a scope that exists, does not exist, or was deleted.
func scopeScene(to ...string) scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		s := newStage(t, ctx, e)
		all := scopeCalls()
		for _, name := range to {
			s.must(all[name])
		}
		return all
	}
}

func scopeCalls() map[string]call {
	zero, none := int64(0), events.None
	put := func(want *int64, ttl time.Duration) call {
		return func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return scopestore.Put(ctx, engine.Of(e), scopestore.PutArgs{Kind: "k", ID: "s", ExpectVersion: want, State: []byte(`{"n":1}`), TTL: ttl})
		}
	}
	edit := func(want *int64, make func() (scopestore.Op, error)) call {
		return func(ctx context.Context, e *holdfast.Engine) (any, error) {
			op, err := make()
			if err != nil {
				return nil, err
			}
			return scopestore.Edit(ctx, engine.Of(e), scopestore.EditArgs{Kind: "k", ID: "s", Op: op, ExpectVersion: want})
		}
	}
	return map[string]call{
		"put":         put(nil, 0),
		"put new":     put(&none, 0),
		"put first":   put(&zero, 0),
		"put an hour": put(nil, time.Hour),
		"inc":         edit(nil, func() (scopestore.Op, error) { return scopestore.Inc("n", 1) }),
		"inc first":   edit(&zero, func() (scopestore.Op, error) { return scopestore.Inc("n", 1) }),
		"push":        edit(nil, func() (scopestore.Op, error) { return scopestore.Push("l", []byte(`1`)) }),
		"patch":       edit(nil, func() (scopestore.Op, error) { return scopestore.Patch([]byte(`{"p":1}`)) }),
		"set":         edit(nil, func() (scopestore.Op, error) { return scopestore.Set("m", "a", []byte(`{"x":1}`)) }),
		"unset":       edit(nil, func() (scopestore.Op, error) { return scopestore.Unset("m", "a") }),
		"delete": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return scopestore.Delete(ctx, engine.Of(e), scopestore.DeleteArgs{Kind: "k", ID: "s"})
		},
		"delete first": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return scopestore.Delete(ctx, engine.Of(e), scopestore.DeleteArgs{Kind: "k", ID: "s", ExpectVersion: &zero})
		},
		"sweep": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return scopestore.SweepAll(ctx, engine.Of(e))
		},
	}
}

// batchStage is a batch that a wallet pays for.
type batchStage struct {
	stage
	taken []batchengine.Taken
	swept []batchengine.Swept
}

func batchScene(to func(*batchStage)) scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		s := &batchStage{stage: newStage(t, ctx, e)}
		for _, name := range []string{"put a wallet", "post", "create"} {
			s.must(s.calls()[name])
		}
		to(s)
		return s.calls()
	}
}

func (s *batchStage) ask() batchengine.Ask {
	return batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Lease: leaseTime, Limit: 10}
}

func (s *batchStage) sweep() batchengine.Sweep {
	return batchengine.Sweep{At: s.at, Lease: leaseTime, Limit: 10, Undoes: []string{"h"}, Artifacts: true}
}

func (s *batchStage) held() {
	s.t.Helper()
	var err error
	if s.taken, err = batchengine.Take(s.ctx, engine.Of(s.e), s.ask()); err != nil || len(s.taken) == 0 {
		s.t.Fatal(len(s.taken), err)
	}
}

// poor leaves the wallet without the cost of the next item, with nothing else to do.
func (s *batchStage) poor() {
	s.t.Helper()
	s.held()
	for _, one := range s.taken {
		if _, err := batchengine.Settle(s.ctx, engine.Of(s.e), one, []byte(`1`)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// cancelled finishes one item, takes another, and cancels the batch.
func (s *batchStage) cancelled() {
	s.t.Helper()
	s.held()
	s.must(s.calls()["settle"])
	s.must(s.calls()["cancel"])
}

// over cancels the batch, of which no item was taken, so that it is past its retention.
func (s *batchStage) over() {
	s.t.Helper()
	s.must(s.calls()["cancel"])
}

func (s *batchStage) cleaning() {
	s.t.Helper()
	s.cancelled()
	s.must(s.calls()["look"])
	var err error
	if s.swept, err = batchengine.Dirty(s.ctx, engine.Of(s.e), s.sweep()); err != nil || len(s.swept) == 0 {
		s.t.Fatal(len(s.swept), err)
	}
}

func (s *batchStage) calls() map[string]call {
	all := map[string]call{
		"put a wallet": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return wallets.Put(ctx, engine.Of(e), "w", false)
		},
		"post": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return wallets.Post(ctx, engine.Of(e), wallets.PostArgs{Wallet: "w", Delta: 5, Reason: "credit", Reference: "one"})
		},
		"post more": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return wallets.Post(ctx, engine.Of(e), wallets.PostArgs{Wallet: "w", Delta: 7, Reason: "credit", Reference: "two"})
		},
		"create": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Create(ctx, engine.Of(e), batchengine.New{ID: "b", Wallet: "w", Handler: "h", MaxConcurrency: 2, Attempts: 2, MaxCrashes: 2, Timeout: 24 * time.Hour, Retention: time.Millisecond, Undo: true, Open: true,
				Items: []batchengine.Work{{Key: "1", Cost: 2}, {Key: "2", Cost: 2}, {Key: "3", Cost: 2}}})
		},
		"add": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Add(ctx, engine.Of(e), "b", []batchengine.Work{{Key: "3", Cost: 2}, {Key: "4", Cost: 1}})
		},
		"seal": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Seal(ctx, engine.Of(e), "b", "")
		},
		"finalize": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Finalize(ctx, engine.Of(e), "b", nil, "")
		},
		"cancel": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			b, ok, err := batchengine.Cancel(ctx, engine.Of(e), "b", "")
			return []any{b, ok}, err
		},
		"close": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, batchengine.Close(ctx, engine.Of(e), "b")
		},
		"take": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			all, err := batchengine.Take(ctx, engine.Of(e), s.ask())
			return len(all), err
		},
		"expire": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Expire(ctx, engine.Of(e), s.at)
		},
		"look": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Advance(ctx, engine.Of(e), s.at)
		},
		"dirty": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			all, err := batchengine.Dirty(ctx, engine.Of(e), s.sweep())
			return len(all), err
		},
		"resume": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, batchengine.Resume(ctx, engine.Of(e), "w")
		},
		"prune": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			n, _, err := new(batchengine.Pruner).Sweep(ctx, engine.Of(e), s.at, 100)
			return n, err
		},
		"resume all": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.ResumeAll(ctx, engine.Of(e), s.at)
		},
	}
	if len(s.taken) > 0 {
		one := s.taken[0]
		other := s.taken[len(s.taken)-1]
		all["release the other"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, batchengine.Release(ctx, engine.Of(e), other, 0)
		}
		all["settle"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Settle(ctx, engine.Of(e), one, []byte(`1`))
		}
		all["settle all"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.SettleAll(ctx, engine.Of(e), []batchengine.Finished{{Taken: other, Output: []byte(`2`)}, {Taken: one, Output: []byte(`1`)}})
		}
		all["fail"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Fail(ctx, engine.Of(e), one, "no", time.Second, false)
		}
		all["fail for good"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Fail(ctx, engine.Of(e), one, "no", 0, true)
		}
		all["release"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, batchengine.Release(ctx, engine.Of(e), one, 0)
		}
		all["renew"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return batchengine.Renew(ctx, engine.Of(e), one, 3*leaseTime)
		}
	}
	if len(s.swept) > 0 {
		one := s.swept[0]
		all["keep"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			_, err := batchengine.RenewCleanup(ctx, engine.Of(e), one, 3*leaseTime)
			return nil, err
		}
		all["cleaned"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, batchengine.Cleaned(ctx, engine.Of(e), s.swept...)
		}
		all["unclean"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, batchengine.Unclean(ctx, engine.Of(e), one, errors.New("no"))
		}
	}
	return all
}

// inCommand is a request whose work is one command: it appends an event at the current version. It is
// served as by the HTTP API, in a command or else in a transaction.
func inCommand(ctx context.Context, e *holdfast.Engine) (answer any, err error) {
	serve := func(ctx context.Context, d store.Doer) (int, []byte, error) {
		last, err := events.Append(ctx, d, events.AppendArgs{Stream: "s", Events: []events.Event{{Name: "n"}}})
		answer = last
		return 200, fmt.Append(nil, last), err
	}
	f := idempotency.Flight{Lease: idempotency.Lease{Key: "k"}, Fingerprint: "f", LeaseTime: 1000 * time.Hour, Engine: engine.Of(e)} // the lease must not expire inside its transaction
	if done, err := f.InCommand(ctx, serve); done || err != nil {
		return answer, err
	}
	err = engine.Of(e).Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		q, mine, err := f.Take(ctx, tx)
		if err != nil || !mine {
			answer = []any{string(q.State), string(q.Answer)}
			return err
		}
		status, body, err := serve(ctx, tx)
		if err != nil {
			return err
		}
		return f.Finish(ctx, tx, status, body)
	})
	return answer, err
}

// requestScene is an idempotency key, taken or not.
func requestScene(taken bool) scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		take := func(key, fingerprint string) call {
			return func(ctx context.Context, e *holdfast.Engine) (any, error) {
				q, mine, err := idempotency.Take(ctx, engine.Of(e), idempotency.TakeArgs{Key: key, Fingerprint: fingerprint, Holder: "me", Lease: leaseTime})
				return []any{q, mine}, err
			}
		}
		all := map[string]call{"take": take("k", "f"), "take otherwise": take("k", "g"), "in a command": inCommand,
			"prune": func(ctx context.Context, e *holdfast.Engine) (any, error) {
				return idempotency.PruneAll(ctx, engine.Of(e))
			}}
		s := newStage(t, ctx, e)
		if !taken {
			return all
		}
		s.must(all["take"])
		const epoch = 1
		all["finish"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, idempotency.Lease{Key: "k", Epoch: epoch}.Finish(ctx, engine.Of(e), 200, []byte(`1`))
		}
		all["answer"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, idempotency.Lease{Key: "k", Epoch: epoch}.Answer(ctx, engine.Of(e), 200, []byte(`1`))
		}
		all["point"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, idempotency.Lease{Key: "k", Epoch: epoch}.Point(ctx, engine.Of(e), "op", "sub")
		}
		all["repoint"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return idempotency.Repoint(ctx, engine.Of(e), idempotency.RepointArgs{Key: "k", Fingerprint: "f", From: "op", Operation: "op2", Subject: "sub"})
		}
		all["free"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, idempotency.Lease{Key: "k", Epoch: epoch}.Free(ctx, engine.Of(e))
		}
		all["renew"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return idempotency.Lease{Key: "k", Epoch: epoch}.Renew(ctx, engine.Of(e), 3*leaseTime)
		}
		all["commit"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				return idempotency.Lease{Key: "k", Epoch: epoch}.Commit(ctx, store.TxOf(tx))
			})
		}
		return all
	}
}

// adminScene are the things that administrators set up: keys, handlers, tokens.
func adminScene(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
	s := newStage(t, ctx, e)
	key, _, err := keys.Create(ctx, engine.Of(e), keys.CreateArgs{Name: "k", Role: keys.Admin, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	var session keys.Session
	put := func(name string) call {
		return func(ctx context.Context, e *holdfast.Engine) (any, error) {
			var fresh bool
			err := e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) (err error) {
				fresh, err = remotehandler.Put(ctx, store.TxOf(tx), remotehandler.Handler{Name: name, Kind: "worker", OnUnknown: "hold"})
				return err
			})
			return fresh, err
		}
	}
	all := map[string]call{
		"revoke": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return keys.Revoke(ctx, engine.Of(e), key.ID, "ann")
		},
		"rotate": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			_, _, err := keys.Rotate(ctx, engine.Of(e), key.ID, time.Minute, "ann")
			return nil, err
		},
		"create": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			_, _, err := keys.Create(ctx, engine.Of(e), keys.CreateArgs{Name: "l", Role: keys.Read, By: "ann"})
			return nil, err
		},
		"create a session": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			_, _, err := keys.CreateSession(ctx, engine.Of(e), key, "ann")
			return nil, err
		},
		"delete a session": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, keys.DeleteSession(ctx, engine.Of(e), session, "ann")
		},
		"prune sessions": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return keys.PruneSessions(ctx, engine.Of(e))
		},
		"put":         put("h"),
		"put another": put("i"),
		"delete": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			var gone bool
			err := e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) (err error) {
				gone, err = remotehandler.Delete(ctx, store.TxOf(tx), "h")
				return err
			})
			return gone, err
		},
		"put a token": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, claimtoken.Put(ctx, engine.Of(e), "t", claimtoken.Claim{Lifecycle: "l", Entity: "e", Operation: "o", Epoch: 1, Requester: "r"})
		},
		"prune tokens": func(ctx context.Context, e *holdfast.Engine) (any, error) { return claimtoken.Prune(ctx, engine.Of(e)) },
		"decide the retention": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return retention.ByDefault(ctx, engine.Of(e))
		},
	}
	s.must(all["put"])
	s.must(all["put a token"])
	if session, _, err = keys.CreateSession(ctx, engine.Of(e), key, "ann"); err != nil {
		t.Fatal(err)
	}
	return all
}

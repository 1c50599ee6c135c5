package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/snapshots"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/internal/subjectkey"
	"github.com/holdfast-go/holdfast/postgres"
)

// streamStage is a stream with a reaction on it.
type streamStage struct {
	stage
	leases []*reactions.Lease
}

func streamScene(to func(*streamStage)) scene {
	return func(t *testing.T, ctx context.Context, e *holdfast.Engine) map[string]call {
		s := &streamStage{stage: newStage(t, ctx, e)}
		s.must(s.append("a", nil))
		s.must(s.append("a", nil))
		if err := store.Shift(ctx, engine.Of(e), time.Hour); err != nil {
			t.Fatal(err)
		}
		to(s)
		s.must(func(ctx context.Context, e *holdfast.Engine) (any, error) { // to make it prunable
			return nil, e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := postgres.Raw(tx).Exec(ctx, `UPDATE holdfast.history SET at = at - interval '1 day'`)
				return err
			})
		})
		return s.calls()
	}
}

func (s *streamStage) append(stream string, want *int64) call {
	return func(ctx context.Context, e *holdfast.Engine) (any, error) {
		return events.Append(ctx, engine.Of(e), events.AppendArgs{Stream: stream, ExpectVersion: want, Events: []events.Event{{Name: "x", Data: []byte(`{}`)}}})
	}
}

func reaction(streams string) reactions.Definition {
	return reactions.Definition{Name: "r", Streams: streams, Options: reactions.DefaultOptions()}
}

// enlist registers the reaction, which then waits for the transactions in flight.
func (s *streamStage) enlist(streams string) call {
	return func(ctx context.Context, e *holdfast.Engine) (any, error) {
		return nil, e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			return reactions.Enlist(ctx, store.TxOf(tx), reaction(streams))
		})
	}
}

// finish continues until there is nothing to wait for.
func (s *streamStage) finish(ctx context.Context, e *holdfast.Engine) (any, error) {
	for range 4 {
		if done, err := reactions.Finish(ctx, engine.Of(e), s.at, "r"); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// registering makes a reaction wait for an append in flight that does not see it.
func (s *streamStage) registering() {
	s.t.Helper()
	s.must(s.enlist("^[ab]$"))
	s.must(func(ctx context.Context, e *holdfast.Engine) (any, error) {
		return nil, e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := postgres.Raw(tx).Exec(ctx, `DELETE FROM holdfast.follow`)
			return err
		})
	})
}

func (s *streamStage) live() {
	s.t.Helper()
	s.must(s.enlist("^[ab]$"))
	s.must(s.finish)
	s.must(s.append("a", nil))
	s.must(s.append("b", nil))
}

func (s *streamStage) take(ctx context.Context, e *holdfast.Engine) ([]*reactions.Lease, error) {
	return reactions.Take(ctx, engine.Of(e), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: "r", Lease: leaseTime}}, Holder: "me", Limit: 10, Crashed: 10})
}

// held makes the reaction take what is due.
func (s *streamStage) held() {
	s.t.Helper()
	s.live()
	s.must(s.calls()["gather"])
	var err error
	if s.leases, err = s.take(s.ctx, s.e); err != nil || len(s.leases) != 2 {
		s.t.Fatal(len(s.leases), err)
	}
}

func (s *streamStage) blocked() { s.t.Helper(); s.held(); s.must(s.calls()["block"]) }
func (s *streamStage) fed() {
	s.t.Helper()
	s.must(func(ctx context.Context, e *holdfast.Engine) (any, error) { return nil, feed.Open(ctx, engine.Of(e)) })
	s.must(s.append("a", nil))
}

func (s *streamStage) calls() map[string]call {
	two := int64(2)
	all := map[string]call{
		"append":         s.append("a", nil),
		"append behind":  s.append("a", &two),
		"append another": s.append("n", nil),
		"append two": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				for _, name := range []string{"a", "n"} {
					if _, err := events.Append(ctx, store.DoerOf(tx), events.AppendArgs{Stream: name, Events: []events.Event{{Name: "x", Data: []byte(`{}`)}}}); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"close with an export": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return streamclose.Close(ctx, engine.Of(e), streamclose.Args{Stream: "a", Mode: streamclose.Tombstone, Lease: leaseTime, Export: func(context.Context, int64, int64) error { return nil }})
		},
		"close with a failing export": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return streamclose.Close(ctx, engine.Of(e), streamclose.Args{Stream: "a", Mode: streamclose.Tombstone, Lease: leaseTime, Export: func(context.Context, int64, int64) error { return errors.New("no") }})
		},
		"truncate": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, streamclose.Truncate(ctx, engine.Of(e), "a", 1, nil)
		},
		"sweep": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return streamclose.SweepAll(ctx, engine.Of(e))
		},
		"end": func(ctx context.Context, e *holdfast.Engine) (any, error) { // for good
			if _, err := streamclose.Close(ctx, engine.Of(e), streamclose.Args{Stream: "a", Mode: streamclose.Tombstone}); err != nil {
				return nil, err
			}
			return streamclose.SweepAll(ctx, engine.Of(e))
		},
		"snapshot": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return snapshots.Put(ctx, engine.Of(e), snapshots.Snapshot{Stream: "a", Kind: "k", Version: 1, Data: []byte(`1`)})
		},
		"make a subject": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return subjectkey.Make(ctx, engine.Of(e), "s", subjectkey.Key("12345678"))
		},
		"forget a subject": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return subjectkey.Forget(ctx, engine.Of(e), "s")
		},
		"prune histories": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			p := retention.Pruner{Retention: time.Hour}
			n, _, err := p.Sweep(ctx, engine.Of(e), 2000)
			return n, err
		},
		"last": func(ctx context.Context, e *holdfast.Engine) (any, error) { // what the registration waited for is over
			for done := any(false); done == false; { // a vacuum may be in flight too
				var err error
				if done, err = s.finish(ctx, e); err != nil {
					return nil, err
				}
			}
			return reactions.CollectDue(ctx, engine.Of(e), s.at, []string{"r"})
		},
		"enlist":        s.enlist("^[ab]$"),
		"enlist others": s.enlist("^n$"),
		"finish": func(ctx context.Context, e *holdfast.Engine) (any, error) { // now or later
			_, err := s.finish(ctx, e)
			return nil, err
		},
		"remove": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return reactions.Remove(ctx, engine.Of(e), "r")
		},
		"dismiss": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return nil, e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := reactions.Dismiss(ctx, store.TxOf(tx), "r")
				return err
			})
		},
		"gather": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return reactions.CollectDue(ctx, engine.Of(e), s.at, []string{"r"})
		},
		"take": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			all, err := s.take(ctx, e)
			return len(all), err
		},
		"free": func(ctx context.Context, e *holdfast.Engine) (any, error) { // as many as there are
			_, err := reactions.SweepAll(ctx, engine.Of(e), func([]string) {})
			return nil, err
		},
		"rebuild": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return reactions.Rebuild(ctx, engine.Of(e), "r", func(context.Context, *store.Tx) error { return nil })
		},
		"sequence": func(ctx context.Context, e *holdfast.Engine) (any, error) {
			return feed.Step(ctx, engine.Of(e), s.at.Shard, feed.DefaultBatch)
		},
	}
	for _, mode := range []streamclose.Mode{streamclose.Archive, streamclose.Tombstone, streamclose.Restart} {
		all["close "+string(mode)] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			a := streamclose.Args{Stream: "a", Mode: mode}
			if mode == streamclose.Restart {
				a.Snapshot = []byte(`{}`)
			}
			return streamclose.Close(ctx, engine.Of(e), a)
		}
	}
	for _, how := range []string{"unblock", "skip", "reset"} {
		all[how] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			touched, held, err := reactions.Repair(ctx, engine.Of(e), how, "", reactions.Filter{Reaction: "r", Streams: []string{"a"}})
			return []int{len(touched), len(held)}, err
		}
	}
	if len(s.leases) == 0 {
		return all
	}
	record := func(f func(*reactions.Lease) reactions.End) call {
		return func(ctx context.Context, e *holdfast.Engine) (any, error) {
			var ends []reactions.End
			for _, l := range s.leases {
				ends = append(ends, f(l))
			}
			return reactions.Ack(ctx, engine.Of(e), ends)
		}
	}
	all["ack"] = record(func(l *reactions.Lease) reactions.End { return reactions.End{Lease: l, Done: l.Due} })
	all["ack some"] = record(func(l *reactions.Lease) reactions.End {
		return reactions.End{Lease: l, Done: 0, Retain: true, Extend: leaseTime}
	})
	all["fail"] = record(func(l *reactions.Lease) reactions.End {
		return reactions.End{Lease: l, Done: l.Watermark, Error: "no", Failing: l.Due}
	})
	all["give back"] = record(func(l *reactions.Lease) reactions.End {
		return reactions.End{Lease: l, Done: l.Watermark, Unfinished: true}
	})
	all["ack one"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
		return reactions.AckOne(ctx, engine.Of(e), reactions.End{Lease: s.leases[0], Done: s.leases[0].Due, Now: true})
	}
	all["renew"] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
		return reactions.Renew(ctx, engine.Of(e), s.leases, func(*reactions.Lease) time.Duration { return 3 * leaseTime })
	}
	for name, block := range map[string]bool{"block": true, "pass over": false} {
		all[name] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
			for _, l := range s.leases {
				if err := reactions.Block(ctx, engine.Of(e), l, l.Watermark, l.Due, "no", 1, block); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
	}
	return all
}

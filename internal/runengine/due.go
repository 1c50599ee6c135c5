package runengine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

type readyArgs struct {
	handlers, kind string
	limit          int
}

var (
	readyVerb = store.NewVerb(store.Decl{Name: "runs.list_ready", Lane: store.Read}, nil,
		func(a readyArgs, args *store.Args) {
			args.Text("handlers", a.handlers)
			args.Int("limit", int64(a.limit))
			args.Text("kind", a.kind)
		}, scanClaimedStep)
	expiredVerb = store.NewVerb(store.Decl{Name: "runs.list_expired", Lane: store.Read}, nil,
		func(limit int, args *store.Args) { args.Int("limit", int64(limit)) }, scanClaimedStep)
	listPrunableVerb = store.NewVerb(store.Decl{Name: "runs.list_prunable", Lane: store.Read}, nil,
		func(limit int, args *store.Args) { args.Int("limit", int64(limit)) },
		func(all *[][2]string, r store.Row) error {
			var one [2]string
			err := r.Scan(&one[0], &one[1])
			*all = append(*all, one)
			return err
		})
	deleteVerb = store.VerbOf[deleteArgs](store.Decl{Name: "runs.delete", Idempotent: true},
		func(a deleteArgs) []string { return []string{row(a.run)} },
		func(gone *bool, r store.Row) error {
			var one int64
			*gone = r.Applied()
			return r.Scan(&one)
		})
)

type deleteArgs struct {
	run     string        `arg:"run"`
	expired string        `arg:"expired"`
	keep    time.Duration `arg:"keep"`
}

// Ask requests due steps of a set of handlers: in one workspace or, with All, in every workspace of
// a shard.
type Ask struct {
	// Handlers are the handlers whose steps are requested, with their options.
	Handlers map[string]Handled
	// Kind is the kind that the handlers must be declared as: "worker" or "http". The handlers
	// of a program are not declared.
	Kind   string
	Holder string
	Lease  time.Duration
	Limit  int
	// Busy are runs that a transaction skips: an earlier attempt could not lock them and added them here.
	Busy  map[string]bool
	All   bool
	Shard int16
}

func (a Ask) check() error {
	if len(a.Handlers) == 0 || a.Limit < 1 || a.Limit > 1000 {
		return fault.New(fault.Validation, "at least one handler and a limit between 1 and 1000 are required (handlers: %d, limit: %d)", len(a.Handlers), a.Limit)
	}
	if a.Lease < time.Millisecond || a.Lease > 24*time.Hour {
		return fault.New(fault.Validation, "lease must be between 1ms and 24h, got %s", a.Lease)
	}
	return strictjson.Text("holder", a.Holder, events.MaxName)
}

// Ready returns due steps, with their runs.
func Ready(ctx context.Context, d store.Doer, at store.Partition, handlers []string, kind string, limit int) ([]ClaimedStep, error) {
	names, err := json.Marshal(handlers)
	if err != nil {
		return nil, err
	}
	all, err := readyVerb.DoAt(ctx, d, at, readyArgs{string(names), kind, limit})
	for i := range all {
		all[i].Shard = at.Shard
	}
	return all, err
}

// turns lists the handlers and workspaces that have due steps.
var turns = lease.NewTurns("runs.list_turns")

// Finder finds due steps in all workspaces of a shard. Workspaces take turns, and so do the handlers in each. It is not safe
// for concurrent use.
type Finder struct {
	Order    *lease.Order
	Capacity *lease.Capacity // if set, shares without capacity are skipped
	rounds   map[int16]*lease.Round
}

// If more steps are due than one poll reads, it polls fewTurns workspaces, for at least leastOfEach steps in each.
const fewTurns, leastOfEach = 32, 2

// Find returns about limit due steps of a set of handlers: those that have waited longest or, if there are more, some of each
// workspace and handler, ordered so that every workspace has one before any has two. more reports whether to poll again.
func (f *Finder) Find(ctx context.Context, d store.Doer, at store.Partition, handlers []string, kind string, limit int) (all []ClaimedStep, more bool, err error) {
	all, err = Ready(ctx, d, at, handlers, kind, limit)
	if err != nil {
		return nil, false, err
	}
	// Many nodes poll for the same steps concurrently: each starts at a different one.
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if at.Workspace == "" && len(all) >= limit && (!store.SingleWorkspace(d) || f.Capacity != nil && f.Capacity.Handlers()) {
		all, more, err = f.each(ctx, d, at.Shard, wanted{handlers, kind, limit}, all)
	}
	lease.InTurn(f.Order, all, func(l ClaimedStep) string { return l.Run.Workspace })
	return all, more, err
}

// wanted selects the steps to find.
type wanted struct {
	handlers []string
	kind     string
	limit    int
}

// each polls each workspace whose turn it is; all are the steps that a poll of all workspaces found.
func (f *Finder) each(ctx context.Context, d store.Doer, shard int16, w wanted, all []ClaimedStep) (_ []ClaimedStep, more bool, err error) {
	if f.rounds == nil {
		f.rounds = make(map[int16]*lease.Round)
	}
	if f.rounds[shard] == nil {
		f.rounds[shard] = &lease.Round{Kind: w.kind}
	}
	var shut []string // workspaces that have used up their capacity
	if f.Capacity != nil {
		shut = f.Capacity.ShutWorkspaces()
	}
	due, err := f.rounds[shard].Next(ctx, d, turns, shard, w.handlers, shut)
	if err != nil {
		return nil, false, err
	}
	more = !f.rounds[shard].Whole()
	if len(due) == 1 && len(shut) == 0 && !more { // all belong to one workspace
		return all, false, nil
	}
	due = slices.DeleteFunc(due, func(t lease.Turn) bool {
		return f.Capacity != nil && f.Capacity.Full(lease.Share{Workspace: t.Workspace, Handler: t.Name})
	})
	lease.InTurn(f.Order, due, func(t lease.Turn) string { return t.Workspace })
	few := make(map[string]bool)
	for _, t := range due {
		if len(few) < fewTurns {
			few[t.Workspace] = true
		}
	}
	all = nil
	for _, t := range due {
		if !few[t.Workspace] {
			more = true
			continue
		}
		some, err := Ready(ctx, d, store.Partition{Shard: shard, Workspace: t.Workspace}, []string{t.Name}, w.kind, max(w.limit/len(due), leastOfEach))
		if err != nil {
			return nil, false, err
		}
		if len(some) == 0 { // let others go first in the next poll
			f.Order.Served(t.Workspace)
		}
		all = append(all, some...)
	}
	return all, more, nil
}

// TakeDue takes up to a.Limit due steps for a remote holder.
func (k *Executor) TakeDue(ctx context.Context, d store.Doer, a Ask) (taken []ClaimedStep, err error) {
	if a.Lease == 0 {
		a.Lease = lease.DefaultDuration
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	at := store.Partition{Shard: a.Shard}
	if !a.All {
		if at, err = d.Partition(ctx, store.Read); err != nil {
			return nil, err
		}
	}
	var names []string
	for name := range a.Handlers {
		names = append(names, name)
	}
	ready, err := Ready(ctx, d, at, names, a.Kind, min(2*a.Limit, 1000))
	if err != nil {
		return nil, err
	}
	// Many nodes poll for the same steps concurrently: each starts at a different one.
	rand.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
	_, inTx := d.(*store.Tx)
	if inTx { // in a transaction, where all stay locked until the end: in one order
		slices.SortFunc(ready, func(a, b ClaimedStep) int { return strings.Compare(a.Run.ID, b.Run.ID) })
	}
	var failed error
	for i := range ready {
		if len(taken) >= a.Limit {
			break
		}
		if a.Busy[ready[i].Run.ID] {
			continue
		}
		l, ok, err := k.Take(ctx, d, &ready[i], a.Handlers[ready[i].Step.Handler], Taker{a.Holder, a.Lease, true})
		if inTx && fault.IsRetryable(err) { // the transaction has failed
			if a.Busy != nil {
				a.Busy[ready[i].Run.ID] = true
			}
			return nil, err
		}
		failed = errors.Join(failed, err) // a step that cannot be taken must not block the others
		if ok {
			taken = append(taken, l)
		}
	}
	if len(taken) > 0 { // they are leased: the caller must receive them
		return taken, nil
	}
	return nil, failed
}

// sweepLimit limits the rows that one sweep handles.
const sweepLimit = 500

// pruneParallel is how many runs are deleted at a time: together they are one statement and one commit.
const pruneParallel = 16

// Expire ends expired leases, each as a crash of its holder or a lost hand-out, and returns their number: in a
// workspace, or in all workspaces of a shard.
func (k *Executor) Expire(ctx context.Context, d store.Doer, at store.Partition) (freed int, err error) {
	all, err := expiredVerb.DoAt(ctx, d, at, sweepLimit)
	if err != nil {
		return 0, err
	}
	var failed error
	for i := range all {
		l := &all[i]
		l.Shard = at.Shard
		next, ended, err := k.once(ctx, d, l, Taker{}, (*planner).leaseExpired)
		if failed = errors.Join(failed, err); ended {
			freed++
			phase := "due"
			if next.Step.Uncertain {
				phase = "uncertain"
			}
			meter.Of(d).Expire(meter.Step, slog.String("workspace", l.Run.Workspace), slog.String("run", l.Run.ID), slog.String("step", l.Step.Name), slog.Int64("visit", l.Step.Visit),
				slog.String("operation", l.Operation()), slog.String("holder", l.Step.Holder), slog.Int64("epoch", l.Step.Epoch), slog.String("phase", phase), slog.String("status", next.Run.Status))
		}
	}
	return freed, failed
}

// Prune deletes up to limit runs whose retention has ended, in a workspace or in all workspaces of a shard. It returns
// their number, and whether there may be more. Their keys stay for KeyRetention.
func (k *Executor) Prune(ctx context.Context, d store.Doer, at store.Partition, limit int) (n int, more bool, err error) {
	all, err := listPrunableVerb.DoAt(ctx, d, at, limit)
	if err != nil {
		return 0, false, err
	}
	var deleted atomic.Int64
	for some := range slices.Chunk(all, pruneParallel) {
		var done sync.WaitGroup
		errs := make([]error, len(some))
		for i, one := range some {
			done.Go(func() {
				gone, err := deleteVerb.DoAt(ctx, d, store.Partition{Shard: at.Shard, Workspace: one[0]}, deleteArgs{one[1], expiredID(one[1]), k.KeyRetention})
				if errs[i] = err; gone {
					deleted.Add(1)
				}
			})
		}
		if done.Wait(); errors.Join(errs...) != nil {
			return int(deleted.Load()), false, errors.Join(errs...)
		}
	}
	return int(deleted.Load()), len(all) == limit && deleted.Load() > 0, nil
}

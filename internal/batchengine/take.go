package batchengine

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Taken is an item in somebody's hands.
type Taken struct {
	Shard             int16
	Workspace, Batch  string
	Handler, Key      string
	Input             []byte
	Failures, Crashes int64
	Timeout           time.Duration
	Artifacts         bool
	lease.Lease
}

// Attempt counts the tries, this one included.
func (t Taken) Attempt() int { return int(t.Failures + t.Crashes + 1) }

// Operation is the same for every try of an item.
func (t Taken) Operation() string { return Operation(t.Workspace, t.Batch, t.Key) }

// Operation is what an item is called to other systems: the same for every try of it.
func Operation(workspace, batch, key string) string { return lease.ID("itm_", workspace, batch, key) }

// taskID begins the id of an item's task.
const taskID = "bit_"

// TaskID names the item in somebody's hands to that somebody. How often it has failed
// stands in it, so that the pause after the next time is known.
func (t Taken) TaskID() string {
	return lease.ID(taskID, t.Batch, t.Key, t.Handler, strconv.FormatInt(t.Failures, 10))
}

// IsTask says whether an id is one of an item's task.
func IsTask(id string) bool { return strings.HasPrefix(id, taskID) }

// TaskOf is the item that a task is, in the context's workspace, under an epoch.
func TaskOf(ctx context.Context, d store.Doer, id string, epoch int64) (Taken, error) {
	var failures int64
	parts, ok := lease.Parts(taskID, id, 4)
	if ok {
		var err error
		failures, err = strconv.ParseInt(parts[3], 10, 64)
		ok = err == nil
	}
	if !ok {
		return Taken{}, fault.New(fault.NotFound, "there is no task %q", id)
	}
	at, err := d.Partition(ctx, store.Read)
	return Taken{Shard: at.Shard, Workspace: at.Workspace, Batch: parts[0], Key: parts[1], Handler: parts[2], Failures: failures, Lease: lease.Lease{Epoch: epoch}}, err
}

func (t Taken) partition() store.Partition {
	return store.Partition{Shard: t.Shard, Workspace: t.Workspace}
}

// Ready is a batch of which something can be taken.
type Ready struct{ Workspace, ID, Handler string }

// Ask asks for items of batches with some handlers: in one workspace or, with All, in
// every one on a shard.
type Ask struct {
	Handlers []string
	// Kind is what the handlers must be declared as: "worker" or "http". Those of a
	// program are not declared.
	Kind   string
	Holder string
	// Elsewhere says that the holder is not in this process: it is quiet until it is heard of.
	Elsewhere bool
	// Busy are batches that a transaction leaves out: an earlier try did not get their wallets, and notes that here.
	Busy  map[string]bool
	Lease time.Duration
	Limit int
	All   bool
	Shard int16
	// Room, if set, is taken for each item, as far as the share of its workspace and handler goes.
	Room *lease.Capacity
}

type readyArgs struct {
	handlers, kind string
	limit          int
	except         string
}

type takeArgs struct {
	id, handler, holder string
	lease               time.Duration
	limit               int
	elsewhere           bool
}

type taking struct {
	applied   bool
	items     string
	until     time.Time
	timeout   int64
	artifacts bool
	short     bool // it has nothing to do but what it could not pay
}

type pausedArgs struct {
	wallet string
	limit  int
}

var (
	readyVerb = store.NewVerb(store.Decl{Name: "batches.ready", Lane: store.Read}, nil,
		func(a readyArgs, args *store.Args) {
			args.Text("handlers", a.handlers)
			args.Int("limit", int64(a.limit))
			args.Text("kind", a.kind)
			args.Text("except", a.except)
		}, scanReady)
	takeVerb = store.NewVerb(store.Decl{Name: "batches.take", Events: store.HistoryEvents},
		func(a takeArgs) []string { return []string{row(a.id)} },
		func(a takeArgs, args *store.Args) {
			args.Text("batch", a.id)
			args.Text("holder", a.holder)
			args.Int("lease", a.lease.Milliseconds())
			args.Int("room", int64(a.limit))
			args.Int("quiet", bit(a.elsewhere))
		},
		func(t *taking, r store.Row) error {
			t.applied = r.Applied()
			return r.Scan(&t.items, &t.until, &t.timeout, &t.artifacts, &t.short)
		}).
		// What was taken by a take whose answer was lost runs out, and is taken again.
		RecoverWith(func(takeArgs, store.CommitProof) taking { return taking{items: "[]"} }).
		Wakes(func(a takeArgs) []string { return []string{Progress(a.id)} }).
		Emits(func(a takeArgs) store.Emission { return emits(a.id, "itemsTaken") })
	pausedVerb = store.NewVerb(store.Decl{Name: "batches.paused", Lane: store.Read}, nil,
		func(a pausedArgs, args *store.Args) { args.Text("wallet", a.wallet); args.Int("limit", int64(a.limit)) }, scanReady)
)

func scanReady(all *[]Ready, r store.Row) error {
	var x Ready
	err := r.Scan(&x.Workspace, &x.ID, &x.Handler)
	*all = append(*all, x)
	return err
}

// fewBatches is how many batches one look considers.
const fewBatches = 16

// Take takes up to a.Limit items.
func Take(ctx context.Context, d store.Doer, a Ask) ([]Taken, error) {
	if a.Lease == 0 {
		a.Lease = lease.DefaultDuration
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	at := store.Partition{Shard: a.Shard}
	if !a.All {
		var err error
		if at, err = d.Partition(ctx, store.Read); err != nil {
			return nil, err
		}
	}
	handlers, err := json.Marshal(a.Handlers)
	if err != nil {
		return nil, err
	}
	ready, err := a.ready(ctx, d, at, string(handlers))
	if err != nil {
		return nil, err
	}
	var all []Taken
	var failed error
	_, whole := d.(*store.Tx)
	for i, b := range ready {
		if len(all) >= a.Limit || whole && len(all) > 0 { // a transaction has one wallet locked
			break
		}
		if a.Busy[b.ID] {
			continue
		}
		at.Workspace = b.Workspace
		n := a.share(ready[i:], a.Limit-len(all))
		if n == 0 {
			continue
		}
		some, err := takeSoon(ctx, d, at, takeArgs{b.ID, b.Handler, a.Holder, a.Lease, n, a.Elsewhere})
		if a.Room != nil {
			a.Room.Free(b.share(), n-len(some))
		}
		if whole && err != nil { // it is over
			if a.Busy != nil {
				a.Busy[b.ID] = true
			}
			return nil, err
		}
		failed = errors.Join(failed, err) // one that cannot be taken of must not hold up the others
		all = append(all, some...)
	}
	if len(all) > 0 { // they are held: who asked is to know
		return all, nil
	}
	return nil, failed
}

// ready returns batches, so that each workspace has its turn.
func (a Ask) ready(ctx context.Context, d store.Doer, at store.Partition, handlers string) ([]Ready, error) {
	r := readyArgs{handlers, a.Kind, fewBatches, "[]"}
	if a.Room != nil {
		shut := [][2]string{}
		for _, s := range a.Room.Shut() {
			shut = append(shut, [2]string{s.Workspace, s.Handler})
		}
		except, err := json.Marshal(shut)
		if err != nil {
			return nil, err
		}
		r.except = string(except)
	}
	ready, err := readyVerb.DoAt(ctx, d, at, r)
	if a.Room != nil {
		lease.InTurn(&a.Room.Order, ready, func(b Ready) string { return b.Workspace })
	}
	return ready, err
}

// share is how many items are taken of the first of some batches: where there is to be room for them, what is left is
// shared by the workspaces.
func (a Ask) share(ready []Ready, most int) int {
	if a.Room == nil {
		return most
	}
	workspaces := make(map[string]bool)
	for _, b := range ready {
		workspaces[b.Workspace] = true
	}
	left := a.Room.Left()
	if left == 0 {
		return 0
	}
	return a.Room.Take(ready[0].share(), min(most, (left-1)/len(workspaces)+1))
}

func (b Ready) share() lease.Share { return lease.Share{Workspace: b.Workspace, Handler: b.Handler} }

// longTake is how long a batch is waited for whose wallet somebody else has locked.
const longTake = 2 * time.Second

func takeSoon(ctx context.Context, d store.Doer, at store.Partition, a takeArgs) ([]Taken, error) {
	soon, cancel := context.WithTimeout(ctx, longTake)
	defer cancel()
	all, err := takeOf(soon, d, at, a)
	if _, whole := d.(*store.Tx); whole && err != nil && soon.Err() != nil && ctx.Err() == nil { // nothing was committed
		err = fault.New(fault.Unavailable, "somebody has the wallet of the batch %q locked", a.id).Repeatable().Wrap(err)
	}
	return all, err
}

func (a Ask) check() error {
	if len(a.Handlers) == 0 || a.Limit < 1 || a.Limit > 1000 {
		return fault.New(fault.Validation, "a take names its handlers and takes 1 to 1000 items")
	}
	if a.Lease < time.Millisecond || a.Lease > 24*time.Hour {
		return fault.New(fault.Validation, "a lease is a millisecond to a day, not %s", a.Lease)
	}
	return strictjson.Text("holder", a.Holder, events.MaxName)
}

// takeOf takes items of one batch, or pauses it for want of funds.
func takeOf(ctx context.Context, d store.Doer, at store.Partition, a takeArgs) ([]Taken, error) {
	t, err := takeVerb.DoAt(ctx, d, at, a)
	if err != nil {
		return nil, err
	}
	if t.short {
		_, err := pauseVerb.DoAt(ctx, d, at, moveArgs{id: a.id})
		return nil, err
	}
	var rows [][5]json.RawMessage
	if err := json.Unmarshal([]byte(t.items), &rows); err != nil {
		return nil, fault.New(fault.Internal, "batches.take answered %q: %v", t.items, err)
	}
	all := make([]Taken, len(rows))
	for i, r := range rows {
		x := &all[i]
		x.Shard, x.Workspace, x.Batch, x.Handler = at.Shard, at.Workspace, a.id, a.handler
		x.Input, x.Until, x.Timeout, x.Artifacts = r[2], t.until.UTC(), time.Duration(t.timeout)*time.Millisecond, t.artifacts
		for j, into := range []any{&x.Key, &x.Epoch, nil, &x.Failures, &x.Crashes} {
			if into == nil {
				continue
			}
			if err := json.Unmarshal(r[j], into); err != nil {
				return nil, fault.New(fault.Internal, "batches.take answered %q: %v", t.items, err)
			}
		}
	}
	return all, nil
}

// Resume resumes the batches that are PAUSED and whose wallet has what they need by now:
// those of one wallet in the context's workspace. It is called behind a credit, and looks
// at what is there then: a pause that did not see the credit is.
func Resume(ctx context.Context, d store.Doer, wallet string) error {
	at, err := d.Partition(ctx, store.Read)
	if err == nil {
		_, err = resume(ctx, d, at, wallet)
	}
	return err
}

func resume(ctx context.Context, d store.Doer, at store.Partition, wallet string) (n int, err error) {
	const few = 500
	all, err := pausedVerb.DoAt(ctx, d, at, pausedArgs{wallet, few})
	for _, b := range all {
		at.Workspace = b.Workspace
		moved, failed := resumeVerb.DoAt(ctx, d, at, moveArgs{b.ID, b.Handler})
		if failed != nil {
			return n, failed
		}
		if moved {
			n++
		}
	}
	return n, err
}

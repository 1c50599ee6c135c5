package batchengine

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Taken is an item under a lease.
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

// Attempt returns the number of this attempt, from 1.
func (t Taken) Attempt() int { return int(t.Failures + t.Crashes + 1) }

// Operation returns the operation id of the item, the same for every attempt.
func (t Taken) Operation() string { return Operation(t.Workspace, t.Batch, t.Key) }

// Operation returns the id of an item for other systems, the same for every attempt.
func Operation(workspace, batch, key string) string { return lease.ID("itm_", workspace, batch, key) }

// taskPrefix is the prefix of the task ids of items.
const taskPrefix = "bit_"

// TaskID returns the id of the item's task on the wire. It contains the number of
// failures, from which the pause after the next failure is computed.
func (t Taken) TaskID() string {
	return lease.ID(taskPrefix, t.Batch, t.Key, t.Handler, strconv.FormatInt(t.Failures, 10))
}

// IsTask reports whether an id is the id of an item's task.
func IsTask(id string) bool { return strings.HasPrefix(id, taskPrefix) }

// TaskOf returns the item of a task in the context's workspace, under an epoch.
func TaskOf(ctx context.Context, d store.Doer, id string, epoch int64) (Taken, error) {
	var failures int64
	parts, ok := lease.Parts(taskPrefix, id, 4)
	if ok {
		var err error
		failures, err = strconv.ParseInt(parts[3], 10, 64)
		ok = err == nil
	}
	if !ok {
		return Taken{}, fault.New(fault.NotFound, "task %q does not exist", id)
	}
	at, err := d.Partition(ctx, store.Read)
	return Taken{Shard: at.Shard, Workspace: at.Workspace, Batch: parts[0], Key: parts[1], Handler: parts[2], Failures: failures, Lease: lease.Lease{Epoch: epoch}}, err
}

func (t Taken) partition() store.Partition {
	return store.Partition{Shard: t.Shard, Workspace: t.Workspace}
}

// Ready is a batch that has items to take.
type Ready struct{ Workspace, ID, Handler string }

// Ask selects the items to take by their handlers: in the context's workspace or,
// with All, in every workspace on a shard.
type Ask struct {
	Handlers []string
	// Kind is the declared kind of the handlers: "worker" or "http". Handlers of a
	// program are not declared.
	Kind   string
	Holder string
	// Elsewhere is set for a holder outside of this process. If its lease expires before
	// its first call, the hand-out is lost, which is not a crash.
	Elsewhere bool
	// Busy are batches to leave out. A take in a transaction adds the batches whose
	// wallets it could not lock.
	Busy  map[string]bool
	Lease time.Duration
	Limit int
	All   bool
	Shard int16
	// Room, if set, limits the take: each item uses capacity of its workspace and
	// handler.
	Room *lease.Capacity
	// Recent, if set, is used instead of a search for batches.
	Recent *Recent
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
	items     string // a JSON list of [key, epoch, input, failures, crashes]
	until     time.Time
	timeout   int64
	artifacts bool
	short     bool // the wallet cannot pay for any of the items left
}

type listPayableArgs struct {
	wallet string
	limit  int
}

var (
	readyVerb = store.NewVerb(store.Decl{Name: "batches.list_ready", Lane: store.Read}, nil,
		func(a readyArgs, args *store.Args) {
			args.Text("handlers", a.handlers)
			args.Int("limit", int64(a.limit))
			args.Text("kind", a.kind)
			args.Text("except", a.except)
		}, scanReady)
	takeVerb = store.NewVerb(store.Decl{Name: "batches.take", Serial: true, Events: store.HistoryEvents},
		func(a takeArgs) []string { return []string{row(a.id)} },
		func(a takeArgs, args *store.Args) {
			args.Text("batch", a.id)
			args.Text("holder", a.holder)
			args.Int("lease", a.lease.Milliseconds())
			args.Int("room", int64(a.limit))
			args.Int("quiet", bit(a.elsewhere)) // a remote holder, which has not made its first call yet
		},
		func(t *taking, r store.Row) error {
			t.applied = r.Applied()
			return r.Scan(&t.items, &t.until, &t.timeout, &t.artifacts, &t.short)
		}).
		// Items of a take whose response was lost expire, and are taken again.
		RecoverWith(func(takeArgs, store.CommitProof) taking { return taking{items: "[]"} }).
		Wakes(func(a takeArgs) []string { return []string{ProgressTopic(a.id)} }).
		Emits(func(a takeArgs) store.Emission { return emits(a.id, "itemsTaken") })
	listPayableVerb = store.NewVerb(store.Decl{Name: "batches.list_payable", Lane: store.Read}, nil,
		func(a listPayableArgs, args *store.Args) {
			args.Text("wallet", a.wallet)
			args.Int("limit", int64(a.limit))
		}, scanReady)
)

func scanReady(all *[]Ready, r store.Row) error {
	var x Ready
	err := r.Scan(&x.Workspace, &x.ID, &x.Handler)
	*all = append(*all, x)
	return err
}

// readyLimit is the maximum number of batches per take.
const readyLimit = 16

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
	if ready := a.Recent.get(); len(ready) > 0 {
		if all, err := a.takeFrom(ctx, d, at, ready); len(all) > 0 || err != nil {
			return all, err
		}
	}
	ready, err := a.ready(ctx, d, at, string(handlers))
	if err != nil {
		return nil, err
	}
	a.Recent.found()
	return a.takeFrom(ctx, d, at, ready)
}

// takeFrom takes items of the batches, in their order, and remembers those that may have more.
func (a Ask) takeFrom(ctx context.Context, d store.Doer, at store.Partition, ready []Ready) (all []Taken, failed error) {
	_, inTx := d.(*store.Tx)
	var rest, more []Ready
	for i, b := range ready {
		if len(all) >= a.Limit || inTx && len(all) > 0 { // a transaction locks only one wallet
			rest = ready[i:]
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
		if inTx && err != nil { // the transaction has failed
			if a.Busy != nil {
				a.Busy[b.ID] = true
			}
			return nil, err
		}
		if len(some) == n {
			more = append(more, b)
		}
		failed = errors.Join(failed, err) // continue with the other batches
		all = append(all, some...)
	}
	a.Recent.put(append(rest, more...))
	if len(all) > 0 { // they are leased, so the caller must get them
		return all, nil
	}
	return nil, failed
}

// Recent remembers for a moment which batches had items to take, so that a worker whose items end quickly does not search for
// batches before each take. It is a hint: [Take] checks each batch under its lock. Batches that become ready, and the order of the
// batches of a workspace, are noticed [recentFor] later at most. Not safe for concurrent use.
type Recent struct {
	until time.Time
	ready []Ready // those that were not served lately come first
}

const recentFor = 10 * time.Millisecond

func (r *Recent) get() []Ready {
	if r == nil || !clock.Now().Before(r.until) {
		return nil
	}
	return r.ready
}

// found notes that the batches have just been read.
func (r *Recent) found() {
	if r != nil {
		r.until = clock.Now().Add(recentFor)
	}
}

func (r *Recent) put(ready []Ready) {
	if r != nil {
		r.ready = ready
	}
}

// ready returns batches that have items to take, ordered so that each workspace
// gets its turn.
func (a Ask) ready(ctx context.Context, d store.Doer, at store.Partition, handlers string) ([]Ready, error) {
	r := readyArgs{handlers, a.Kind, readyLimit, "[]"}
	if a.Room != nil {
		shut := [][2]string{} // workspaces and handlers whose share is used up
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

// share returns how many items to take from the first of the ready batches. With
// Room set, the workspaces share the capacity that is left.
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

// takeTimeout is how long a take waits for a locked wallet.
const takeTimeout = 2 * time.Second

func takeSoon(ctx context.Context, d store.Doer, at store.Partition, a takeArgs) ([]Taken, error) {
	soon, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	all, err := takeOf(soon, d, at, a)
	if _, inTx := d.(*store.Tx); inTx && err != nil && soon.Err() != nil && ctx.Err() == nil { // nothing was committed
		err = fault.New(fault.Unavailable, "the items of batch %q could not be claimed in time; none was claimed: try again", a.id).AsRetryable().Wrap(err)
	}
	return all, err
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

// takeOf takes items of one batch, or pauses it if the funds are insufficient.
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
		return nil, fault.New(fault.Internal, "batches.take returned items that cannot be decoded (%q): %v", t.items, err)
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
				return nil, fault.New(fault.Internal, "batches.take returned items that cannot be decoded (%q): %v", t.items, err)
			}
		}
		meter.Of(d).Kind(meter.Item).Take(x.Attempt())
	}
	return all, nil
}

// Resume resumes the PAUSED batches of one wallet in the context's workspace, if the
// balance now suffices. It is called after a credit has been committed, so it sees
// every pause that did not see the credit.
func Resume(ctx context.Context, d store.Doer, wallet string) error {
	at, err := d.Partition(ctx, store.Read)
	if err == nil {
		_, err = resume(ctx, d, at, wallet)
	}
	return err
}

// resume resumes the PAUSED batches that their wallets can pay for: those of one wallet, or all ("").
func resume(ctx context.Context, d store.Doer, at store.Partition, wallet string) (n int, err error) {
	const few = 500 // the sweep resumes the rest
	all, err := listPayableVerb.DoAt(ctx, d, at, listPayableArgs{wallet, few})
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

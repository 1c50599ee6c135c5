package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Options are the options of a kind. The zero value is ready to use.
type Options struct {
	// MaxConcurrency limits how many items of one batch run at the same time, on all nodes; 0 means 1.
	MaxConcurrency int
	// MaxWorkers limits how many items this node runs at the same time, over all batches; 0 means 16. If
	// there are several workspaces, one workspace gets at most two thirds of this limit.
	MaxWorkers int
	// Retry sets how many times an item is attempted, and the pauses between attempts; the default
	// is 3 attempts.
	Retry holdfast.RetryPolicy
	// MaxCrashes is the number of crashes after which an item fails; 0 means 5.
	MaxCrashes int
	// Timeout limits the duration of one attempt; 0 means 15 minutes. An attempt that exceeds it has failed.
	Timeout time.Duration
	// Lease is how long the lease on an item lasts without renewal, from a millisecond to 24 hours; 0 means 30 seconds.
	Lease time.Duration
	// Retention is how long a batch that has ended keeps its items; 0 is that of the engine, set by [Retention].
	Retention time.Duration
	// Cost is the cost of items that set none ([NewItem.Cost]), in points; [Free] means nothing.
	Cost int64
}

// Free is the cost of an item that costs nothing. An item of cost 0 is one whose cost is not set.
const Free int64 = -1

// Kind defines how the items of a batch are processed. Pass it to [holdfast.Open].
type Kind[I, O any] struct {
	name string
	body func(context.Context, *Item[I]) (O, error)
	undo func(context.Context, *Undone[I, O]) error
	o    Options
	bad  error // returned by Register

	mu           sync.Mutex
	maintenances []*maintenance // of the engines that have the kind
}

// Define defines a kind whose items are processed by body, one item per call. The name is stored with each batch, and
// engines that have a kind with that name run its items.
//
// body may run more than once for an item, if it fails or its node crashes. Pass [Item.Operation], which is the same
// for every attempt, to other systems as an idempotency key. The result of body is stored as JSON. When the context of
// body ends, the engine does not wait for body to return, and discards its result.
//
// If body is nil or an option is out of range, [holdfast.Open] returns [holdfast.ErrValidation].
func Define[I, O any](name string, body func(context.Context, *Item[I]) (O, error), o Options) *Kind[I, O] {
	k := &Kind[I, O]{name: name, body: body, o: o}
	if body == nil {
		k.bad = fault.New(fault.Validation, "it has no function: pass one to Define")
	}
	return k
}

// Undo sets the function that undoes an item that was started and then failed or was cancelled: for example, f records
// a refund in the program's own tables, or cleans up. f is called when no node can still be running the item, and is
// retried until it returns nil. Until then, the batch does not end, and [Batch.Error] contains the error from f.
// Writes added with [Undone.WriteTx] are committed only once.
func (k *Kind[I, O]) Undo(f func(context.Context, *Undone[I, O]) error) *Kind[I, O] {
	switch {
	case f == nil:
		k.bad = fault.New(fault.Validation, "Undo has no function: pass one, or omit Undo")
	case k.undo != nil:
		k.bad = fault.New(fault.Conflict, "Undo has two functions: call it only once")
	}
	k.undo = f
	return k
}

// Item is the item that a body processes.
type Item[I any] struct {
	Batch, Key string
	Input      I
	// Operation is an idempotency key for other systems. It is the same for every attempt of the item.
	Operation string
	// Attempt is the number of this attempt, starting at 1.
	Attempt int
	// Prefix is where the item may store artifacts, if the engine has [Artifacts]. They are deleted
	// if the item fails or is cancelled.
	Prefix string

	commits []batchengine.Commit
}

// WriteTx adds f to the transaction that settles the item, so that the writes of f and the item's
// result are committed together or not at all. f may run more than once.
func (i *Item[I]) WriteTx(f func(context.Context, holdfast.Tx) error) {
	i.commits = append(i.commits, store.TxFunc(f))
}

// Undone is an item that is being undone.
type Undone[I, O any] struct {
	Batch, Key string
	Input      I
	// Output is the result of the body, or nil if it returned none.
	Output *O
	// Operation is the same as [Item.Operation].
	Operation string
	// Status is [ItemFailed] or [ItemCancelled].
	Status ItemStatus

	commits []batchengine.Commit
}

// WriteTx adds f to the transaction that records the undo, so that the writes of f and this record
// are committed together or not at all. f may run more than once.
func (u *Undone[I, O]) WriteTx(f func(context.Context, holdfast.Tx) error) {
	u.commits = append(u.commits, store.TxFunc(f))
}

// NewItem is an item to add to a batch.
type NewItem[I any] struct {
	Key string // unique in the batch
	// Cost is the cost in points; [Free] means nothing, and 0 means [Options.Cost]. If that is not set either, the item
	// is refused with [holdfast.ErrValidation].
	Cost  int64
	Input I
}

// CreateOption is an option of [Kind.Create].
type CreateOption struct{ set func(*batchengine.New) }

// ID sets the id of the batch; without it, the batch gets a new unique id. If a batch with this id
// and the same items already exists, [Kind.Create] adds the items that are missing and returns that
// batch; if its items differ, the error is [holdfast.ErrConflict]; if it has ended and its items were deleted after their
// retention, [holdfast.ErrKeyExpired]. An empty id is [holdfast.ErrValidation].
func ID(id string) CreateOption { return CreateOption{func(n *batchengine.New) { n.ID = id }} }

// LeaveOpen leaves the batch open for [Kind.Add], until [Seal].
func LeaveOpen() CreateOption { return CreateOption{func(n *batchengine.New) { n.Open = true }} }

// MaxConcurrency limits how many items of the batch run at the same time, and overrides
// [Options.MaxConcurrency]; 0 does not.
func MaxConcurrency(n int) CreateOption {
	return CreateOption{func(b *batchengine.New) { b.MaxConcurrency = cmp.Or(int64(n), b.MaxConcurrency) }}
}

// Create creates a batch of items that are paid from a wallet. Items are added in pages of 1,000, each in its own
// transaction unless d is a transaction. If the program crashes between two pages, call Create again with the same
// [ID]: it adds the missing items. If the wallet does not exist, the error is [holdfast.ErrNotFound].
//
// If a later page is refused, for example because an item has no cost or cannot be encoded, the pages before it remain:
// the batch exists, is open, and its items are run and charged. Create returns it beside the error. Call Create again
// with its ID, the same items before the refused one and a correct one in its place, or [Cancel] the batch. In a
// transaction, all pages are committed or rolled back with it.
func (k *Kind[I, O]) Create(ctx context.Context, d holdfast.Doer, wallet string, items iter.Seq[NewItem[I]], o ...CreateOption) (Batch, error) {
	n := k.template()
	n.Wallet, n.Handler, n.Artifacts = wallet, k.name, k.hasArtifacts()
	generated := store.NewID().String()
	n.ID = generated
	for _, option := range o {
		option.set(&n)
	}
	open, given := n.Open, n.ID != generated
	next, stop := iter.Pull(items)
	defer stop()
	first, more, err := k.page(next)
	if err != nil {
		return Batch{}, err
	}
	n.Items, n.Open = first, open || more
	b, err := batchengine.Create(ctx, store.DoerOf(d), n)
	if given && fault.CodeOf(err) == fault.Conflict {
		b, err := k.again(ctx, d, n, first, more, next, open)
		if now, failed := batchengine.Get(ctx, store.DoerOf(d), n.ID); failed == nil && !now.ItemsDeletedAt.IsZero() && now.Wallet == n.Wallet && now.Handler == n.Handler {
			return publicBatch(now), fault.New(fault.KeyExpired, "batch %q has ended, and its items were deleted after their retention: it is not created again; for new work, use another id", n.ID)
		}
		return b, err
	}
	total := int64(len(first))
	for more && err == nil {
		var some []batchengine.Work
		if some, more, err = k.page(next); err == nil {
			err = k.add(ctx, d, n.ID, total, some, 0)
		}
		total += int64(len(some))
	}
	if err == nil && n.Open && !open {
		b, err = batchengine.Seal(ctx, store.DoerOf(d), n.ID, "")
	} else if err == nil && n.Open {
		b, err = batchengine.Get(ctx, store.DoerOf(d), n.ID)
	}
	return publicBatch(b), err
}

// again continues a batch that exists already: it adds the missing items, and requires the
// existing ones to be the same.
func (k *Kind[I, O]) again(ctx context.Context, d holdfast.Doer, n batchengine.New, some []batchengine.Work, more bool, next func() (NewItem[I], bool), open bool) (Batch, error) {
	b, err := batchengine.Get(ctx, store.DoerOf(d), n.ID)
	if err != nil {
		return Batch{}, err
	}
	other := func(what string) (Batch, error) {
		return publicBatch(b), fault.New(fault.Conflict, "batch %q already exists with %s: use another id", n.ID, what)
	}
	if b.Wallet != n.Wallet || b.Handler != n.Handler {
		return other("another wallet or kind")
	}
	closed := b.Sealed || b.Over() || b.CancelRequested
	total := int64(0)
	for {
		there, err := k.same(ctx, d, n.ID, total, some)
		if err != nil {
			return publicBatch(b), err
		}
		if there < len(some) {
			if closed {
				return other("fewer items")
			}
			if err := k.add(ctx, d, n.ID, total, some, there); err != nil {
				return publicBatch(b), err
			}
		}
		total += int64(len(some))
		if !more {
			break
		}
		if some, more, err = k.page(next); err != nil {
			return publicBatch(b), err
		}
	}
	if b, err = batchengine.Get(ctx, store.DoerOf(d), n.ID); err != nil {
		return publicBatch(b), err
	}
	switch {
	case !open && b.Items != total:
		return other("more items")
	case !open && !b.Sealed && !b.CancelRequested && !b.Over():
		b, err = batchengine.Seal(ctx, store.DoerOf(d), n.ID, "")
	}
	return publicBatch(b), err
}

// add adds the items of a page that are missing. A concurrent Create of the same batch may have
// added them and sealed the batch: then it is not an error.
func (k *Kind[I, O]) add(ctx context.Context, d holdfast.Doer, id string, after int64, some []batchengine.Work, there int) error {
	_, err := batchengine.Add(ctx, store.DoerOf(d), id, some[there:])
	if fault.CodeOf(err) != fault.InvalidTransition {
		return err
	}
	if has, failed := k.same(ctx, d, id, after, some); failed != nil || has < len(some) {
		return errors.Join(failed, err)
	}
	return nil
}

// same returns how many items of a page the batch has at their positions. If it has different
// items there, the error is [fault.Conflict].
func (k *Kind[I, O]) same(ctx context.Context, d holdfast.Doer, id string, after int64, some []batchengine.Work) (int, error) {
	if len(some) == 0 {
		return 0, nil
	}
	has, err := batchengine.Items(ctx, store.DoerOf(d), id, after, "", len(some))
	if err != nil {
		return 0, err
	}
	for i, x := range has {
		if w := some[i]; x.Key != w.Key || x.Cost != w.Cost || !strictjson.Equal(x.Input, w.Input) {
			return i, fault.New(fault.Conflict, "batch %q already exists with different items (the first difference is at item %q): use another id", id, w.Key).With("key", w.Key)
		}
	}
	return len(has), nil
}

// Add adds items to a batch that was created with [LeaveOpen], and returns how many were new. Adding the same items
// again has no effect. If the batch already has an item with the same key but another cost or input, Add returns
// [holdfast.ErrConflict]; if the batch is not open, [holdfast.ErrInvalidTransition]. Items are added in pages, as by
// [Kind.Create]: if a page is refused, those before it remain, and the number beside the error counts their new items.
func (k *Kind[I, O]) Add(ctx context.Context, d holdfast.Doer, id string, items iter.Seq[NewItem[I]]) (int, error) {
	next, stop := iter.Pull(items)
	defer stop()
	total := 0
	for more := true; more; {
		some, left, err := k.page(next)
		if err != nil {
			return total, err
		}
		n, err := batchengine.Add(ctx, store.DoerOf(d), id, some)
		if total += int(n); err != nil {
			return total, err
		}
		more = left
	}
	return total, nil
}

// pageSize is the number of items added in one transaction.
const pageSize = 1000

// page reads a page of items and reports whether there may be more.
func (k *Kind[I, O]) page(next func() (NewItem[I], bool)) (some []batchengine.Work, more bool, err error) {
	for len(some) < pageSize {
		w, ok := next()
		if !ok {
			return some, false, nil
		}
		input, err := json.Marshal(w.Input)
		if err != nil {
			return nil, false, fault.New(fault.Validation, "the input of item %q cannot be encoded as JSON: %v", w.Key, err)
		}
		cost := cmp.Or(w.Cost, k.o.Cost)
		switch cost {
		case 0:
			return nil, false, fault.New(fault.Validation, "item %q has no cost: set NewItem.Cost or Options.Cost, to batch.Free if it costs nothing", w.Key)
		case Free:
			cost = 0
		}
		some = append(some, batchengine.Work{Key: w.Key, Cost: cost, Input: input})
	}
	return some, true, nil
}

// template returns the settings that all batches of the kind share.
func (k *Kind[I, O]) template() batchengine.New {
	return batchengine.New{MaxConcurrency: int64(k.o.MaxConcurrency), Attempts: int64(k.o.Retry.MaxAttempts), MaxCrashes: int64(k.o.MaxCrashes), Timeout: k.o.Timeout, Retention: k.o.Retention, Undo: k.undo != nil}
}

// hasArtifacts reports whether an engine that has the kind has a store of artifacts.
func (k *Kind[I, O]) hasArtifacts() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.maintenances, func(kp *maintenance) bool { return kp.artifacts != nil })
}

// Register is called by [holdfast.Open].
func (k *Kind[I, O]) Register(_ context.Context, e *holdfast.Engine) error {
	if err := strictjson.Text("kind", k.name, events.MaxName); err != nil {
		return err
	}
	if err := cmp.Or(k.bad, k.o.check()); err != nil {
		return fmt.Errorf("batch kind %q: %w", k.name, err)
	}
	if strings.HasPrefix(k.name, "$") {
		return fault.New(fault.Validation, "the name of batch kind %q is reserved: choose a name that does not begin with $", k.name)
	}
	kp := maintenanceOf(e)
	if !kp.kinds.Add(k.name, k.template()) {
		return fault.New(fault.Conflict, "batch kind %q is registered twice: register it only once", k.name)
	}
	if k.undo != nil {
		kp.undoes[k.name] = k.undone
	}
	bodies := k.o.MaxWorkers
	if bodies == 0 {
		bodies = 16
	}
	w := &batchengine.Worker{Engine: engine.Of(e), Hub: engine.Of(e).Hub(), Log: engine.Of(e).Log(), Name: engine.Of(e).Node(), Handlers: func() []string { return []string{k.name} },
		Topics: []string{batchengine.Topic(k.name)}, MaxConcurrency: bodies, Lease: k.o.Lease, Body: k.do}
	p := k.o.Retry
	w.Backoff = func(n int64) time.Duration { return clock.Backoff(p.Backoff, p.Multiplier, p.MaxBackoff, n) }
	e.Background(w.Run)
	engine.Of(e).Serves(w.WorkKinds)
	engine.Of(e).Steps(w.WorkKinds, w.Step) // for tests that step the loops: holdfasttest.Settle
	k.mu.Lock()
	defer k.mu.Unlock()
	k.maintenances = append(k.maintenances, kp)
	return nil
}

// check returns an error for options that are out of range.
func (o Options) check() error {
	p := o.Retry
	switch {
	case o.MaxWorkers < 0:
		return fault.New(fault.Validation, "MaxWorkers must not be negative, got %d", o.MaxWorkers)
	case o.MaxConcurrency < 0 || o.MaxConcurrency > batchengine.MaxConcurrency:
		return fault.New(fault.Validation, "MaxConcurrency must be between 1 and %d, or 0 for the default, got %d", batchengine.MaxConcurrency, o.MaxConcurrency)
	case p.MaxAttempts < 0 || p.MaxAttempts > batchengine.MaxAttempts:
		return fault.New(fault.Validation, "MaxAttempts must be between 1 and %d, or 0 for the default, got %d", batchengine.MaxAttempts, p.MaxAttempts)
	case o.MaxCrashes < 0 || o.MaxCrashes > batchengine.MaxAttempts:
		return fault.New(fault.Validation, "MaxCrashes must be between 1 and %d, or 0 for the default, got %d", batchengine.MaxAttempts, o.MaxCrashes)
	case o.Timeout != 0 && (o.Timeout < time.Millisecond || o.Timeout > batchengine.MaxTimeout):
		return fault.New(fault.Validation, "Timeout must be between 1ms and %s, or 0 for the default, got %s", batchengine.MaxTimeout, o.Timeout)
	case o.Lease != 0 && (o.Lease < time.Millisecond || o.Lease > 24*time.Hour):
		return fault.New(fault.Validation, "Lease must be between 1ms and 24h, or 0 for the default, got %s", o.Lease)
	case o.Retention != 0 && o.Retention < time.Millisecond:
		return fault.New(fault.Validation, "Retention must be at least 1ms, or 0 for the default, got %s", o.Retention)
	case o.Cost < Free || o.Cost > batchengine.MaxCost:
		return fault.New(fault.Validation, "Cost must be between 1 and %d, or Free, or 0 for none, got %d", int64(batchengine.MaxCost), o.Cost)
	case p.Backoff < 0 || p.MaxBackoff < 0 || p.Multiplier < 0 || p.Multiplier > 0 && p.Multiplier < 1:
		return fault.New(fault.Validation, "Backoff (%s) and MaxBackoff (%s) must not be negative, and Multiplier (%g) must be at least 1, or 0 for the default", p.Backoff, p.MaxBackoff, p.Multiplier)
	case p.MaxBackoff > 0 && p.MaxBackoff < p.Backoff:
		return fault.New(fault.Validation, "MaxBackoff (%s) must not be less than Backoff (%s)", p.MaxBackoff, p.Backoff)
	}
	return nil
}

// do runs the body of an item.
func (k *Kind[I, O]) do(ctx context.Context, t batchengine.Taken) ([]byte, []batchengine.Commit, error) {
	i := &Item[I]{Batch: t.Batch, Key: t.Key, Operation: t.Operation(), Attempt: t.Attempt()}
	if t.Artifacts {
		i.Prefix = batchengine.Prefix(t.Workspace, t.Batch, t.Key)
	}
	if err := json.Unmarshal(t.Input, &i.Input); err != nil {
		return nil, nil, fault.NonRetryable(fmt.Errorf("the input does not match the input type of batch kind %q: %w", k.name, err))
	}
	out, err := k.body(ctx, i)
	if err != nil {
		return nil, nil, err
	}
	output, err := json.Marshal(out)
	if err != nil {
		return nil, nil, fault.NonRetryable(fmt.Errorf("the output cannot be encoded as JSON: %w", err))
	}
	return output, i.commits, nil
}

// undone undoes an item.
func (k *Kind[I, O]) undone(ctx context.Context, s batchengine.Swept) ([]batchengine.Commit, error) {
	u := &Undone[I, O]{Batch: s.Batch, Key: s.Key, Operation: batchengine.Operation(s.Workspace, s.Batch, s.Key), Status: ItemStatus(s.State)}
	if err := json.Unmarshal(s.Input, &u.Input); err != nil {
		return nil, nil // the body never ran: do fails on the same input
	}
	if len(s.Output) > 0 {
		u.Output = new(O)
		if err := json.Unmarshal(s.Output, u.Output); err != nil {
			return nil, fmt.Errorf("the output does not match the output type of batch kind %q: %w", k.name, err)
		}
	}
	err := k.undo(ctx, u)
	return u.commits, err
}

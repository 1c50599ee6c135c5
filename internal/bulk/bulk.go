// Package bulk runs one administrative action on many runs, positions of reactions or operations, in the background.
//
// A bulk is a batch (package batchengine) with a reserved handler, and each of its items is a member. Leases, retries,
// crash recovery, progress and cancellation are those of batches. The members are selected when the bulk is created, in
// the same transaction if the caller has one. What a bulk adds is that each action takes effect at most once: the
// transaction of the action also ends and accepts the item, under the item's lease. A node that crashes before the
// commit has done nothing, and a node that crashes after it has left nothing to repeat. The transaction is refused if
// the bulk was cancelled meanwhile, so a cancelled member is one on which nothing was done.
//
// Actions that depend on what the caller saw are bound to it: a retry to the version of the run, a repair to the event
// that failed, an intervention to the epoch of the operation. A member that has changed since is refused by its own
// guard, like a single request.
//
// Locks: first those of the member, then batch and item. Nothing that locks the batch of a bulk then locks a member.
package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

// Limits of bulks.
const (
	MaxMembers = batchengine.MaxPage // that a filter may select
	MaxIDs     = 1000                // that a request may list: each is read by itself
	// maxRead is how many objects a filter may read to find its members.
	maxRead = 10 * MaxMembers
)

const (
	concurrency = 8  // of the members of a bulk, and of a node
	attempts    = 10 // while the database is unavailable or the member changes concurrently
	timeout     = 5 * time.Minute
)

// Order is a request for a bulk: an action, and the members by id or by filter.
type Order struct {
	Action string   `json:"action"`
	IDs    []string `json:"-"`
	Filter *Filter  `json:"filter,omitempty"`
	// Happened and Outcome are the answer for every uncertain operation, as in a single resolution. Happened applies to
	// all effects of unknown outcome.
	Happened *bool  `json:"happened,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Reason   string `json:"reason,omitempty"` // of a release or withdrawal
	Actor    string `json:"actor,omitempty"`
	Request  string `json:"request,omitempty"` // the id of the HTTP request
}

// Bulk is the current state of a bulk.
type Bulk struct {
	ID string
	Order
	Status                                            string
	Total, Pending, Running, Done, Refused, Cancelled int64
	CancelRequested                                   bool
	CreatedAt, UpdatedAt                              time.Time
}

func bulkOf(b batchengine.Batch) (Bulk, error) {
	n := b.Counts()
	x := Bulk{ID: strings.TrimPrefix(b.ID, batchengine.BulkPrefix), Status: b.Status, Total: b.Items, Pending: n.Pending, Running: n.Running, Done: n.Succeeded,
		Refused: n.Failed, Cancelled: n.Cancelled, CancelRequested: b.CancelRequested, CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt}
	return x, json.Unmarshal([]byte(b.About), &x.Order)
}

// Member is an object that a bulk acts on. State is its state when it was selected, and Expect what the action is bound
// to; nil is nothing.
type Member struct {
	ID     string `json:"id"`
	State  string `json:"state,omitempty"`
	Expect *int64 `json:"expect,omitempty"`
}

// Refusal is a member on which an action would not be permitted.
type Refusal struct {
	Member
	Err *fault.Error
}

// Preview selects the members of an order, and writes nothing. An id whose object does not exist, or is in a state that
// does not permit the action, is refused.
func Preview(ctx context.Context, d store.Doer, o Order) ([]Member, []Refusal, error) {
	a, err := o.check()
	if err != nil {
		return nil, nil, err
	}
	s := &selection{ctx: ctx, doer: d, order: o, seen: make(map[string]bool)}
	if o.Filter != nil {
		err = a.walk(s, *o.Filter)
	} else {
		err = s.byID(a)
	}
	return s.members, s.refused, err
}

// Create selects the members of an order and creates the bulk with its audit entry, in the transaction d or in a new
// one.
func Create(ctx context.Context, d store.Doer, o Order) (Bulk, error) {
	members, refused, err := Preview(ctx, d, o)
	if err != nil {
		return Bulk{}, err
	}
	for _, r := range refused { // by its own guard, later
		members = append(members, r.Member)
	}
	n := batchengine.New{ID: batchengine.BulkPrefix + store.NewID().String(), Wallet: batchengine.Bulk, Handler: batchengine.Bulk, MaxConcurrency: concurrency, Attempts: attempts,
		Timeout: timeout, About: store.JSON(o), Items: make([]batchengine.Work, len(members))}
	for i, m := range members {
		n.Items[i] = batchengine.Work{Key: strconv.Itoa(i + 1), Input: []byte(store.JSON(m))}
	}
	var b batchengine.Batch
	err = store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		if err := ensureWallet(ctx, tx); err != nil {
			return err
		}
		if b, err = batchengine.Create(ctx, tx, n); err != nil {
			return err
		}
		return record(ctx, tx, "bulk.start", n.ID, o.Actor, nil, map[string]any{"order": o, "members": len(members)})
	})
	if err != nil {
		return Bulk{}, err
	}
	return bulkOf(b)
}

func record(ctx context.Context, tx *store.Tx, name, id, actor string, before, after any) error {
	return audit.Record(ctx, tx, audit.Action{Name: name, Subject: "bulk/" + strings.TrimPrefix(id, batchengine.BulkPrefix), Actor: actor, Before: before, After: after})
}

// ensureWallet creates the wallet of bulks. Batches need one, even if their items cost nothing.
func ensureWallet(ctx context.Context, tx *store.Tx) error {
	_, err := wallets.Get(ctx, tx, batchengine.Bulk)
	if fault.CodeOf(err) == fault.NotFound {
		_, err = wallets.Put(ctx, tx, batchengine.Bulk, false)
	}
	return err
}

// Get returns a bulk, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, id string) (Bulk, error) {
	b, err := batchengine.Get(ctx, d, batchengine.BulkPrefix+id)
	if err != nil {
		return Bulk{}, missing(id, err)
	}
	return bulkOf(b)
}

func missing(id string, err error) error {
	if code := fault.CodeOf(err); code != fault.NotFound && code != fault.Validation {
		return err
	}
	return fault.New(fault.NotFound, "bulk %q does not exist", id)
}

// List returns bulks, the newest first, before the given id; "" is the newest.
func List(ctx context.Context, d store.Doer, before string, limit int) ([]Bulk, error) {
	if before != "" {
		before = batchengine.BulkPrefix + before
	}
	found, err := batchengine.ListBulks(ctx, d, before, limit)
	all := make([]Bulk, len(found))
	for i, b := range found {
		if err == nil {
			all[i], err = bulkOf(b)
		}
	}
	return all, err
}

// Result is a member and the result of its action.
type Result struct {
	Member
	N       int64
	Status  string
	Code    fault.Code // of a refusal, or of the last failed attempt
	Message string
}

// statuses maps the statuses of members to the states of their items.
var statuses = map[string]string{"": "", "pending": "pending", "waiting": "waiting", "running": "running", "done": "succeeded", "refused": "failed", "cancelled": "cancelled"}

// Members returns members in order, after the given number: those with a status, or all ("").
func Members(ctx context.Context, d store.Doer, id string, after int64, status string, limit int) ([]Result, error) {
	state, ok := statuses[status]
	if !ok {
		return nil, fault.New(fault.Validation, "status must be pending, waiting, running, done, refused or cancelled, got %.80q", status).With("pointer", "/status")
	}
	items, err := batchengine.Items(ctx, d, batchengine.BulkPrefix+id, after, state, limit)
	all := make([]Result, len(items))
	for i, x := range items {
		all[i] = Result{N: x.N, Status: x.State}
		for name, state := range statuses {
			if state == x.State {
				all[i].Status = name
			}
		}
		if x.Error != "" || x.State == "failed" {
			all[i].Code, all[i].Message = refusalOf(x)
		}
		if err == nil {
			err = json.Unmarshal(x.Input, &all[i].Member)
		}
	}
	return all, err
}

// refusalOf parses the error of an item, which is the text of a [fault.Error].
func refusalOf(x batchengine.Item) (fault.Code, string) {
	if x.Error == "" {
		return fault.Internal, "the nodes that acted on the member crashed " + strconv.FormatInt(x.Crashes, 10) + " times: look at the member itself"
	}
	code, message, ok := strings.Cut(x.Error, ": ")
	if ok && code == strings.ToUpper(code) && !strings.Contains(code, " ") {
		return fault.Code(code), message
	}
	return fault.Internal, x.Error
}

// Cancel cancels a bulk: no further member is acted on. Cancelling it again changes nothing. If the bulk is COMPLETED,
// the error is [fault.InvalidTransition].
func Cancel(ctx context.Context, d store.Doer, id, actor string) (b Bulk, err error) {
	err = store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		before, err := Get(ctx, tx, id)
		if err != nil {
			return err
		}
		now, _, err := batchengine.Cancel(ctx, tx, batchengine.BulkPrefix+id, actor)
		if fault.CodeOf(err) == fault.InvalidTransition {
			return fault.New(fault.InvalidTransition, "bulk %q is COMPLETED: it cannot be cancelled", id).With("status", now.Status)
		}
		if err == nil {
			b, err = bulkOf(now)
		}
		if err != nil || before.CancelRequested {
			return err
		}
		return record(ctx, tx, "bulk.cancel", id, actor, progress(before), progress(b))
	})
	return b, err
}

func progress(b Bulk) map[string]any {
	return map[string]any{"status": b.Status, "done": b.Done, "refused": b.Refused, "total": b.Total}
}

type workerKey struct{}

// Register makes an engine act on the members of bulks. It is called before the engine runs; further calls do nothing.
func Register(e *engine.Engine) {
	e.Shared(workerKey{}, func() any {
		w := &batchengine.Worker{Engine: e, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), Handlers: func() []string { return []string{batchengine.Bulk} },
			Topics: []string{batchengine.Topic(batchengine.Bulk)}, MaxConcurrency: concurrency,
			Body: func(ctx context.Context, t batchengine.Taken) ([]byte, []batchengine.Commit, error) {
				return nil, nil, serve(ctx, e, t)
			}}
		e.Background(w.Run)
		e.Serves(w.WorkKinds)
		e.Steps(w.WorkKinds, w.Step)
		return w
	})
}

// serve acts on one member. If it returns nil, the member's item has ended, and the worker finds that when it settles
// the item. Refusals are final; other errors are retried.
func serve(ctx context.Context, e *engine.Engine, t batchengine.Taken) error {
	batch, err := batchengine.Get(ctx, e, t.Batch)
	if err != nil {
		return err
	}
	b, err := bulkOf(batch)
	if err != nil {
		return err
	}
	var m Member
	if err := json.Unmarshal(t.Input, &m); err != nil {
		return err
	}
	a, err := b.check()
	if err != nil { // of a later version, or of an earlier one
		return refused(err)
	}
	ctx = refusals.WithCaller(ctx, refusals.Caller{Actor: b.Actor, Request: "bulk:" + b.ID})
	err = a.act(ctx, e, b.Order, m, func(ctx context.Context, tx *store.Tx) error { return end(ctx, tx, t) })
	if unended := (unended{}); err == nil || errors.As(err, &unended) || fault.CodeOf(err).Status() >= 500 {
		return err
	}
	return refused(err)
}

// refused marks a refusal as final. Its text is parsed by [refusalOf].
func refused(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "%s", err)
	}
	return fault.NonRetryable(f)
}

// unended is the error of an item that could not be ended: its lease was lost, or the bulk was cancelled. It is not a
// refusal of the action.
type unended struct{ error }

func (u unended) Unwrap() error { return u.error }

// end ends and accepts a member's item in the transaction of its action. An accepted item stays done if the bulk is
// cancelled later. If the bulk was cancelled before, nothing is accepted, and the transaction must not be committed.
func end(ctx context.Context, tx *store.Tx, t batchengine.Taken) error {
	if err := batchengine.SettleIn(ctx, tx, t, nil); err != nil {
		return unended{err}
	}
	n, err := batchengine.Finalize(ctx, tx, t.Batch, []string{t.Key}, "")
	if err != nil || n > 0 {
		return err
	}
	b, err := batchengine.Get(ctx, tx, t.Batch)
	if err == nil && b.Status != batchengine.Completed { // the last item has ended the bulk, which accepts all
		err = unended{fault.New(fault.LeaseLost, "bulk %s was cancelled", strings.TrimPrefix(t.Batch, batchengine.BulkPrefix))}
	}
	return err
}

// selection collects the members of an order.
type selection struct {
	ctx     context.Context
	doer    store.Doer
	order   Order
	seen    map[string]bool
	read    int
	members []Member
	refused []Refusal
}

// add adds a member, once: it may move to another page while the pages are read.
func (s *selection) add(m Member) error {
	if s.seen[m.ID] {
		return nil
	}
	if len(s.members) == MaxMembers {
		return s.tooMany("selects more than %d members", MaxMembers)
	}
	s.seen[m.ID] = true
	s.members = append(s.members, m)
	return nil
}

// tooMany refuses a filter that is too wide: the snapshot of the members is written in one transaction.
func (s *selection) tooMany(format string, n int) error {
	return fault.New(fault.Validation, "the filter "+format+": narrow it, or split the work into several bulks", n).With("pointer", "/filter").With("limit", n)
}

// byID reads the listed objects, which binds them to their versions.
func (s *selection) byID(a action) error {
	for _, id := range s.order.IDs {
		m, err := a.find(s, id)
		f, isFault := errors.AsType[*fault.Error](err)
		switch {
		case err == nil:
			err = s.add(m)
		case isFault && f.Code.Status() < 500:
			m.ID = id
			s.refused, err = append(s.refused, Refusal{m, f}), nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pages reads pages of objects until there are no more, and counts what it reads.
func pages[T any](s *selection, read func(after T, limit int) ([]T, error), each func(T) error) error {
	const size = 500
	for after := *new(T); ; {
		all, err := read(after, size)
		if err != nil {
			return err
		}
		if s.read += len(all); s.read > maxRead {
			return s.tooMany("reads more than %d objects", maxRead)
		}
		for _, x := range all {
			if err := each(x); err != nil {
				return err
			}
			after = x
		}
		if len(all) < size {
			return nil
		}
	}
}

// between reports whether a time is in the range of a filter.
func (f Filter) between(t time.Time) bool {
	return (f.Since.IsZero() || !t.Before(f.Since)) && (f.Until.IsZero() || t.Before(f.Until))
}

// expecting returns a binding to a number that is at least from, and otherwise none.
func expecting(n, from int64) *int64 {
	if n < from {
		return nil
	}
	return &n
}

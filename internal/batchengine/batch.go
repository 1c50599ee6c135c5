// Package batchengine runs batches: lists of work items, each paid for from a wallet.
//
// An item is leased while a worker works on it. The first take of an item charges
// its cost in the same transaction. Success keeps the charge, giving up returns it,
// and a cancel refunds exactly the charges of the items that it cancels. The row of
// the batch has the counts and decides every race: no item is taken once a cancel is
// recorded in it, and completion and cancel exclude each other there. A batch ends
// last, when none of its items is leased, waits or has to be cleaned up.
//
// Every statement locks in the order wallet, batch, item.
package batchengine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Statuses of a batch.
const (
	Pending    = "PENDING"
	Running    = "RUNNING"
	Paused     = "PAUSED"
	Cancelling = "CANCELLING"
	Cancelled  = "CANCELLED"
	Completed  = "COMPLETED"
)

// Statuses are all statuses of a batch.
var Statuses = []string{Pending, Running, Paused, Cancelling, Cancelled, Completed}

// States are all states of an item.
var States = []string{"pending", "waiting", "running", "succeeded", "failed", "cancelled"}

// Batch is the current state of a batch.
type Batch struct {
	ID, Wallet, Handler, Status          string
	MaxConcurrency, Attempts, MaxCrashes int64
	Timeout                              time.Duration
	Artifacts, Sealed, CancelRequested   bool
	// The items up to number Next have been taken at least once. Waiting to Flipped count only these: Waiting are due again,
	// Flipped are cancelled, and Accepted are some of the succeeded ones. Dirty counts the failed and cancelled items that
	// are not cleaned up yet.
	Items, Next                          int64
	Waiting, Running                     int64
	Succeeded, Accepted, Failed, Flipped int64
	Dirty                                int64
	Charged, Refunded                    int64
	Version                              int64
	Error                                string
	CreatedAt, UpdatedAt                 time.Time
	ItemsDeletedAt                       time.Time // zero while the batch has its items
	About                                string    // JSON, of a bulk; else empty
}

// Over reports whether the batch has ended.
func (b Batch) Over() bool { return b.Status == Cancelled || b.Status == Completed }

// Counts is the number of items per state. Each item is in one of the first five;
// the accepted items are some of the succeeded ones.
type Counts struct {
	Pending, Running, Succeeded, Failed, Cancelled, Accepted int64
}

// Counts returns the number of items per state. Items that were never taken count
// as cancelled once the batch is.
func (b Batch) Counts() Counts {
	c := Counts{Pending: b.Items - b.Next + b.Waiting, Running: b.Running, Succeeded: b.Succeeded, Failed: b.Failed, Cancelled: b.Flipped, Accepted: b.Accepted}
	if b.Status == Cancelled {
		c.Pending, c.Cancelled = b.Waiting, b.Flipped+b.Items-b.Next
	}
	return c
}

// Item is the current state of an item. Decision is "accepted", "cancelled" or "".
type Item struct {
	N                 int64
	Key               string
	Cost, Charged     int64
	Failures, Crashes int64
	Lost              int64 // hand-outs in a row after which the holder never called
	Epoch             int64
	Holder            string
	Until             time.Time
	State, Decision   string
	Input, Output     []byte
	Error             string
}

// Attempts returns the number of attempts, a running one included.
func (i Item) Attempts() int64 {
	n := i.Failures + i.Crashes
	if i.State == "running" || i.State == "succeeded" || i.State == "cancelled" && i.Epoch > n { // an attempt that neither failed nor crashed
		n++
	}
	return n
}

// Work is an item to add.
type Work struct {
	Key   string
	Cost  int64
	Input []byte // JSON, or nil
}

// New is a batch to create.
type New struct {
	ID             string        `arg:"batch"`
	Wallet         string        `arg:"wallet"`
	Handler        string        `arg:"handler"`
	MaxConcurrency int64         `arg:"parallel"`
	Attempts       int64         `arg:"attempts"` // maximum number of failed attempts
	MaxCrashes     int64         `arg:"allowed"`
	Timeout        time.Duration `arg:"timeout"`
	Retention      time.Duration `arg:"keep"`       // retention of the items after the end; 0 is that of the engine
	Undo           bool          `arg:"undo"`       // the handler undoes items that were started and then failed or were cancelled
	Artifacts      bool          `arg:"artifacts"`  // items may store artifacts
	About          string        `arg:"about,null"` // JSON, for a bulk only
	Open           bool          // not sealed: items may be added later
	Items          []Work
}

// Limits of batches.
const (
	MaxConcurrency = 10000
	MaxAttempts    = 100
	MaxPage        = 10000 // items per call
	MaxTimeout     = 24 * time.Hour
	// MaxCost is the maximum cost of an item. The charges of millions of items then
	// fit into 64 bits.
	MaxCost = 1_000_000_000_000
)

// A bulk is a batch of actions on other objects (package bulk). Its id has a prefix that no other
// batch can have, its items cost nothing, and its handler and wallet are reserved.
const (
	Bulk       = "$bulk"
	BulkPrefix = Bulk + "/"
)

// Defaults.
const (
	DefaultAttempts = 3
	pageBytes       = 16 << 20
)

// Stream returns the name of a batch's history stream.
func Stream(id string) string { return "$batch/" + id }

// Topic returns the topic that wakes the workers of a handler.
func Topic(handler string) string { return "batch/" + handler }

// Made is the topic that wakes workers of any handler when there are new items.
const Made = "batch-made"

// Maintenance is the topic that wakes teardown and cleanup.
const Maintenance = "batch-maintenance"

// ProgressTopic returns the topic that wakes the watchers of a batch.
func ProgressTopic(id string) string { return "batch-progress/" + id }

// CancelTopic returns the topic that is woken when a cancel of a batch is requested.
func CancelTopic(id string) string { return "batch-cancelled/" + id }

// row returns the name of a batch's row, for verbs that lock it.
func row(id string) string { return "batch/" + id }

type createArgs struct {
	New
	sealed bool   `arg:"sealed"`
	items  string `arg:"items"`
}

type found struct {
	applied bool
	what    string // made, there (the batch exists) or missing (the wallet does not)
}

type added struct {
	applied bool
	what    string // open, closed, other (an item with the same key differs), stale or missing (the batch does not exist)
	added   int64
	other   string // the key of that item
}

type addArgs struct {
	id      string `arg:"batch"`
	handler string
	items   string `arg:"items"`
}

type finalized struct {
	applied, exists bool
	taken           int64 // how many items were accepted
	unknownKey      string
}

type finalizeArgs struct {
	id   string `arg:"batch"`
	keys string `arg:"keys,null"` // "" for all
	by   string `arg:"actor,null"`
}

type listBulksArgs struct {
	before string `arg:"before"`
	limit  int    `arg:"limit"`
}

type listArgs struct {
	Filter
	place       string // after it, or before it
	last        string // of the ids
	scan, limit int
}

// Filter selects batches; empty fields match all.
type Filter struct {
	Status, Handler, Wallet string
	store.Times
}

// newListVerb declares a list with one bound of the ids.
func newListVerb(name, bound string, more func(listArgs, *store.Args)) *store.Verb[listArgs, []store.Found[Batch]] {
	return store.NewVerb(store.Decl{Name: name, Lane: store.Read}, nil, func(a listArgs, args *store.Args) {
		args.Text("status", a.Status)
		args.Text("handler", a.Handler)
		args.Text("wallet", a.Wallet)
		args.Text(bound, a.place)
		more(a, args)
		args.Int("scan", int64(a.scan))
		args.Int("limit", int64(a.limit))
		a.Bind(args)
	}, func(all *[]store.Found[Batch], r store.Row) error {
		var f store.Found[Batch]
		var err error
		f.Row, err = scanOne(r, &f.Wanted, &f.Edge)
		*all = append(*all, f)
		return err
	})
}

type itemsArgs struct {
	id    string `arg:"batch"`
	after int64  `arg:"after"`
	upto  int64  `arg:"upto"`
	state string `arg:"state"`
	limit int    `arg:"limit"`
}

var (
	createVerb = store.VerbOf[createArgs](store.Decl{Name: "batches.create", Events: store.HistoryEvents},
		func(a createArgs) []string { return []string{row(a.ID)} },
		store.Outcome(func(f *found) (*bool, []any) { return &f.applied, []any{&f.what} })).
		RecoverWith(func(createArgs, store.CommitProof) found { return found{applied: true} }).
		Wakes(func(a createArgs) []string { return []string{Topic(a.Handler), Made, Maintenance} }).
		Emits(func(a createArgs) store.Emission { return emits(a.ID, "created") })
	addVerb = store.VerbOf[addArgs](store.Decl{Name: "batches.add_items", Events: store.HistoryEvents},
		func(a addArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(f *added) (*bool, []any) { return &f.applied, []any{&f.what, &f.added, &f.other} })).
		RecoverWith(func(_ addArgs, m store.CommitProof) added {
			var data struct{ Added int64 }
			_ = json.Unmarshal(m.Data, &data) // written by Holdfast
			return added{applied: true, added: data.Added}
		}).
		Wakes(func(a addArgs) []string { return []string{Topic(a.handler), Made, ProgressTopic(a.id)} }).
		Emits(func(a addArgs) store.Emission { return emits(a.id, "itemsAdded") })
	sealVerb   = moveVerb[commandArgs]("batches.seal", "sealed")
	cancelVerb = moveVerb[commandArgs]("batches.cancel", "cancelled", "cancelRequested").
			Wakes(func(a commandArgs) []string { return []string{Maintenance, ProgressTopic(a.id), CancelTopic(a.id)} })
	finishVerb   = moveVerb[moveArgs]("batches.close", "completed", "cancelled")
	pauseVerb    = moveVerb[moveArgs]("batches.pause", "paused")
	resumeVerb   = moveVerb[moveArgs]("batches.resume", "resumed")
	finalizeVerb = store.VerbOf[finalizeArgs](store.Decl{Name: "batches.finalize", Events: store.HistoryEvents},
		func(a finalizeArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(f *finalized) (*bool, []any) { return &f.applied, []any{&f.exists, &f.taken, &f.unknownKey} })).
		RecoverWith(func(_ finalizeArgs, m store.CommitProof) finalized {
			var data struct{ Taken int64 }
			_ = json.Unmarshal(m.Data, &data) // written by Holdfast
			return finalized{applied: true, exists: true, taken: data.Taken}
		}).
		Wakes(func(a finalizeArgs) []string { return []string{ProgressTopic(a.id)} }).
		Emits(func(a finalizeArgs) store.Emission { return emits(a.id, "itemsAccepted") })
	getVerb   = store.NewVerb(store.Decl{Name: "batches.get", Lane: store.Read}, nil, store.TextArg("batch"), scanBatch)
	bulksVerb = store.VerbOf[listBulksArgs](store.Decl{Name: "batches.list_bulks", Lane: store.Read}, nil, scanBatch)
	listVerb  = newListVerb("batches.list", "after", func(a listArgs, args *store.Args) { args.Text("last", a.last) })
	backVerb  = newListVerb("batches.list_backward", "before", func(listArgs, *store.Args) {})
	itemsVerb = store.VerbOf[itemsArgs](store.Decl{Name: "batches.list_items", Lane: store.Read}, nil,
		store.Each(func(i *Item) []any {
			return []any{&i.N, &i.Key, &i.Cost, &i.Charged, &i.Failures, &i.Crashes, &i.Lost, &i.Epoch, &i.Holder, &i.Until, &i.State, &i.Decision, &i.Input, &i.Output, &i.Error}
		}))
)

type moveArgs struct {
	id      string `arg:"batch"`
	handler string // whose workers get work by the change
}

func (a moveArgs) move() moveArgs { return a }

// commandArgs are the arguments of a caller's command.
type commandArgs struct {
	moveArgs
	actor string `arg:"actor,null"`
}

// moveVerb returns a verb that changes the status of a batch if the transition is
// allowed.
func moveVerb[A interface{ move() moveArgs }](name string, names ...string) *store.Verb[A, bool] {
	return store.VerbOf[A](store.Decl{Name: name, Events: store.HistoryEvents},
		func(a A) []string { return []string{row(a.move().id)} },
		store.ScanApplied).RecoverWith(func(A, store.CommitProof) bool { return true }).
		Wakes(func(a A) []string {
			if a := a.move(); a.handler != "" {
				return []string{Topic(a.handler), Made, ProgressTopic(a.id)}
			}
			return []string{Maintenance, ProgressTopic(a.move().id)}
		}).
		Emits(func(a A) store.Emission { return emits(a.move().id, names...) })
}

func scanBatch(all *[]Batch, r store.Row) error {
	b, err := scanOne(r)
	*all = append(*all, b)
	return err
}

// scanOne scans a batch behind other columns.
func scanOne(r store.Row, before ...any) (b Batch, err error) {
	var timeout int64
	var pruned time.Time
	err = r.Scan(append(before, &b.ID, &b.Wallet, &b.Handler, &b.Status, &b.MaxConcurrency, &b.Attempts, &b.MaxCrashes, &timeout, &b.Artifacts, &b.Sealed, &b.CancelRequested,
		&b.Items, &b.Next, &b.Waiting, &b.Running, &b.Succeeded, &b.Accepted, &b.Failed, &b.Flipped, &b.Dirty, &b.Charged, &b.Refunded, &b.Version, &b.Error,
		&b.CreatedAt, &b.UpdatedAt, &pruned, &b.About)...)
	b.Timeout = time.Duration(timeout) * time.Millisecond
	if pruned.UnixMilli() != 0 {
		b.ItemsDeletedAt = pruned
	}
	return b, err
}

func emits(id string, names ...string) store.Emission {
	return store.Emission{Stream: Stream(id), Names: names}
}

func bit(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// Create creates a batch, or returns [fault.Conflict] if it exists.
func Create(ctx context.Context, d store.Doer, n New) (Batch, error) {
	n.MaxConcurrency, n.Attempts, n.MaxCrashes = cmp.Or(n.MaxConcurrency, 1), cmp.Or(n.Attempts, DefaultAttempts), cmp.Or(n.MaxCrashes, lease.MaxCrashes)
	n.Timeout = cmp.Or(n.Timeout, lease.Timeout)
	if e := store.DirectoryOf(d); e != nil {
		n.Retention = cmp.Or(n.Retention, TemplatesOf(e).Retention)
	}
	if err := n.check(); err != nil {
		return Batch{}, err
	}
	items, err := page(n.Items)
	if err != nil {
		return Batch{}, err
	}
	f, err := createVerb.Do(ctx, d, createArgs{n, !n.Open, items})
	switch {
	case err != nil:
		return Batch{}, err
	case f.what == "missing":
		return Batch{}, fault.New(fault.NotFound, "wallet %q for batch %q does not exist: create the wallet first", n.Wallet, n.ID).With("pointer", "/wallet")
	case !f.applied:
		return Batch{}, note(ctx, d, n.ID, "create", "", fault.New(fault.Conflict, "batch %q already exists: choose another id", n.ID).With("pointer", "/id"))
	}
	if !n.Open && len(n.Items) == 0 {
		if err := Close(ctx, d, n.ID); err != nil {
			return Batch{}, err
		}
	}
	return Get(ctx, d, n.ID)
}

func (n New) check() error {
	if err := cmp.Or(n.checkBulk(), CheckID(n.ID), strictjson.Text("wallet", n.Wallet, events.MaxName), strictjson.Text("handler", n.Handler, events.MaxName)); err != nil {
		return err
	}
	switch {
	case n.MaxConcurrency < 1 || n.MaxConcurrency > MaxConcurrency:
		return fault.New(fault.Validation, "parallel must be between 1 and %d, got %d", MaxConcurrency, n.MaxConcurrency).With("pointer", "/parallel")
	case n.Attempts < 1 || n.Attempts > MaxAttempts:
		return fault.New(fault.Validation, "attempts must be between 1 and %d, got %d", MaxAttempts, n.Attempts).With("pointer", "/attempts")
	case n.MaxCrashes < 1 || n.MaxCrashes > MaxAttempts:
		return fault.New(fault.Validation, "maxDeaths must be between 1 and %d, got %d", MaxAttempts, n.MaxCrashes).With("pointer", "/maxDeaths")
	case n.Retention != 0 && n.Retention < time.Millisecond:
		return fault.New(fault.Validation, "the retention of a batch must be at least 1ms, or 0 for the default, got %s", n.Retention).With("pointer", "/retentionMs")
	case n.Timeout < time.Millisecond || n.Timeout > MaxTimeout:
		return fault.New(fault.Validation, "an item's timeout must be between 1ms and %s, got %s", MaxTimeout, n.Timeout).With("pointer", "/timeoutMs")
	}
	return nil
}

// checkCommand validates the batch and the actor of a command.
func checkCommand(id, actor string) error {
	return cmp.Or(CheckID(id), events.CheckMeta(events.Meta{Actor: actor}))
}

// checkBulk refuses a batch of a program or a user that would pass for a bulk.
func (n New) checkBulk() error {
	if bulk := n.About != ""; bulk != strings.HasPrefix(n.ID, BulkPrefix) || bulk != (n.Handler == Bulk) || bulk != (n.Wallet == Bulk) || n.ID == Bulk {
		return fault.New(fault.Validation, "the id %[2]s, ids that begin with %[1]s, and the handler and the wallet %[2]s are reserved for bulks: choose others", BulkPrefix, Bulk)
	}
	return nil
}

// PublicID returns the id of a batch for callers who may not touch a bulk: that of a bulk becomes one that no batch has.
func PublicID(id string) string {
	if strings.HasPrefix(id, BulkPrefix) {
		return Bulk
	}
	return id
}

// CheckID validates the id of a batch. Stream names and ledger references contain it.
func CheckID(id string) error {
	if strings.Contains(strings.TrimPrefix(id, BulkPrefix), "/") {
		return fault.New(fault.Validation, "a batch id must not contain a slash, got %q", id).With("pointer", "/id")
	}
	return strictjson.Text("id", id, events.MaxName)
}

// page returns the JSON form of items for the SQL statements.
func page(items []Work) (string, error) {
	if len(items) > MaxPage {
		return "", fault.New(fault.PayloadTooLarge, "a call can add at most %[2]d items, got %[1]d: add the items to an open batch in several calls, then seal the batch", len(items), MaxPage)
	}
	all := make([][3]any, len(items))
	seen := make(map[string]int, len(items))
	size := 0
	for i, w := range items {
		at := func(field string) string { return fmt.Sprintf("/items/%d/%s", i, field) }
		if err := strictjson.Text("key", w.Key, events.MaxName); err != nil {
			return "", err
		}
		if j, twice := seen[w.Key]; twice {
			return "", fault.New(fault.Validation, "items %d and %d have the same key %q: give each item its own key", j, i, w.Key).With("pointer", at("key"))
		}
		seen[w.Key] = i
		if w.Cost < 0 || w.Cost > MaxCost {
			return "", fault.New(fault.Validation, "the cost of item %q must be between 0 and %d, got %d", w.Key, int64(MaxCost), w.Cost).With("pointer", at("cost"))
		}
		if len(w.Input) == 0 {
			w.Input = []byte("null")
		}
		if err := strictjson.Check(w.Input); err != nil {
			return "", fmt.Errorf("the input of item %q is invalid: %w", w.Key, err)
		}
		if size += len(w.Input) + len(w.Key); size > pageBytes {
			return "", fault.New(fault.PayloadTooLarge, "the items exceed %d bytes in total: add fewer items per call", pageBytes)
		}
		all[i] = [3]any{w.Key, w.Cost, json.RawMessage(w.Input)}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// Add adds items to an open batch and returns the number of new items. Items that
// the batch has already, with the same cost and input, are skipped, so a page that
// is sent again adds nothing.
func Add(ctx context.Context, d store.Doer, id string, items []Work) (int64, error) {
	text, err := page(items)
	if err != nil {
		return 0, err
	}
	b, err := Get(ctx, d, id)
	if err != nil || len(items) == 0 {
		return 0, err
	}
	f, err := addVerb.Do(ctx, d, addArgs{id, b.Handler, text})
	switch {
	case err != nil || f.applied:
		return f.added, err
	case f.what == "closed":
		if b, err = Get(ctx, d, id); err != nil {
			return 0, err
		}
		return 0, note(ctx, d, id, "addItems", "", refused(b, "accepts no more items"))
	case f.what == "other":
		return 0, fault.New(fault.Conflict, "batch %q already has an item %q with a different cost or input; nothing was added: use another key", id, f.other).With("key", f.other)
	case f.what == "missing":
		return 0, missing(id)
	}
	return 0, nil // the batch has all of them
}

// note records a refused command on a batch.
func note(ctx context.Context, d store.Doer, id, action, actor string, err error) error {
	return refusals.Note(ctx, d, refusals.Try{Stream: Stream(id), Action: action, Actor: actor}, err)
}

func refused(b Batch, what string) error {
	how := "it is " + b.Status
	switch {
	case b.CancelRequested && !b.Over():
		how = "its cancellation was requested (status " + b.Status + ")"
	case b.Sealed && !b.Over():
		how = "it is sealed (status " + b.Status + ")"
	}
	return fault.New(fault.InvalidTransition, "batch %q %s: %s", b.ID, what, how).With("status", b.Status)
}

func missing(id string) error { return fault.New(fault.NotFound, "batch %q does not exist", id) }

// Seal closes a batch to further items. Sealing it again does nothing.
func Seal(ctx context.Context, d store.Doer, id, actor string) (Batch, error) {
	if err := checkCommand(id, actor); err != nil {
		return Batch{}, err
	}
	moved, err := sealVerb.Do(ctx, d, commandArgs{moveArgs{id: id}, actor})
	if err == nil && moved {
		err = Close(ctx, d, id)
	}
	if err != nil {
		return Batch{}, err
	}
	b, err := Get(ctx, d, id)
	if err == nil && !b.Sealed {
		err = note(ctx, d, id, "seal", actor, refused(b, "cannot be sealed"))
	}
	return b, err
}

// Get returns a batch, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, id string) (Batch, error) {
	if err := CheckID(id); err != nil {
		return Batch{}, err
	}
	all, err := getVerb.Do(ctx, d, id)
	return store.First(all, err, func() error { return missing(id) })
}

// List returns batches in the order of their ids, after the given id, or backward: those that were created before the given
// batch, the newest first. A filter searches (store.Found).
func List(ctx context.Context, d store.Doer, f Filter, backward bool, after string, limit int) ([]store.Found[Batch], error) {
	if f.Status != "" && !slices.Contains(Statuses, f.Status) {
		return nil, fault.New(fault.Validation, "status must be one of %s, got %q", strings.Join(Statuses, ", "), f.Status).With("field", "status")
	}
	a := listArgs{Filter: f, place: after, last: store.Last, scan: store.SearchScan, limit: limit}
	if f == (Filter{}) {
		a.scan = limit
	}
	if backward {
		a.place = cmp.Or(after, store.Last)
		return backVerb.Do(ctx, d, a)
	}
	if after >= BulkPrefix {
		a.place = max(after, bulksEnd)
		return listVerb.Do(ctx, d, a)
	}
	a.last = BulkPrefix
	all, err := listVerb.Do(ctx, d, a)
	if err != nil || store.HasMore(all, limit) || store.Cut(ctx) {
		return all, err
	}
	a.place, a.last, a.limit = bulksEnd, store.Last, limit-len(all)
	more, err := listVerb.Do(ctx, d, a)
	return append(all, more...), err
}

// bulksEnd sorts after all ids of bulks, and before all other ids that are greater. Bulks are not read for a list of batches: there
// may be many more of them.
var bulksEnd = BulkPrefix + store.Last

// ListBulks returns bulks, the newest first, before the given id; "" is the newest.
func ListBulks(ctx context.Context, d store.Doer, before string, limit int) ([]Batch, error) {
	return bulksVerb.Do(ctx, d, listBulksArgs{cmp.Or(before, BulkPrefix+"~"), limit}) // ids are of letters and digits
}

// Items returns items in order, after the given number: those in a state,
// or all ("").
func Items(ctx context.Context, d store.Doer, id string, after int64, state string, limit int) ([]Item, error) {
	if state != "" && !slices.Contains(States, state) {
		return nil, fault.New(fault.Validation, "state must be one of %s, got %q", strings.Join(States, ", "), state).With("field", "state")
	}
	all, err := itemsVerb.Do(ctx, d, itemsArgs{id, after, math.MaxInt64, state, limit})
	if err == nil {
		err = complete(ctx, d, id)
	}
	return all, err
}

// complete returns an error if items of a batch were deleted. It is called after items were read, so that what is left of them is not
// taken for all: their deletion marks the batch first.
func complete(ctx context.Context, d store.Doer, id string) error {
	b, err := Get(ctx, d, id) // a bulk is deleted as a whole
	if err == nil && !b.ItemsDeletedAt.IsZero() {
		err = fault.New(fault.NotFound, "the items of batch %q were deleted from %s on, after their retention: the counts and sums of the batch remain", id, b.ItemsDeletedAt.UTC().Format(time.RFC3339)).With("status", b.Status)
	}
	return err
}

// SearchItems is [Items] for a state in a batch with the given number of items, as a search (store.Found). Items are numbered without gaps, so the
// edge is a number.
func SearchItems(ctx context.Context, d store.Doer, b Batch, after int64, state string, limit int) ([]store.Found[Item], error) {
	if !slices.Contains(States, state) {
		return nil, fault.New(fault.Validation, "state must be one of %s, got %q", strings.Join(States, ", "), state).With("field", "state")
	}
	upto := after + int64(store.SearchScan)
	some, err := itemsVerb.Do(ctx, d, itemsArgs{b.ID, after, upto, state, limit})
	if err == nil {
		err = complete(ctx, d, b.ID)
	}
	if err != nil {
		return nil, err
	}
	var all []store.Found[Item]
	for _, x := range some {
		all = append(all, store.Found[Item]{Row: x, Wanted: true})
	}
	if upto < b.Items && len(some) < limit && !store.Cut(ctx) {
		all = append(all, store.Found[Item]{Row: Item{N: upto}, Edge: true})
	}
	return all, nil
}

// Finalize accepts succeeded items, the named ones or all, and returns their
// number. It accepts none once a cancel is requested or the batch has ended.
func Finalize(ctx context.Context, d store.Doer, id string, keys []string, actor string) (int64, error) {
	if err := checkCommand(id, actor); err != nil {
		return 0, err
	}
	text := ""
	if keys != nil {
		text = store.JSON(keys)
	}
	f, err := finalizeVerb.Do(ctx, d, finalizeArgs{id, text, actor})
	switch {
	case err != nil || f.applied:
		return f.taken, err
	case !f.exists:
		return 0, missing(id)
	case f.unknownKey != "":
		if err := complete(ctx, d, id); err != nil {
			return 0, err
		}
		return 0, fault.New(fault.NotFound, "batch %q has no item %q; nothing was accepted: check the key", id, f.unknownKey).With("key", f.unknownKey)
	}
	return 0, nil
}

// Cancel cancels a batch. A batch without taken items is CANCELLED at once. For any
// other batch no further item starts, and accepted reports that the teardown is in
// progress. Cancel returns [fault.InvalidTransition] for a COMPLETED batch.
func Cancel(ctx context.Context, d store.Doer, id, actor string) (b Batch, accepted bool, err error) {
	if err := checkCommand(id, actor); err != nil {
		return b, false, err
	}
	if _, err = cancelVerb.Do(ctx, d, commandArgs{moveArgs{id: id}, actor}); err == nil {
		b, err = Get(ctx, d, id)
	}
	if err == nil && b.Status == Completed {
		err = note(ctx, d, id, "cancel", actor, refused(b, "cannot be cancelled"))
	}
	return b, err == nil && b.Status != Cancelled, err
}

// Close ends a batch that has nothing left to do, and otherwise does nothing.
func Close(ctx context.Context, d store.Doer, id string) error {
	_, err := finishVerb.Do(ctx, d, moveArgs{id: id})
	return err
}

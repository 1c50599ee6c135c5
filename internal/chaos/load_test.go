package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// outcome is what the test program knows about an operation.
type outcome int

const (
	open    outcome = iota // no response: it may exist, but not twice
	acked                  // it must exist once
	refused                // it must not exist
)

// row is a line of the summary table.
type row struct{ operations, acked, repeated, refused, lost, twice, unreported, uncertain, contradicted, stuck int }

// appended is an append with the ids of its events.
type appended struct {
	stream  string
	ids     []string
	outcome outcome
	last    int64
}

// change is a change of a scope: an increment, or a push or patch of a unique name.
type change struct {
	scope, kind, name string
	by                int64
	outcome           outcome
}

type runRecord struct {
	id, ticket, payload string
	cancelled           bool
	signalled           outcome
}

type batchRecord struct {
	id, wallet string
	costs      map[string]int64
	cancelled  bool
	made       outcome
}

type credit struct {
	wallet  string
	points  int64
	outcome outcome
}

// opLog records the operations of the test program and their outcomes.
type opLog struct {
	mu       sync.Mutex
	rows     map[string]*row
	defects  []string
	appends  []appended
	changes  []change
	orders   map[string]outcome // entities that workers pay
	desks    map[string]outcome // entities that workers claim manually
	runs     []runRecord
	batches  []batchRecord
	credits  []credit
	resolved map[string]int               // charges beyond the first that were known when an operation was resolved, by subject
	late     map[string]map[string]string // results of contradictions, by subject and id
	unknown  map[string]bool              // operations that were uncertain
}

// capabilities are the lines of the summary table, in order.
var capabilities = []string{"streams", "reactions", "lifecycles", "claims", "runs", "batches", "wallets", "scopes"}

func newOpLog() *opLog {
	b := &opLog{rows: make(map[string]*row), orders: make(map[string]outcome), desks: make(map[string]outcome), resolved: make(map[string]int),
		late: make(map[string]map[string]string), unknown: make(map[string]bool)}
	for _, c := range capabilities {
		b.rows[c] = new(row)
	}
	return b
}

// note runs f under the lock.
func (b *opLog) note(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// defect records a violation.
func (b *opLog) defect(format string, args ...any) {
	b.note(func() { b.defects = append(b.defects, fmt.Sprintf(format, args...)) })
}

// load submits operations.
type load struct {
	*caller
	*opLog
	submitted atomic.Int64
	later     sync.WaitGroup
}

// operationTimeout is the timeout of one operation: longer than the lease of an idempotency key
// whose server was killed.
const operationTimeout = 90 * time.Second

// submit sends one operation with its own idempotency key until the response is conclusive.
func submit[T any](ctx context.Context, l *load, capability string, f call[T], o ...client.Option) (T, outcome, error) {
	key := client.Key(fmt.Sprintf("%s-%d", capability, l.submitted.Add(1)))
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	out, attempts, err := try(ctx, l.caller, f, append(o, key)...)
	known := acked
	switch {
	case !conclusive(err):
		known = open
	case err != nil:
		known = refused
	}
	if code := fault.CodeOf(err); code == fault.Internal || code == fault.Validation || code == fault.Auth || code == fault.KeyMismatch {
		l.defect("%s: %v", capability, err)
	}
	l.note(func() {
		x := l.rows[capability]
		x.operations++
		x.repeated += attempts - 1
		if known == acked {
			x.acked++
		}
		if known == refused {
			x.refused++
		}
	})
	return out, known, err
}

// attend approves what is asked, and resolves uncertain operations, until leave is called or ctx ends.
func (l *load) attend(ctx context.Context, w *world) (leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { l.approve(ctx) })
	all.Go(func() { l.operator(ctx, w) })
	return func() {
		cancel()
		all.Wait()
	}
}

// acknowledged returns the number of acknowledged operations.
func (b *opLog) acknowledged() (n int) {
	b.note(func() {
		for _, x := range b.rows {
			n += x.acked
		}
	})
	return n
}

// run submits operations until there are enough, in a mix derived from the seed.
func (l *load) run(ctx context.Context, seed uint64, enough func() bool) {
	mix := []func(context.Context, *rand.Rand){l.append, l.append, l.append, l.append, l.change, l.change, l.change, l.order, l.order, l.order, l.desk,
		l.chase, l.chase, l.batch, l.credit}
	var callers sync.WaitGroup
	for i := range 12 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for !enough() && ctx.Err() == nil {
				mix[r.IntN(len(mix))](ctx, r)
			}
		})
	}
	callers.Wait()
	l.later.Wait()
}

func raw(x any) json.RawMessage {
	text, err := json.Marshal(x)
	if err != nil {
		panic(err) // all values of this test can be marshaled
	}
	return text
}

// append appends events, sometimes at an expected version.
func (l *load) append(ctx context.Context, r *rand.Rand) {
	a := appended{stream: fmt.Sprint("s-", r.IntN(8))}
	in := wire.Append{}
	for range 1 + r.IntN(3) {
		a.ids = append(a.ids, fmt.Sprint(r.Uint64()))
		in.Events = append(in.Events, wire.NewEvent{Name: "placed", Data: raw(map[string]string{"id": a.ids[len(a.ids)-1]})})
	}
	if r.IntN(4) == 0 {
		last, err := request(ctx, l.caller, with3(api.ReadStreamPage, a.stream, client.StreamRange{Backward: true}, client.Page{Limit: 1}))
		if err != nil {
			return
		}
		expected := int64(-1)
		if len(last.Items) > 0 {
			expected = last.Items[0].Version
		}
		in.ExpectedVersion = &expected
	}
	got, known, _ := submit(ctx, l, "streams", with2(api.AppendEvents, a.stream, in))
	a.outcome, a.last = known, got.LastVersion
	l.note(func() { l.appends = append(l.appends, a) })
}

// change changes a scope in one of three ways.
func (l *load) change(ctx context.Context, r *rand.Rand) {
	x := change{scope: fmt.Sprint("c-", r.IntN(4)), kind: []string{"inc", "push", "patch"}[r.IntN(3)], name: fmt.Sprint("n", r.Uint64()), by: 1 + r.Int64N(9)}
	how := with3(api.IncScope, "org", x.scope, wire.IncScope{Field: "sum", By: &x.by})
	switch x.kind {
	case "push":
		how = with3(api.PushScope, "org", x.scope, wire.PushScope{Field: "list", Value: raw(x.name)})
	case "patch":
		how = with3(api.PatchScope, "org", x.scope, raw(map[string]any{"patched": map[string]int64{x.name: x.by}}))
	}
	_, x.outcome, _ = submit(ctx, l, "scopes", how)
	l.note(func() { l.changes = append(l.changes, x) })
}

// entity creates an entity.
func (l *load) entity(ctx context.Context, lifecycle, id, capability string) outcome {
	_, known, _ := submit(ctx, l, capability, with2(api.CreateEntity, lifecycle, wire.NewEntity{ID: new(id)}))
	return known
}

// requesters are the requesters of the step pay. Each has a handler with another policy.
var requesters = []string{"hold", "retry", "probe", "opaque", "ask"}

// order creates an entity and fires its payment, sometimes twice at once.
func (l *load) order(ctx context.Context, r *rand.Rand) {
	id, requester, clicks := fmt.Sprintf("o%d", r.Uint64()), requesters[r.IntN(len(requesters))], 1+r.IntN(8)/7
	made := l.entity(ctx, "order", id, "lifecycles")
	l.note(func() { l.orders[id] = made })
	var all sync.WaitGroup
	for range clicks {
		all.Go(func() { l.fire(ctx, id, requester) })
	}
	all.Wait()
}

func (l *load) fire(ctx context.Context, id, requester string) {
	_, _, _ = submit(ctx, l, "lifecycles", with4(api.FireStep, "order", id, "pay", wire.Fire{Requester: requester}), client.Wait(0))
}

// desk creates an entity that a worker claims manually.
func (l *load) desk(ctx context.Context, r *rand.Rand) {
	id := fmt.Sprintf("d%d", r.Uint64())
	made := l.entity(ctx, "desk", id, "claims")
	l.note(func() { l.desks[id] = made })
}

// chase starts a run and later sends its signal, or cancels the run.
func (l *load) chase(ctx context.Context, r *rand.Rand) {
	x := runRecord{ticket: fmt.Sprintf("t%d", r.Uint64()), payload: fmt.Sprint(r.Uint64())}
	policy, wait, cancel := []string{"Hold", "Retry", "Probe", "Opaque"}[r.IntN(4)], time.Duration(r.IntN(1500))*time.Millisecond, r.IntN(8) == 0
	if l.entity(ctx, "ticket", x.ticket, "runs") != acked {
		return
	}
	name := "chase-" + x.ticket
	in := wire.StartRun{DefinitionID: "chase" + policy + "@1", Input: raw(map[string]string{"ticket": x.ticket}), IdempotencyKey: &name}
	started, known, _ := submit(ctx, l, "runs", with1(api.StartRun, in))
	if x.id = started.Run.ID; known != acked {
		return
	}
	l.later.Go(func() {
		if pause(ctx, wait); cancel {
			_, known, _ := submit(ctx, l, "runs", with2(api.CancelRun, x.id, wire.Command{}))
			x.cancelled = known == acked
		} else {
			_, x.signalled, _ = submit(ctx, l, "runs", with2(api.SignalRun, x.id, wire.Signal{Type: "payment", ID: &x.payload, Payload: raw(x.payload)}))
		}
		l.note(func() { l.runs = append(l.runs, x) })
	})
}

// approve approves pending approvals until ctx ends.
func (l *load) approve(ctx context.Context) {
	decided := make(map[string]bool)
	for pause(ctx, 300*time.Millisecond) {
		pending, err := list(ctx, l.caller, all1(api.ListApprovals, client.ApprovalFilter{Status: "pending"}))
		if err != nil {
			continue
		}
		var all sync.WaitGroup
		for _, x := range pending {
			if decided[x.ID] {
				continue
			}
			decided[x.ID] = true
			all.Go(func() {
				_, known, err := submit(ctx, l, "runs", with2(api.DecideApproval, x.ID, wire.Decide{Decision: "approved"}))
				if known == refused && !errors.Is(err, fault.Of(fault.Conflict)) && !errors.Is(err, fault.Of(fault.InvalidTransition)) {
					l.defect("a decision was refused: %v", err)
				}
			})
		}
		all.Wait()
	}
}

// batch creates a batch, in one request or in pages, and later may finalize or cancel it.
func (l *load) batch(ctx context.Context, r *rand.Rand) {
	b := batchRecord{id: fmt.Sprintf("b%d", r.Uint64()), wallet: fmt.Sprint("w-", r.IntN(3)), costs: make(map[string]int64)}
	in := wire.NewBatch{ID: new(b.id), Wallet: b.wallet, Handler: "Scan", Parallel: 4, Open: r.IntN(3) == 0}
	page := func(n int) (items []wire.NewItem) {
		for range n {
			x := wire.NewItem{Key: fmt.Sprint("k", len(b.costs)), Cost: new(r.Int64N(5))}
			b.costs[x.Key] = *x.Cost
			items = append(items, x)
		}
		return items
	}
	in.Items = page(2 + r.IntN(4))
	_, b.made, _ = submit(ctx, l, "batches", with1(api.CreateBatch, in))
	if in.Open && b.made == acked {
		more := wire.AddItems{Items: page(2)}
		_, known, _ := submit(ctx, l, "batches", with2(api.AddItems, b.id, more))
		_, sealed, _ := submit(ctx, l, "batches", with1(api.SealBatch, b.id))
		if known != acked || sealed != acked {
			l.defect("a page of batch %s was not added, or the batch was not sealed: %d %d", b.id, known, sealed)
		}
	}
	what, wait := r.IntN(3), time.Duration(r.IntN(1500))*time.Millisecond
	l.later.Go(func() {
		switch pause(ctx, wait); {
		case b.made != acked:
		case what == 0:
			_, known, _ := submit(ctx, l, "batches", with1(api.CancelBatch, b.id))
			b.cancelled = known == acked
		case what == 1:
			_, _, _ = submit(ctx, l, "batches", with1(api.AcceptAllItems, b.id))
		}
		l.note(func() { l.batches = append(l.batches, b) })
	})
}

// credit adds points to a wallet.
func (l *load) credit(ctx context.Context, r *rand.Rand) {
	x := credit{wallet: fmt.Sprint("w-", r.IntN(3)), points: 1 + r.Int64N(40)}
	reference := fmt.Sprint("p", r.Uint64())
	_, x.outcome, _ = submit(ctx, l, "wallets", with2(api.CreditWallet, x.wallet, wire.Credit{Points: x.points, Reference: reference}))
	l.note(func() { l.credits = append(l.credits, x) })
}

package batchengine

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Finished is an item whose work has succeeded.
type Finished struct {
	Taken
	Output []byte // JSON, or nil
}

type settleItemsArgs struct {
	id, handler string
	items       []Finished
}

type settledItems struct{ applied, over bool }

var settleItemsVerb = store.NewVerb(store.Decl{Name: "batches.settle_items", Group: true, Commutative: true, Events: store.HistoryEvents},
	func(a settleItemsArgs) []string { return []string{row(a.id)} },
	func(a settleItemsArgs, args *store.Args) {
		args.Text("batch", a.id)
		args.Int("size", int64(len(a.items)))
		store.Rows(args, a.items, func(_ int, f Finished, row *store.Args) {
			row.Text("key", f.Key)
			row.Int("epoch", f.Epoch)
			row.Text("output", string(f.Output))
		})
	},
	store.Outcome(func(s *settledItems) (*bool, []any) { return &s.applied, []any{&s.over} })).
	RecoverWith(func(_ settleItemsArgs, m store.CommitProof) settledItems {
		var data struct{ Over bool }
		_ = json.Unmarshal(m.Data, &data) // written by Holdfast
		return settledItems{true, data.Over}
	}).
	Wakes(func(a settleItemsArgs) []string { return []string{Topic(a.handler), ProgressTopic(a.id)} }).
	Emits(func(a settleItemsArgs) store.Emission { return emits(a.id, "itemSucceeded") })

// SettleAll ends items of one batch with their outputs in one statement, and reports whether
// it did: all or none. If not, [Settle] returns the reason for each item, and settles
// those that it can. An error says nothing about a single item either.
func SettleAll(ctx context.Context, d store.Doer, all []Finished) (bool, error) {
	if len(all) == 0 {
		return true, nil
	}
	all = slices.Clone(all)
	for i := range all {
		if all[i].Output == nil {
			all[i].Output = []byte("null")
		}
		if err := strictjson.Check(all[i].Output); err != nil {
			return false, err
		}
	}
	slices.SortFunc(all, func(a, b Finished) int { return strings.Compare(a.Key, b.Key) }) // the order in which they are locked
	first := all[0].Taken
	s, err := settleItemsVerb.DoAt(ctx, d, first.partition(), settleItemsArgs{first.Batch, first.Handler, all})
	if err != nil || !s.applied {
		return false, err
	}
	return true, finishIfOver(ctx, d, first.partition(), first.Batch, s.over)
}

// Limits of the items that are settled together.
const (
	maxSettled      = 500
	maxSettledBytes = 4 << 20
)

// settler settles the finished items of a worker.
//
// An item that finishes while no other of its batch is being settled is settled at once, with
// those that finish at the same time: it lets the goroutines run that can run. Those that finish
// while it is settled wait, and are then settled together. The first of several calls [SettleAll]
// for all, so that the batch is locked and its counts are updated once. There is no timer, and a
// single item does not wait.
//
// What SettleAll does not settle, each item settles itself under its own context: an error of
// one, or of the one that made the call, is not an error of the others. This is safe even if the
// outcome is unknown, because [Settle] returns the same result when it is repeated.
type settler struct {
	mu    sync.Mutex
	calls map[batchRef]*settling
}

// settling is a batch whose items are being settled.
type settling struct {
	waiting []*finishing
	ended   chan struct{} // closed when the current call has ended
}

type batchRef struct {
	store.Partition
	id string
}

// finishing is an item that waits to be settled.
type finishing struct {
	Finished
	notice chan notice // buffered: one is sent
}

// notice ends the wait of an item: it is settled, or it settles itself, perhaps with others.
type notice struct {
	settled bool
	lead    []*finishing // the items to settle, if this one is to make the call
}

func (s *settler) settle(ctx context.Context, e store.Doer, f Finished) error {
	ref := batchRef{f.partition(), f.Batch}
	w := &finishing{f, make(chan notice, 1)}
	var mine notice
	if s.enter(ref, w) {
		yield(func() int { return s.waitFor(ref) })
		mine.lead = s.next(ref, w)
	} else {
		var err error
		if mine, err = s.wait(ctx, ref, w); err != nil {
			return err
		}
	}
	if mine.lead != nil {
		defer s.leave(ref)
	}
	if len(mine.lead) > 1 {
		mine.settled = together(ctx, e, mine.lead)
	}
	if mine.settled {
		return nil
	}
	_, err := Settle(ctx, e, f.Taken, f.Output)
	return err
}

// together makes the call of the first of several items, and tells the others.
func together(ctx context.Context, e store.Doer, all []*finishing) (settled bool) {
	defer func() {
		for _, w := range all[1:] {
			w.notice <- notice{settled: settled}
		}
	}()
	items := make([]Finished, len(all))
	for i, w := range all {
		items[i] = w.Finished
	}
	settled, _ = SettleAll(ctx, e, items) // Settle finds the error again
	return settled
}

// enter reports whether an item can be settled at once; if not, it waits.
func (s *settler) enter(ref batchRef, w *finishing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[ref]; c != nil {
		c.waiting = append(c.waiting, w)
		return false
	}
	if s.calls == nil {
		s.calls = make(map[batchRef]*settling)
	}
	s.calls[ref] = &settling{ended: make(chan struct{})}
	return true
}

// waitFor returns how many items wait for the current call for a batch.
func (s *settler) waitFor(ref batchRef) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls[ref].waiting)
}

// yield lets other goroutines run for as long as this makes n grow.
func yield(n func() int) {
	for before, now := -1, n(); now > before; {
		runtime.Gosched()
		before, now = now, n()
	}
}

// wait waits for an item's notice. If its context ends first, it withdraws.
func (s *settler) wait(ctx context.Context, ref batchRef, w *finishing) (notice, error) {
	select {
	case t := <-w.notice:
		return t, nil
	case <-ctx.Done():
	}
	if s.withdraw(ref, w) {
		return notice{}, ctx.Err()
	}
	return <-w.notice, nil // another item has included it in its call
}

func (s *settler) withdraw(ref batchRef, w *finishing) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[ref]
	if c == nil {
		return false
	}
	i := slices.Index(c.waiting, w)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	return i >= 0
}

// await waits until the current call for a batch, if there is one, has ended.
func (s *settler) await(ctx context.Context, ref batchRef) {
	s.mu.Lock()
	c := s.calls[ref]
	var ended chan struct{}
	if c != nil {
		ended = c.ended
	}
	s.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// leave ends a call: the items that have finished meanwhile are next.
func (s *settler) leave(ref batchRef) {
	if next := s.next(ref, nil); len(next) > 0 {
		next[0].notice <- notice{lead: next}
	}
}

// next returns the items to settle in one call: first, if there is one, and those that wait. Without first, the current call
// ends. If no item waits, the next one that finishes is settled at once.
func (s *settler) next(ref batchRef, first *finishing) (all []*finishing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, size := s.calls[ref], 0
	if first != nil {
		all, size = append(all, first), len(first.Output)
	} else {
		close(c.ended)
		c.ended = make(chan struct{})
	}
	for len(c.waiting) > 0 && len(all) < maxSettled && (len(all) == 0 || size+len(c.waiting[0].Output) <= maxSettledBytes) {
		size += len(c.waiting[0].Output)
		all, c.waiting = append(all, c.waiting[0]), c.waiting[1:]
	}
	if len(all) == 0 {
		delete(s.calls, ref)
	}
	return all
}

package batchengine

import (
	"context"
	"encoding/json"
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
// An item that finishes while no other of its batch is being settled is settled at once, by
// itself. Those that finish meanwhile wait, and are then settled together: the first of them
// calls [SettleAll] for all, so that the batch is locked and its counts are updated once. There
// is no timer, and a single item does not wait.
//
// What SettleAll does not settle, each item settles itself under its own context: an error of
// one, or of the one that made the call, is not an error of the others. This is safe even if the
// outcome is unknown, because [Settle] returns the same result when it is repeated.
type settler struct {
	mu sync.Mutex
	// waiting has an entry for each batch whose items are being settled.
	waiting map[batchRef][]*finishing
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
	mine := notice{lead: []*finishing{w}}
	if !s.enter(ref, w) {
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
	others, busy := s.waiting[ref]
	if !busy {
		if s.waiting == nil {
			s.waiting = make(map[batchRef][]*finishing)
		}
		s.waiting[ref] = nil
		return true
	}
	s.waiting[ref] = append(others, w)
	return false
}

// wait waits for an item's notice. If its context ends first, it withdraws.
func (s *settler) wait(ctx context.Context, ref batchRef, w *finishing) (notice, error) {
	select {
	case t := <-w.notice:
		return t, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting[ref], w)
	if i >= 0 {
		s.waiting[ref] = slices.Delete(s.waiting[ref], i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		return notice{}, ctx.Err()
	}
	return <-w.notice, nil // another item has included it in its call
}

// leave ends a call: the items that have finished meanwhile are next.
func (s *settler) leave(ref batchRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting[ref]
	if len(waiting) == 0 {
		delete(s.waiting, ref)
		return
	}
	n, size := 0, 0
	for n < min(len(waiting), maxSettled) && (n == 0 || size+len(waiting[n].Output) <= maxSettledBytes) {
		size += len(waiting[n].Output)
		n++
	}
	s.waiting[ref] = waiting[n:]
	waiting[0].notice <- notice{lead: waiting[:n:n]}
}

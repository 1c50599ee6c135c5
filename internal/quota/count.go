package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

type countArgs struct {
	limit int64 `arg:"limit"`
}

var (
	countWorkVerb        = store.VerbOf[countArgs](store.Decl{Name: "quotas.count_work", Lane: store.Read}, nil, store.ScanValue[int64])
	countDefinitionsVerb = store.VerbOf[countArgs](store.Decl{Name: "quotas.count_definitions", Lane: store.Read}, nil, store.ScanValue[int64])
	sumStorageVerb       = store.VerbOf[struct{}](store.Decl{Name: "quotas.sum_storage", Lane: store.Read, Slow: true}, nil, store.ScanValue[int64])
)

// countCap is up to how many objects of each kind are counted for a workspace without a limit.
const countCap = 1_000_000

// counterOf returns the function that counts what a workspace uses, up to a little more than the limit of each kind of object.
func (q *Quotas) counterOf(workspace string, k Kind, limit int64) counter {
	if limit == 0 {
		limit = countCap
	}
	return func(ctx context.Context) (int64, error) {
		ctx = store.InWorkspace(ctx, workspace)
		at, err := q.d.Partition(ctx, store.Read)
		if err != nil {
			return 0, err
		}
		if k == Definitions {
			return countDefinitionsVerb.DoAt(ctx, q.d, at, countArgs{limit + 1})
		}
		return countWorkVerb.DoAt(ctx, q.d, at, countArgs{limit + 1})
	}
}

// Storage is counted in the background, because the sum reads all of a workspace. Until the first sum has ended, only what this node has
// accepted counts. After a sum that failed, everything is accepted until one succeeds.
const (
	// sumEvery is how long a sum is used while there is room. One that took long is used for twenty times as long as it took.
	sumEvery = 30 * time.Second
	// sumAgain is the same while there is no room, so that a workspace that has deleted something is soon accepted again.
	sumAgain = time.Second
)

// takeStorage takes n bytes, if there is room.
func (q *Quotas) takeStorage(workspace string, g *gauge, n, limit int64) (used int64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	used = g.used()
	full, every := used+n > limit, sumEvery
	if full && g.failed.IsZero() {
		every = sumAgain
	}
	if now := clock.OfMachine(); g.counting == nil && (g.begun == 0 || now.Sub(later(g.at, g.failed)) >= max(every, 20*g.took)) {
		go q.sum(workspace, g, g.begin())
	}
	if full && g.failed.IsZero() {
		return used, false
	}
	g.writing += n
	return used, true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sum adds up the storage of a workspace. A node adds up one workspace at a time, so that it needs one connection.
func (q *Quotas) sum(workspace string, g *gauge, end func(int64, error)) {
	n, err := q.sumNow(store.InWorkspace(q.life, workspace))
	if err != nil && q.life.Err() == nil {
		q.log.Warn("failed to add up the storage of a workspace for its quota", "workspace", workspace, "error", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	end(n, err)
}

func (q *Quotas) sumNow(ctx context.Context) (int64, error) {
	if err := q.summing.One(ctx); err != nil {
		return 0, err
	}
	defer q.summing.Free(1)
	at, err := q.d.Partition(ctx, store.Read)
	if err != nil {
		return 0, err
	}
	return sumStorageVerb.DoAt(ctx, q.d, at, struct{}{})
}

// storageUsed returns how many bytes a workspace stores, by the last sum. If there is none, it begins one, and ok is false.
func (q *Quotas) storageUsed(workspace string) (used int64, ok bool) {
	g := q.gauge(workspace, Storage)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun == 0 {
		go q.sum(workspace, g, g.begin())
	}
	return g.counted + g.accepted, !g.at.IsZero()
}

// size formats a number of bytes.
func size(n int64) string {
	for _, unit := range []string{"bytes", "KiB", "MiB"} {
		if n < 10*1024 {
			return fmt.Sprint(n, " ", unit)
		}
		n /= 1024
	}
	return fmt.Sprint(n, " GiB")
}

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

// countCap is up to how much is counted for a workspace without a limit.
const countCap = 1_000_000

// count counts what the context's workspace uses, a little more than the limit at the most of each kind of object.
func count(ctx context.Context, d store.Doer, k Kind, limit int64) (int64, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return 0, err
	}
	if limit == 0 {
		limit = countCap
	}
	if k == Definitions {
		return countDefinitionsVerb.DoAt(ctx, d, at, countArgs{limit + 1})
	}
	return countWorkVerb.DoAt(ctx, d, at, countArgs{limit + 1})
}

// Storage is counted in the background, because the count reads all of a workspace. Until the first count has ended, only what this node has
// accepted counts.
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
	if full {
		every = sumAgain
	}
	if g.counting == nil && (g.at.IsZero() || clock.OfMachine().Sub(g.at) >= max(every, 20*g.took)) {
		q.sum(workspace, g)
	}
	if full {
		return used, false
	}
	g.writing += n
	return used, true
}

// sum counts the storage of a workspace in the background. REQUIRES: g.mu
func (q *Quotas) sum(workspace string, g *gauge) {
	end := g.begin()
	go func() {
		ctx := store.InWorkspace(q.life, workspace)
		n, err := q.sumNow(ctx)
		if err != nil && ctx.Err() == nil {
			q.log.Warn("failed to count the storage of a workspace for its quota", "workspace", workspace, "error", err)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		end(n, err)
	}()
}

func (q *Quotas) sumNow(ctx context.Context) (int64, error) {
	at, err := q.d.Partition(ctx, store.Read)
	if err != nil {
		return 0, err
	}
	return sumStorageVerb.DoAt(ctx, q.d, at, struct{}{})
}

// storageUsed returns how many bytes a workspace stores. If that is not known yet, it waits for the count.
func (q *Quotas) storageUsed(ctx context.Context, workspace string) int64 {
	g := q.gauge(workspace, Storage)
	g.mu.Lock()
	if g.at.IsZero() && g.counting == nil {
		q.sum(workspace, g)
	}
	over := g.counting
	if !g.at.IsZero() {
		over = nil
	}
	g.mu.Unlock()
	if over != nil {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at.IsZero() {
		return -1
	}
	return g.used()
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

// Package quota limits what one workspace may use of a server, so that it leaves the rest to the others.
//
//	q := quota.New(engine, log, map[string]quota.Limits{"*": {Work: 1000}})
//	t, err := q.Take(ctx, quota.Work, 1) // before the write; QUOTA_EXCEEDED if there is no room
//	defer t.End(err == nil)
//
// A quota is a protection and not an invariant. What a workspace has is counted by a read that other requests share, and what this node has
// accepted since then is added. Nodes do not know what the others have accepted meanwhile, so with several nodes a workspace can
// exceed a quota by what they accept between two counts. An exact counter would be one row that all commands of a workspace lock.
package quota

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Kind is a kind of quota.
type Kind uint8

const (
	// Requests limits the requests per second that a node serves.
	Requests Kind = iota
	// Connections limits the event streams and waiting requests that a node has open at the same time.
	Connections
	// Work limits the operations, runs and items of batches that have not ended.
	Work
	// Storage limits the bytes that are stored.
	Storage
	// Definitions limits the definitions, lifecycles, reactions, handlers, webhooks, secrets and API keys.
	Definitions

	kinds = iota
)

// names are the names of the kinds in settings, errors and metrics.
var names = [kinds]string{"requests", "connections", "work", "storage", "definitions"}

// String returns the name.
func (k Kind) String() string { return names[k] }

// PerNode reports whether each node counts by itself.
func (k Kind) PerNode() bool { return k == Requests || k == Connections }

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Requests, Connections, Work, Storage, Definitions} }

// All is the name of the limits of the workspaces that have none of their own.
const All = "*"

// None is a limit without effect.
const None = -1

// Limits are the limits of a workspace, by kind. 0 is the limit of [All], and there the default.
type Limits [kinds]int64

// Defaults protect a node. They leave room for everything that one node was seen to do. Storage has none, because a node does not know the
// disks of its database.
var Defaults = Limits{Requests: 10_000, Connections: 1_000, Work: 1_000_000, Storage: None, Definitions: 10_000}

// or returns the limits with those of b for what is not set.
func (a Limits) or(b Limits) Limits {
	for k := range a {
		if a[k] == 0 {
			a[k] = b[k]
		}
	}
	return a
}

// Quotas are the quotas of one node. They are safe for concurrent use.
type Quotas struct {
	d       store.Doer
	log     *slog.Logger
	limits  map[string]Limits
	rates   keys.Limits
	life    context.Context // of the counts
	summing lease.Slots     // sums of storage

	mu     sync.Mutex
	spaces map[string]*space
}

// space is what a node knows of the use of one workspace.
type space struct {
	connections                atomic.Int64
	work, definitions, storage gauge
	refused                    [kinds]atomic.Int64 // requests
}

// New returns the quotas of a node. limits are by workspace, or [All]. Counts end with life.
func New(life context.Context, d store.Doer, log *slog.Logger, limits map[string]Limits) *Quotas {
	return &Quotas{d: d, log: log, limits: limits, life: life, summing: lease.NewSlots(1), spaces: make(map[string]*space)}
}

// Limit returns a limit of a workspace, or 0 if it has none.
func (q *Quotas) Limit(workspace string, k Kind) int64 {
	return max(q.limits[workspace].or(q.limits[All]).or(Defaults)[k], 0)
}

// Refused returns how many requests of all workspaces this node has refused because of a quota.
func (q *Quotas) Refused(k Kind) (n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.spaces {
		n += s.refused[k].Load()
	}
	return n
}

func (q *Quotas) space(workspace string) *space {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.spaces[workspace]
	if s == nil {
		s = new(space)
		q.spaces[workspace] = s
	}
	return s
}

// Request counts a request of a workspace, or refuses it.
func (q *Quotas) Request(workspace string) error {
	limit := q.Limit(workspace, Requests)
	wait := q.rates.Take(workspace, int(limit))
	if limit == 0 || wait <= 0 {
		return nil
	}
	seconds := int(wait.Seconds()) + 1
	return q.refuse(workspace, Requests, limit, nil, "make fewer than %d requests per second, and try again in %d s", limit, seconds).AsRetryable().With("retryAfter", seconds)
}

// Connect counts an event stream or a waiting request until free is called, or refuses it.
func (q *Quotas) Connect(workspace string) (free func(), err error) {
	free, ok := q.TryConnect(workspace, false)
	if !ok {
		limit := q.Limit(workspace, Connections)
		return nil, q.refuse(workspace, Connections, limit, nil, "close event streams or requests that wait, of which %d may be open, and try again", limit).AsRetryable().With("retryAfter", 1)
	}
	return free, nil
}

// TryConnect counts a waiting request until free is called, if there is room or if it must wait.
func (q *Quotas) TryConnect(workspace string, must bool) (free func(), ok bool) {
	limit, open := q.Limit(workspace, Connections), &q.space(workspace).connections
	if n := open.Add(1); limit > 0 && n > limit && !must {
		open.Add(-1)
		return nil, false
	}
	return func() { open.Add(-1) }, true
}

// Taken is what a request has taken of a quota.
type Taken struct {
	of *gauge
	n  int64
}

// End ends the request: what it took is used if it was written, and otherwise free.
func (t Taken) End(written bool) {
	if t.of != nil {
		t.of.end(t.n, written)
	}
}

// Take takes n of a quota of the context's workspace, or refuses it. It must be called outside of transactions, because it may read.
func (q *Quotas) Take(ctx context.Context, k Kind, n int64) (Taken, error) {
	workspace := store.WorkspaceOf(ctx)
	limit := q.Limit(workspace, k)
	if limit == 0 || n == 0 {
		return Taken{}, nil
	}
	g := q.gauge(workspace, k)
	used, ok := q.takeOf(ctx, g, k, n, limit)
	if ok {
		return Taken{g, n}, nil
	}
	if k == Storage {
		return Taken{}, q.refuse(workspace, k, limit, &used, "it stores %s of %s: delete what is no longer needed, or ask the operator of the server for more", size(used), size(limit))
	}
	return Taken{}, q.refuse(workspace, k, limit, &used, "it has %d of %d, and %d more were requested: %s, or ask the operator of the server for more", used, limit, n, remedies[k])
}

// Freed notes that a request of a workspace may have ended work or deleted something.
func (q *Quotas) Freed(workspace string) {
	s := q.space(workspace)
	s.work.free()
	s.definitions.free()
}

// remedies say how a caller makes room.
var remedies = map[Kind]string{Work: "wait until open work ends, or cancel some", Definitions: "delete handlers, reactions, webhooks, secrets or API keys"}

func (q *Quotas) takeOf(ctx context.Context, g *gauge, k Kind, n, limit int64) (used int64, ok bool) {
	if k == Storage {
		return q.takeStorage(store.WorkspaceOf(ctx), g, n, limit)
	}
	return g.take(ctx, n, limit, q.life, q.counterOf(store.WorkspaceOf(ctx), k, limit))
}

func (q *Quotas) gauge(workspace string, k Kind) *gauge {
	s := q.space(workspace)
	return [kinds]*gauge{Work: &s.work, Storage: &s.storage, Definitions: &s.definitions}[k]
}

func (q *Quotas) refuse(workspace string, k Kind, limit int64, used *int64, format string, args ...any) *fault.Error {
	q.space(workspace).refused[k].Add(1)
	err := fault.New(fault.QuotaExceeded, "workspace %q has reached its quota of "+k.String()+": "+format, append([]any{workspace}, args...)...).With("quota", k.String()).With("limit", limit)
	if used != nil {
		err = err.With("used", *used)
	}
	return err
}

// Use is what a workspace uses of one quota.
type Use struct {
	Kind  Kind
	Limit int64 // 0 for none
	Used  int64 // -1 if it is not known
	// Refused is how many requests this node has refused because of the quota.
	Refused int64
}

// Uses returns what the context's workspace uses of each quota. Requests are not counted beyond a moment, and storage only if it is limited.
func (q *Quotas) Uses(ctx context.Context) []Use {
	workspace := store.WorkspaceOf(ctx)
	all := make([]Use, 0, kinds)
	for _, k := range Kinds() {
		u := Use{Kind: k, Limit: q.Limit(workspace, k), Used: -1, Refused: q.space(workspace).refused[k].Load()}
		switch k {
		case Requests:
		case Connections:
			u.Used = q.space(workspace).connections.Load()
		case Storage:
			if u.Limit == 0 {
				break
			}
			if n, ok := q.storageUsed(workspace); ok {
				u.Used = n
			}
		default:
			if n, ok := q.gauge(workspace, k).get(ctx, q.life, q.counterOf(workspace, k, u.Limit)); ok {
				u.Used = n
			}
		}
		all = append(all, u)
	}
	return all
}

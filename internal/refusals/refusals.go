// Package refusals logs refused attempts of steps, so that races can be inspected. The log is best effort:
// written outside transactions, slightly delayed, and incomplete while the database is busy or a workspace is
// refused more than [Rate] times a second. Nothing depends on it.
package refusals

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Attempt is a refused attempt.
type Attempt struct {
	Lifecycle, Entity string
	Step, Requester   string
	Code              string
	Detail            map[string]any
	ID                string
	At                time.Time
}

type noted struct {
	Workspace string          `json:"w"`
	Lifecycle string          `json:"l"`
	Entity    string          `json:"e"`
	ID        string          `json:"i"`
	Step      string          `json:"s"`
	Requester string          `json:"r"`
	Code      string          `json:"c"`
	Detail    json.RawMessage `json:"d"`
}

type listArgs struct {
	lifecycle string `arg:"lifecycle"`
	entity    string `arg:"entity"`
	limit     int    `arg:"limit"`
}

type pruneArgs struct {
	age   time.Duration `arg:"age"`
	limit int           `arg:"limit"`
}

var (
	recordVerb = store.NewVerb(store.Decl{Name: "refusals.record", Lane: store.Work}, nil,
		func(all []noted, args *store.Args) { args.Text("refusals", store.JSON(all)) }, store.CountRows)
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "refusals.list", Lane: store.Read}, nil,
		func(all *[]Attempt, row store.Row) error {
			var a Attempt
			var detail []byte
			if err := row.Scan(&a.ID, &a.Step, &a.Requester, &a.Code, &detail, &a.At); err != nil {
				return err
			}
			*all = append(*all, a)
			return json.Unmarshal(detail, &(*all)[len(*all)-1].Detail)
		})
	pruneVerb = store.VerbOf[pruneArgs](store.Decl{Name: "refusals.prune", Lane: store.Work}, nil, store.CountRows)
)

const (
	room       = 4096 // refusals waiting to be written
	page       = 500
	pruneLimit = 2000
	// Retention is the retention of a refusal.
	Retention = 7 * 24 * time.Hour
	// Rate is how many refusals of a workspace a node logs per second, and Burst how many at once, so that
	// deliberate refusals cannot fill the database.
	Rate  = 10
	Burst = 1000
	// maxDetail limits the size of a refusal's detail.
	maxDetail = 4 << 10

	maxLimiters = 10_000
)

// Log collects refusals and writes them with a short delay. It must be flushed. Safe for concurrent use.
type Log struct {
	d       store.Doer
	mu      sync.Mutex
	waiting map[int16][]noted
	limits  map[string]*rate.Limiter // by workspace
	count   int
	dropped int64
	writing chan struct{} // closed when nothing waits any more; nil while nothing is being written
}

// NewLog returns a log that writes through a doer.
func NewLog(d store.Doer) *Log { return &Log{d: d, waiting: make(map[int16][]noted)} }

// Note logs a refusal, unless too many are waiting or come from its workspace. A detail that is too long is
// omitted.
func (l *Log) Note(at store.Partition, a Attempt) {
	facts := maps.Clone(a.Detail) // it belongs to the error
	for name, value := range facts {
		if at, ok := value.(time.Time); ok {
			facts[name] = clock.Text(at)
		}
	}
	detail, err := json.Marshal(facts)
	if err != nil {
		detail = []byte("{}")
	}
	if len(detail) > maxDetail {
		detail = []byte(`{"truncated":true}`)
	}
	n := noted{at.Workspace, a.Lifecycle, a.Entity, store.NewID().String(), a.Step, a.Requester, a.Code, detail}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= room || !l.limit(at.Workspace).Allow() {
		l.dropped++
		return
	}
	l.waiting[at.Shard] = append(l.waiting[at.Shard], n)
	l.count++
	if l.writing == nil {
		l.writing = make(chan struct{})
		go l.write()
	}
}

// limit returns the rate limiter of a workspace. REQUIRES: mu
func (l *Log) limit(workspace string) *rate.Limiter {
	one := l.limits[workspace]
	if one == nil {
		if l.limits == nil || len(l.limits) > maxLimiters {
			l.limits = make(map[string]*rate.Limiter)
		}
		one = rate.NewLimiter(Rate, Burst)
		l.limits[workspace] = one
	}
	return one
}

// write writes until nothing is waiting.
func (l *Log) write() {
	for {
		shard, some := l.next()
		if len(some) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, _ = recordVerb.DoAt(ctx, l.d, store.Partition{Shard: shard}, some) // best effort
		cancel()
	}
}

func (l *Log) next() (int16, []noted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for shard, all := range l.waiting {
		if len(all) == 0 {
			continue
		}
		n := min(len(all), page)
		l.waiting[shard] = all[n:]
		l.count -= n
		return shard, all[:n]
	}
	close(l.writing)
	l.writing = nil
	return 0, nil
}

// Flush waits until the logged refusals are written, or have failed to be.
func (l *Log) Flush() {
	l.mu.Lock()
	writing := l.writing
	l.mu.Unlock()
	if writing != nil {
		<-writing
	}
}

// List returns the latest refusals on an entity, newest first.
func List(ctx context.Context, d store.Doer, lifecycle, entity string, limit int) ([]Attempt, error) {
	if limit <= 0 || limit > 1000 {
		limit = 100
	}
	all, err := listVerb.Do(ctx, d, listArgs{lifecycle, entity, limit})
	for i := range all {
		all[i].Lifecycle, all[i].Entity = lifecycle, entity
	}
	return all, err
}

// Prune deletes refusals past their retention.
func Prune(ctx context.Context, d store.Doer) (int, error) {
	shards, err := store.Shards(ctx, d)
	return store.OnShards(shards, err, func(at store.Partition) (int, error) {
		return pruneVerb.DoAt(ctx, d, at, pruneArgs{Retention, pruneLimit})
	})
}

// Package refusals records the writes that were refused: who tried what, when, and whom they lost to. A
// capability notes a refusal where it turns the verdict of a statement into an error; races and timelines are
// read from the records.
//
// The records are written in the background, shortly after the refusal, so they never delay a caller. A workspace
// may be refused [Rate] times a second on each node, and [Burst] times at once, without a record being left out.
// Beyond that, refusals are sampled: a record says how many refusals it stands for. Records are lost only if the
// process ends before it has written them, or if the database is out of reach for longer than [giveUp]. Nothing
// depends on them.
package refusals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Try is what was tried.
type Try struct {
	// Stream is the stream of the object: "$entity/invoice/17", "$run/…", or a stream of the user's own.
	Stream string
	// Action is the step of an entity, or the name of the command: "append", "cancel".
	Action string
	// Requester is the requester that an entity's step was fired for.
	Requester string
	// Actor is the caller; "" is the caller of the context (see [WithCaller]).
	Actor string
	// Version is the version of the object that refused the write, if the error does not say it.
	Version *int64
	// Operation and Epoch are the operation and the epoch of a late holder.
	Operation string
	Epoch     int64
}

// Refusal is a recorded refusal.
type Refusal struct {
	ID                       string
	Stream                   string
	Version                  int64 // the version that the object had when it refused the write
	Action, Requester, Actor string
	Node, Request            string
	Code                     string
	Operation                string // the operation that was in progress, or that a late holder belonged to
	Epoch                    int64  // the epoch of a late holder
	StandsFor                int64  // how many refusals this record stands for
	Detail                   map[string]any
	At                       time.Time
}

// Caller identifies the caller of a context.
type Caller struct{ Actor, Request string }

type callerKey struct{}

// WithCaller returns a context whose refusals name a caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a context, or the zero value.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// noted is a refusal that is not yet written.
type noted struct {
	ID        string          `json:"i"`
	Workspace string          `json:"w"`
	Stream    string          `json:"s"`
	Version   *int64          `json:"v"`
	Action    string          `json:"a"`
	Requester string          `json:"r"`
	Actor     string          `json:"b"`
	Node      string          `json:"n"`
	Request   string          `json:"q"`
	Code      string          `json:"c"`
	Operation string          `json:"o"`
	Epoch     int64           `json:"e"`
	StandsFor int64           `json:"k"`
	Detail    json.RawMessage `json:"d"`
	Age       int64           `json:"t"` // in ms, when it is sent

	seen  time.Time
	first int64 // the number of the first refusal that it stands for
}

type listArgs struct {
	stream  string `arg:"stream"`
	version int64  `arg:"version"` // with id: the last refusal of the page before
	id      string `arg:"id"`
	limit   int    `arg:"limit"`
}

type recentArgs struct {
	id    string `arg:"id"` // the last refusal of the page before
	limit int    `arg:"limit"`
}

type pruneArgs struct {
	age   time.Duration `arg:"age"`
	limit int           `arg:"limit"`
}

var (
	recordVerb = store.NewVerb(store.Decl{Name: "refusals.record", Lane: store.Work, Idempotent: true, Aside: true}, nil,
		func(all []noted, args *store.Args) { args.Text("refusals", store.JSON(all)) }, store.CountRows)
	listVerb   = store.VerbOf[listArgs](store.Decl{Name: "refusals.list", Lane: store.Read}, nil, scan)
	recentVerb = store.VerbOf[recentArgs](store.Decl{Name: "refusals.list_recent", Lane: store.Read}, nil, scan)
	pruneVerb  = store.VerbOf[pruneArgs](store.Decl{Name: "refusals.prune", Lane: store.Work}, nil, store.CountRows)
)

func scan(all *[]Refusal, row store.Row) error {
	var r Refusal
	var detail []byte
	if err := row.Scan(&r.ID, &r.Stream, &r.Version, &r.Action, &r.Requester, &r.Actor, &r.Node, &r.Request, &r.Code, &r.Operation, &r.Epoch, &r.StandsFor, &detail, &r.At); err != nil {
		return err
	}
	if err := json.Unmarshal(detail, &r.Detail); err != nil {
		return err
	}
	*all = append(*all, r)
	return nil
}

const (
	room       = 4096 // refusals waiting to be written
	page       = 500
	pruneLimit = 2000
	// Retention is the retention of a refusal.
	Retention = 7 * 24 * time.Hour
	// Rate is how many refusals of a workspace a node records per second, and Burst how many at once, so that
	// deliberate refusals cannot fill the database.
	Rate  = 100
	Burst = 2000
	// maxDetail limits the size of a refusal's detail.
	maxDetail = 4 << 10
	// giveUp is how long a page of records is retried while the database is out of reach.
	giveUp = time.Minute

	// gatherFor is the pause between two pages that are not full: they share a commit.
	gatherFor = 50 * time.Millisecond

	maxTenants = 10_000
)

// codes are the codes of refusals that another writer caused.
var codes = map[fault.Code]bool{
	fault.ClaimFailed: true, fault.Concurrency: true, fault.LeaseLost: true, fault.NotDelivered: true, fault.InvalidTransition: true,
	fault.StreamClosed: true, fault.Conflict: true, fault.KeyMismatch: true, fault.KeyExpired: true,
}

// Log collects refusals and writes them with a short delay. Safe for concurrent use.
type Log struct {
	d       store.Doer
	node    string
	mu      sync.Mutex
	waiting map[int16][]noted
	count   int // in waiting
	tenants map[string]*tenant
	counts  map[Counted]int64
	noted   int64         // number of the last refusal that was noted
	writing bool          // there is a goroutine that writes
	page    []noted       // which it writes now
	written chan struct{} // closed, and replaced, when a page is written
	flushes int           // calls of Flush that wait
	rest    func()        // ends the rest of the writer; nil while it does not rest
	urgent  bool          // one that waits gets its version when it is written
	closed  bool
}

// tenant limits the refusals of one workspace.
type tenant struct {
	limit *rate.Limiter
	shard int16
	// skipped is the last refusal that was left out; it stands for all that were left out since the last record.
	skipped *noted
}

type logKey struct{}

// NewLog returns the log of an engine. Capabilities find it through the doers of the engine.
func NewLog(d store.Doer, node string) *Log {
	return store.DirectoryOf(d).Shared(logKey{}, func() any {
		return &Log{d: d, node: node, waiting: make(map[int16][]noted), tenants: make(map[string]*tenant), counts: make(map[Counted]int64), written: make(chan struct{})}
	}).(*Log)
}

// logOf returns the log of the engine behind a doer, or nil.
func logOf(d store.Doer) *Log {
	shared := store.DirectoryOf(d)
	if shared == nil {
		return nil
	}
	l, _ := shared.Shared(logKey{}, func() any { return (*Log)(nil) }).(*Log)
	return l
}

// Note records a refused write, and returns err. It records nothing if err is nil, is not a refusal that another writer
// caused, or is not final ([store.Provisional]). It does not wait for the database.
func Note(ctx context.Context, d store.Doer, t Try, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !codes[f.Code] || store.Provisional(d) {
		return err
	}
	if l := logOf(d); l != nil {
		if at, known := store.DirectoryOf(d).Known(store.WorkspaceOf(ctx)); known {
			l.note(ctx, at, t, f)
		}
	}
	return err
}

func (l *Log) note(ctx context.Context, at store.Partition, t Try, f *fault.Error) {
	by := CallerOf(ctx)
	n := noted{ID: store.NewID().String(), Workspace: at.Workspace, Stream: t.Stream, Version: t.Version, Action: t.Action, Requester: t.Requester,
		Actor: t.Actor, Node: l.node, Request: by.Request, Code: string(f.Code), Operation: t.Operation, Epoch: t.Epoch, StandsFor: 1, seen: clock.Now()}
	if n.Actor == "" {
		n.Actor = by.Actor
	}
	fields := maps.Clone(f.Fields)
	for _, name := range []string{"version", "lastVersion"} {
		if v, ok := fields[name].(int64); ok && n.Version == nil {
			n.Version = &v
		}
	}
	if operation, ok := fields["operation"].(string); ok && n.Operation == "" {
		n.Operation = operation
	}
	for name, value := range fields {
		if at, ok := value.(time.Time); ok {
			fields[name] = clock.Text(at)
		}
	}
	var err error
	if n.Detail, err = json.Marshal(fields); err != nil || fields == nil {
		n.Detail = []byte("{}")
	}
	if len(n.Detail) > maxDetail {
		n.Detail = []byte(`{"truncated":true}`)
	}
	l.add(at.Shard, n, f.Code)
}

func (l *Log) add(shard int16, n noted, code fault.Code) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[Counted{kindOf(n.Stream), code}]++
	if l.closed {
		return
	}
	l.noted++
	n.first = l.noted
	who := l.tenant(n.Workspace, shard)
	if who.skipped != nil {
		n.StandsFor, n.first = n.StandsFor+who.skipped.StandsFor, who.skipped.first
	}
	if l.count < room && who.limit.Allow() {
		who.skipped = nil
		l.waiting[shard] = append(l.waiting[shard], n)
		l.count++
		if l.urgent = l.urgent || n.Version == nil; l.urgent || l.count == page {
			l.hurry()
		}
	} else {
		who.skipped = &n
	}
	if !l.writing {
		l.writing = true
		go l.write()
	}
}

// tenant returns the limits of a workspace. REQUIRES: mu
func (l *Log) tenant(workspace string, shard int16) *tenant {
	one := l.tenants[workspace]
	if one == nil {
		if len(l.tenants) > maxTenants {
			maps.DeleteFunc(l.tenants, func(_ string, t *tenant) bool { return t.skipped == nil })
		}
		one = &tenant{limit: rate.NewLimiter(Rate, Burst), shard: shard}
		l.tenants[workspace] = one
	}
	return one
}

// write writes until nothing is waiting.
func (l *Log) write() {
	for {
		shard, some, last := l.next()
		if len(some) == 0 {
			if last {
				return
			}
			_ = clock.Wait(context.Background(), time.Second/Rate) // for a skipped refusal whose turn comes
			continue
		}
		l.record(store.Partition{Shard: shard}, some)
		l.mu.Lock()
		l.page = nil
		close(l.written)
		l.written = make(chan struct{})
		l.mu.Unlock()
		l.gather()
	}
}

// gather waits for refusals to write together, unless somebody waits for them, or one gets its version when it is written.
func (l *Log) gather() {
	ctx, cancel := context.WithTimeout(context.Background(), gatherFor)
	defer cancel()
	l.mu.Lock()
	if l.closed || l.flushes > 0 || l.count >= page || l.urgent && l.count > 0 {
		l.mu.Unlock()
		return
	}
	l.rest = cancel
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	l.rest = nil
	l.mu.Unlock()
}

// hurry ends the rest of the writer. REQUIRES: mu
func (l *Log) hurry() {
	if l.rest != nil {
		l.rest()
	}
}

// record writes a page, and tries again while the database is out of reach.
func (l *Log) record(at store.Partition, some []noted) {
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		for i := range some {
			some[i].Age = max(clock.Since(some[i].seen).Milliseconds(), 0)
		}
		_, err := recordVerb.DoAt(ctx, l.d, at, some)
		if err == nil || !fault.IsRetryable(err) && fault.CodeOf(err) != fault.OutcomeUnknown || clock.Wait(ctx, pause) != nil {
			return
		}
	}
}

// next takes a page to write; last reports that nothing is waiting.
func (l *Log) next() (shard int16, some []noted, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for shard, all := range l.waiting {
		if len(all) == 0 {
			continue
		}
		n := min(len(all), page)
		l.waiting[shard], l.page = all[n:], all[:n]
		if l.count -= n; l.count == 0 {
			l.urgent = false
		}
		return shard, l.page, false
	}
	skipped := false
	for _, who := range l.tenants {
		if who.skipped == nil {
			continue
		}
		if l.closed || who.limit.Allow() {
			l.page = []noted{*who.skipped}
			who.skipped = nil
			return who.shard, l.page, false
		}
		skipped = true
	}
	if skipped {
		return 0, nil, false
	}
	l.writing = false
	return 0, nil, true
}

// Flush waits until the refusals that were noted before the call are written, or have failed to be, or until ctx ends. It does not wait
// for those that are noted meanwhile, which may never end.
func (l *Log) Flush(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushes++
	defer func() { l.flushes-- }()
	l.hurry()
	for last := l.noted; l.oldest() <= last && ctx.Err() == nil; {
		written := l.written
		l.mu.Unlock()
		select {
		case <-written:
		case <-ctx.Done():
		}
		l.mu.Lock()
	}
}

// oldest returns the number of the oldest refusal that is not written. REQUIRES: mu
func (l *Log) oldest() int64 {
	first := int64(math.MaxInt64)
	for _, all := range l.waiting {
		first = min(first, oldestOf(all))
	}
	for _, who := range l.tenants {
		if who.skipped != nil {
			first = min(first, who.skipped.first)
		}
	}
	return min(first, oldestOf(l.page))
}

func oldestOf(all []noted) int64 {
	first := int64(math.MaxInt64)
	for i := range all {
		first = min(first, all[i].first)
	}
	return first
}

// Close writes what is waiting. Later refusals are not recorded.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.Flush(context.Background())
}

// Counted is what refusals are counted by: the kind of the object and the code.
type Counted struct {
	Kind string // one of kinds
	Code fault.Code
}

// kinds are the kinds of objects, by the first part of the names of their streams.
var kinds = map[string]string{"$entity": "entity", "$run": "run", "$batch": "batch", "$scope": "scope", "$reaction": "reaction"}

// kindOf returns the kind of the object of a stream: "stream" for one of the user's own.
func kindOf(stream string) string {
	first, _, _ := strings.Cut(stream, "/")
	switch {
	case kinds[first] != "":
		return kinds[first]
	case strings.HasPrefix(stream, "$"):
		return "other"
	}
	return "stream"
}

// Counts returns how many refusals there were since the engine was opened.
func (l *Log) Counts() map[Counted]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// Cursor returns the refusal as the place to continue a list: nil, the beginning, for the zero value.
func (r Refusal) Cursor() *Refusal {
	if r.ID == "" {
		return nil
	}
	return &r
}

// lastID is after every id.
const lastID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

// List returns refusals on a stream in the order of the database, the latest first: a refusal is after the event
// whose version it found, and before the next. It begins before the given refusal; nil is the latest.
func List(ctx context.Context, d store.Doer, stream string, before *Refusal, limit int) ([]Refusal, error) {
	if before == nil {
		before = &Refusal{Version: math.MaxInt64, ID: lastID}
	}
	return listVerb.Do(ctx, d, listArgs{stream, before.Version, before.ID, limit})
}

// Recent returns refusals of a workspace, the latest first, beginning before the one with the given id; "" is the
// latest.
func Recent(ctx context.Context, d store.Doer, before string, limit int) ([]Refusal, error) {
	return recentVerb.Do(ctx, d, recentArgs{cmp.Or(before, lastID), limit})
}

// Prune deletes refusals past their retention.
func Prune(ctx context.Context, d store.Doer) (int, error) {
	return store.Sweep(ctx, d, func(at store.Partition) (int, error) {
		return pruneVerb.DoAt(ctx, d, at, pruneArgs{Retention, pruneLimit})
	})
}

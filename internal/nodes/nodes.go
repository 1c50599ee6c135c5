// Package nodes records which nodes run an engine on the database, what they serve, their health, and their activity
// per minute.
//
// A node reports every [Every], in one short transaction, and deletes its row when it stops. A row that was not refreshed
// for [GoneAfter] is that of a node that crashed or cannot reach the database. Nothing depends on these rows but what is
// shown to people: a report that is lost, late or written twice changes no outcome.
//
// A report that commits after the row was deleted, because its response was lost while the node stopped, leaves a row
// behind. It counts as gone after [GoneAfter] and is deleted after [Retention], like the row of a node that crashed. Two
// processes under one name: the id of a process grows with the time at which it started, and a report or a removal of the
// older one changes nothing.
package nodes

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// Every is how often a node reports.
	Every = 10 * time.Second
	// GoneAfter is the age of a report from which on its node counts as gone.
	GoneAfter = 30 * time.Second
	// Retention is how long the counts by minute, and the rows of nodes that are gone, are stored.
	Retention = 7 * 24 * time.Hour

	pruneEvery = time.Hour
	lagEvery   = time.Minute
	pruneLimit = 2000
	// stopTimeout limits the removal of a node that stops.
	stopTimeout = 2 * time.Second
)

// Report is what a node says about itself.
type Report struct {
	Serves []Served `json:"serves,omitempty"`
	Sweeps []Sweep  `json:"sweeps,omitempty"`
	// JanitorMs is the time since the last round of the janitor without an error. Stalled reports that it is too long.
	JanitorMs int64 `json:"janitorMs"`
	Stalled   bool  `json:"stalled,omitempty"`
	Pool      Pool  `json:"pool"`
	// Queued is the number of leased streams that wait for capacity of this node, Waiting that of callers that wait for
	// a wake-up.
	Queued  int `json:"queued"`
	Waiting int `json:"waiting"`
}

// Served is work that a node polls for: of a reaction, a queue of operations, a handler of steps, or a handler of
// batches. Workspace is set if a worker polls for it through the node.
type Served struct {
	Kind      string `json:"k"`
	Name      string `json:"n,omitempty"`
	Workspace string `json:"w,omitempty"`
}

// Sweep is the last run of one sweep of the janitor.
type Sweep struct {
	Name  string `json:"name"`
	AgoMs int64  `json:"agoMs"` // before the report
	Error string `json:"error,omitempty"`
}

// Pool is the use of the database connections.
type Pool struct {
	Busy int `json:"busy"`
	Size int `json:"size"`
}

// Node is a node as it last reported.
type Node struct {
	Name, Version   string
	StartedAt, Seen time.Time
	Report          Report
	SnapshotAt      *time.Time // when the oldest open transaction of the database, if it has a snapshot, began (PostgreSQL)
	SnapshotBy      string     // the connection of that transaction
	Gone            bool
	Now             time.Time // of the database
}

// Counts are counts since the node started or, in a [Minute], those of the minute.
type Counts struct {
	Commands  int64 `arg:"commands"`
	Refusals  int64 `arg:"refusals"`
	Requests  int64 `arg:"requests"`
	Runs      int64 `arg:"runs"`
	Steps     int64 `arg:"steps"`
	Items     int64 `arg:"items"`
	Reactions int64 `arg:"reactions"`
}

func (c Counts) minus(o Counts) Counts {
	return Counts{c.Commands - o.Commands, c.Refusals - o.Refusals, c.Requests - o.Requests, c.Runs - o.Runs, c.Steps - o.Steps, c.Items - o.Items, c.Reactions - o.Reactions}
}

// Minute is what a node has done in one minute.
type Minute struct {
	At   time.Time
	Node string
	Counts
	Latency, Lag int64 // in ms, the largest of its reports; -1 if there is none
}

type reportArgs struct {
	name     string        `arg:"name"`
	instance string        `arg:"instance"`
	version  string        `arg:"version"`
	uptime   time.Duration `arg:"uptime"`
	report   string        `arg:"report"`
	Counts
	latency *int64 `arg:"latency"`
	lag     *int64 `arg:"lag"`
}

type removeArgs struct {
	name     string `arg:"name"`
	instance string `arg:"instance"`
}

type pruneArgs struct {
	age   time.Duration `arg:"age"`
	limit int           `arg:"limit"`
}

type listArgs struct {
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

type minutesArgs struct {
	age    time.Duration `arg:"age"`
	minute int64         `arg:"minute"`
	node   string        `arg:"node"`
	limit  int           `arg:"limit"`
}

var (
	reportVerb = store.VerbOf[reportArgs](store.Decl{Name: "nodes.report", Lane: store.Work}, nil, store.CountRows)
	removeVerb = store.VerbOf[removeArgs](store.Decl{Name: "nodes.remove", Lane: store.Work}, nil, store.CountRows)
	pruneVerb  = store.VerbOf[pruneArgs](store.Decl{Name: "nodes.prune", Lane: store.Work}, nil, store.CountRows)
	listVerb   = store.VerbOf[listArgs](store.Decl{Name: "nodes.list", Lane: store.Read}, nil,
		func(all *[]Node, r store.Row) error {
			var n Node
			var report []byte
			var snapshot time.Time
			if err := r.Scan(&n.Name, &n.Version, &n.StartedAt, &n.Seen, &report, &snapshot, &n.SnapshotBy, &n.Now); err != nil {
				return err
			}
			n.SnapshotAt, n.Gone = store.Moment(snapshot), n.Now.Sub(n.Seen) > GoneAfter
			err := json.Unmarshal(report, &n.Report)
			*all = append(*all, n)
			return err
		})
	minutesVerb = store.VerbOf[minutesArgs](store.Decl{Name: "nodes.list_minutes", Lane: store.Read}, nil,
		store.Each(func(m *Minute) []any {
			return []any{&m.At, &m.Node, &m.Commands, &m.Refusals, &m.Requests, &m.Runs, &m.Steps, &m.Items, &m.Reactions, &m.Latency, &m.Lag}
		}))
)

// List returns nodes by name, after a given one.
func List(ctx context.Context, d store.Doer, after string, limit int) ([]Node, error) {
	return listVerb.DoAt(ctx, d, store.Partition{}, listArgs{after, limit})
}

// All returns all nodes.
func All(ctx context.Context, d store.Doer) (all []Node, err error) {
	const page = 500
	for after := ""; ; after = all[len(all)-1].Name {
		some, err := List(ctx, d, after, page)
		if all = append(all, some...); err != nil || len(some) < page {
			return all, err
		}
	}
}

// Minutes returns what the nodes have done within last, oldest first, after a given minute and node.
func Minutes(ctx context.Context, d store.Doer, last time.Duration, after Minute, limit int) ([]Minute, error) {
	a := minutesArgs{age: last, node: after.Node, limit: limit}
	if !after.At.IsZero() {
		a.minute = after.At.UnixMilli()
	}
	return minutesVerb.DoAt(ctx, d, store.Partition{}, a)
}

// Reporter reports a node.
type Reporter struct {
	Doer store.Doer
	Name string
	Log  *slog.Logger
	// Version returns the version of the program, Report and Counts how the node is.
	Version func() string
	Report  func() Report
	Counts  func() Counts
	// Latency returns the duration within which 95 % of the requests since its last call were served, and false if there were
	// none. Lag returns the age of the oldest due work of the database. It is asked once a minute, because it costs a statement
	// for each shard. Either may be nil.
	Latency func() (time.Duration, bool)
	Lag     func(context.Context) (time.Duration, error)

	mu       sync.Mutex // Now is called besides Run
	instance string     // the id of this process
	started  time.Time
	reported Counts // at the last report
	pruned   time.Time
	lagged   time.Time // when Lag was asked last
	failed   bool      // the last report failed
	shadowed bool      // a newer process has the name
}

// Run reports until ctx ends, and then removes the node.
func (r *Reporter) Run(ctx context.Context) {
	r.Start()
	for pause := time.Second; ; pause = Every { // the first report may come before the pollers
		if r.Now(ctx); clock.Wait(ctx, pause) != nil {
			break
		}
	}
	if !r.failed { // otherwise the database may be out of reach, and the row is recognized as old
		r.Stop(ctx)
	}
}

// Stop removes the node, even if ctx has ended. Tests call it instead of Run.
func (r *Reporter) Stop(ctx context.Context) {
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if _, err := removeVerb.DoAt(rest, r.Doer, store.Partition{}, removeArgs{r.Name, r.instance}); err != nil {
		r.Log.Debug("failed to remove the node from the list of nodes", "error", err)
	}
}

// Start begins a new process of the node. Tests call it instead of Run.
func (r *Reporter) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instance, r.started, r.reported = store.NewID().String(), clock.OfMachine(), r.Counts()
}

// Now reports once. A failed report is repeated with the next: it concerns nobody but those who look at the list.
func (r *Reporter) Now(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instance == "" { // not started
		return
	}
	report, err := json.Marshal(r.Report())
	counts, n := r.Counts(), 0
	if err == nil {
		n, err = reportVerb.DoAt(ctx, r.Doer, store.Partition{}, reportArgs{r.Name, r.instance, r.Version(), clock.OfMachine().Sub(r.started), string(report), counts.minus(r.reported), r.latency(), r.lag(ctx)})
	}
	if err == nil && n > 0 && clock.OfMachine().Sub(r.pruned) >= pruneEvery {
		r.pruned = clock.OfMachine()
		_, err = Prune(ctx, r.Doer)
	}
	if ctx.Err() != nil {
		return
	}
	shadowed := err == nil && n == 0
	if err != nil && !r.failed {
		r.Log.Warn("failed to report the node", "error", err)
	}
	if shadowed && !r.shadowed {
		r.Log.Warn("another process with the same node name started later: give each node its own name", "node", r.Name)
	}
	if r.failed, r.shadowed = err != nil, shadowed; n > 0 {
		r.reported = counts
	}
}

// latency returns the latency since the last report in ms, or nil. If the report fails, it is lost.
func (r *Reporter) latency() *int64 {
	if r.Latency == nil {
		return nil
	}
	d, ok := r.Latency()
	if !ok {
		return nil
	}
	return new(d.Milliseconds())
}

// lag returns the lag in ms, or nil if it is not yet time for it or it cannot be read.
//
// REQUIRES: mu
func (r *Reporter) lag(ctx context.Context) *int64 {
	if r.Lag == nil || clock.OfMachine().Sub(r.lagged) < lagEvery {
		return nil
	}
	d, err := r.Lag(ctx)
	if err != nil {
		return nil
	}
	r.lagged = clock.OfMachine()
	return new(d.Milliseconds())
}

// Prune deletes counts by minute, and nodes that are gone, after [Retention].
func Prune(ctx context.Context, d store.Doer) (int, error) {
	return pruneVerb.DoAt(ctx, d, store.Partition{}, pruneArgs{Retention, pruneLimit})
}

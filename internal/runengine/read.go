package runengine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

type listArgs struct {
	Filter
	from, before string
	scan, limit  int
}

type keyArgs struct {
	from  string `arg:"from"`
	upto  string `arg:"upto"`
	scan  int    `arg:"scan"`
	limit int    `arg:"limit"`
}

// Keyed is a run with its key.
type Keyed struct{ ID, Key, Status string }

type stepsArgs struct {
	run   string
	after int64
	limit int
}

type uncertainArgs struct {
	run, after string
	limit      int
}

var (
	getVerb = store.NewVerb(store.Decl{Name: "runs.get", Lane: store.Read}, nil,
		bindVisited, scanClaimedStep)
	listVerb     = newListVerb("runs.list")
	listOpenVerb = newListVerb("runs.list_open")
	listKeyVerb  = store.VerbOf[keyArgs](store.Decl{Name: "runs.list_by_key", Lane: store.Read}, nil,
		store.Each(func(k *Keyed) []any { return []any{&k.ID, &k.Key, &k.Status} }))
	uncertainVerb = store.NewVerb(store.Decl{Name: "runs.list_uncertain", Lane: store.Read}, nil,
		func(a uncertainArgs, args *store.Args) {
			args.Text("run", a.run)
			args.Text("after", a.after)
			args.Int("limit", int64(a.limit))
		}, scanClaimedStep)
	stepsVerb = store.NewVerb(store.Decl{Name: "runs.list_steps", Lane: store.Read}, nil,
		func(a stepsArgs, args *store.Args) {
			args.Text("run", a.run)
			args.Int("after", a.after)
			args.Int("limit", int64(a.limit))
		},
		func(all *[]Step, r store.Row) error {
			var s stepRow
			err := r.Scan(s.into()...)
			*all = append(*all, s.step())
			return err
		})
)

func newListVerb(name string) *store.Verb[listArgs, []store.Found[Run]] {
	return store.NewVerb(store.Decl{Name: name, Lane: store.Read}, nil,
		func(a listArgs, args *store.Args) {
			args.Text("status", a.Status)
			args.Text("definition", a.Definition)
			args.Text("step", a.Step)
			args.Text("handler", a.Handler)
			args.Text("from", a.from)
			args.Text("before", a.before)
			args.Int("scan", int64(a.scan))
			args.Int("limit", int64(a.limit))
			a.Bind(args)
		},
		func(all *[]store.Found[Run], r store.Row) error {
			var x runRow
			var f store.Found[Run]
			err := r.Scan(append([]any{&f.Wanted, &f.Edge}, x.into()...)...)
			f.Row = x.run()
			*all = append(*all, f)
			return err
		})
}

func bindVisited(v visited, args *store.Args) {
	args.Text("run", v.run)
	args.Text("step", v.step)
	args.Int("visit", v.visit)
}

// runRow scans a run.
type runRow struct{ Run }

func (x *runRow) into() []any {
	r := &x.Run
	return []any{&r.Workspace, &r.ID, &r.Definition, &r.Key, &r.Status, &r.Version, &r.Input, &r.State, &r.memo, &r.Output, &r.Error, &r.Step, &r.Visit,
		&r.CancelRequested, &r.CreatedAt, &r.StartedAt, &r.FinishedAt, &r.UpdatedAt}
}

func (x *runRow) run() Run {
	r := x.Run
	r.StartedAt, r.FinishedAt = store.OrZero(r.StartedAt), store.OrZero(r.FinishedAt)
	return r
}

// stepRow scans a step.
type stepRow struct {
	Step
	kind    string
	timeout int64
}

func (x *stepRow) into() []any {
	s := &x.Step
	return []any{&s.Name, &s.Visit, &s.N, &x.kind, &s.Handler, &s.Status, &s.Input, &s.Output, &s.Error, &s.Next, &s.Attempts, &s.Failures, &s.Holder, &s.Epoch, &s.Until,
		&s.Crashes, &s.Quiet, &s.Lost, &x.timeout, &s.Due, &s.Deadline, &s.past, &s.Begun, &s.Uncertain, &s.Safety, &s.Unknown, &s.Signal, &s.Fired, &s.StartedAt, &s.FinishedAt}
}

func (x *stepRow) step() Step {
	s := x.Step
	s.Type, s.Timeout = workflow.Type(x.kind), time.Duration(x.timeout)*time.Millisecond
	s.StartedAt, s.FinishedAt = store.OrZero(s.StartedAt), store.OrZero(s.FinishedAt)
	return s
}

func scanClaimedStep(all *[]ClaimedStep, r store.Row) error {
	var x runRow
	var s stepRow
	var l ClaimedStep
	g, a := &l.signal, &l.approval
	err := r.Scan(append(append(x.into(), s.into()...), &g.id, &g.payload, &a.status, &a.actor, &a.label, &a.content)...)
	l.Run, l.Step = x.run(), s.step()
	*all = append(*all, l)
	return err
}

// load reads a run with one of its steps: the current one if none is named.
func load(ctx context.Context, d store.Doer, at store.Partition, v visited) (ClaimedStep, error) {
	all, err := getVerb.DoAt(ctx, d, at, v)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "run %q does not exist", v.run)
		if v.step != "" {
			err = fault.New(fault.NotFound, "operation %q does not exist", Operation(v.run, v.step, v.visit))
		}
	}
	if err != nil {
		return ClaimedStep{}, err
	}
	all[0].Shard = at.Shard
	return all[0], nil
}

// Load returns a run with its current step, or [fault.NotFound].
func Load(ctx context.Context, d store.Doer, id string) (ClaimedStep, error) {
	if err := CheckID(id); err != nil {
		return ClaimedStep{}, err
	}
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return ClaimedStep{}, err
	}
	return load(ctx, d, at, visited{run: id})
}

// Get returns a run, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, id string) (Run, error) {
	l, err := Load(ctx, d, id)
	return l.Run, err
}

// Now reads the step again, with its current epoch.
func (l *ClaimedStep) Now(ctx context.Context, d store.Doer) (ClaimedStep, error) {
	return load(ctx, d, l.partition(), l.visited())
}

// ByOperation returns the step of an operation.
func ByOperation(ctx context.Context, d store.Doer, operation string) (ClaimedStep, error) {
	v, ok := cutOperation(operation)
	if !ok {
		return ClaimedStep{}, fault.New(fault.NotFound, "operation %q does not exist", operation)
	}
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return ClaimedStep{}, err
	}
	return load(ctx, d, at, v)
}

// Filter selects runs; empty fields match all.
type Filter struct {
	Status, Definition string
	Key                string // of the run
	Step               string // the current one, or the last
	Handler            string // of that step
	store.Times
}

// List returns runs after a cursor, the newest first. A status that few runs have, and a key, are found by an index; other
// filters search (store.Found), by Since only as far back as necessary.
func List(ctx context.Context, d store.Doer, f Filter, behind string, limit int) ([]store.Found[Run], error) {
	if f.Status != "" && !slices.Contains(Statuses, f.Status) {
		return nil, fault.New(fault.Validation, "status must be one of %s, got %q", strings.Join(Statuses, ", "), f.Status).With("pointer", "/status")
	}
	a := listArgs{Filter: f, from: idPrefix, before: store.PrefixEnd(idPrefix), scan: store.SearchScan, limit: limit}
	if f.Key != "" {
		k, err := ListByKey(ctx, d, f.Key, 1)
		if err != nil || len(k) == 0 || k[0].Key != f.Key {
			return nil, err
		}
		a.from, a.before = k[0].ID, store.PrefixEnd(k[0].ID)
	}
	if behind != "" {
		a.before = min(a.before, behind)
	}
	if f == (Filter{}) {
		a.scan = limit
	}
	verb := listVerb
	if f.Status != "" && f.Status != Completed && f.Status != Cancelled {
		verb = listOpenVerb
	}
	found, err := verb.Do(ctx, d, a)
	// Ids are ordered by the clocks of the nodes, and the times are of the database. Both are in the same order, but for a
	// margin, whatever the difference between the clocks.
	if n := len(found); n > 0 && found[n-1].Row.CreatedAt.Before(f.Since.Add(-events.Slack)) {
		found[n-1].Edge = false
	}
	return found, err
}

// ListByKey returns runs whose keys begin with a text, in the order of their keys.
func ListByKey(ctx context.Context, d store.Doer, prefix string, limit int) ([]Keyed, error) {
	return listKeyVerb.Do(ctx, d, keyArgs{prefix, store.PrefixEnd(prefix), store.SearchScan, limit})
}

// Steps returns the visits of a run's steps after a cursor, in their order.
func Steps(ctx context.Context, d store.Doer, id string, after int64, limit int) ([]Step, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	all, err := stepsVerb.Do(ctx, d, stepsArgs{id, after, limit})
	if err == nil && len(all) == 0 { // the run may not exist
		_, err = Get(ctx, d, id)
	}
	return all, err
}

// Uncertain returns the uncertain steps after a cursor, in the order of their operations.
func Uncertain(ctx context.Context, d store.Doer, after string, limit int) ([]ClaimedStep, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	all, err := uncertainVerb.DoAt(ctx, d, at, uncertainArgs{after: after, limit: limit})
	for i := range all {
		all[i].Shard = at.Shard
	}
	return all, err
}

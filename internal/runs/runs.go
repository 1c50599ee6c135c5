// Package runs keeps workflows that are taken step by step: a run, which is one execution
// of a definition, and the visits of its steps.
//
// What a run does next is worked out here, from the definition, as a plan; the database
// puts it into force if the run still has the version that it was made at, and if the hold
// on its step is still whose it was. So there is one statement that moves a run, whatever
// moves it, and everything that it changes is in one transaction: the step that ends, the
// one that begins, the state, the events. Whoever comes second finds another version, looks
// again, and makes another plan; a holder finds its result kept also where a pause or a
// cancel came first.
//
// Every statement locks in the order run, step, approval.
package runs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/definitions"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// The statuses of runs and of steps.
const (
	Pending   = "PENDING"
	Running   = "RUNNING"
	Waiting   = "WAITING"
	Paused    = "PAUSED"
	Completed = "COMPLETED"
	Failed    = "FAILED"
	Cancelled = "CANCELLED"
	Skipped   = "SKIPPED"
)

// Statuses are those of runs.
var Statuses = []string{Pending, Running, Waiting, Paused, Completed, Failed, Cancelled}

// RunTable says from which status a run may go to which.
var RunTable = map[string][]string{
	Pending: {Running, Cancelled},
	Running: {Waiting, Paused, Completed, Failed, Cancelled},
	Waiting: {Running, Cancelled, Failed},
	Paused:  {Running, Cancelled},
	Failed:  {Running},
}

// StepTable says from which status a step may go to which.
var StepTable = map[string][]string{
	Pending: {Running, Skipped, Cancelled},
	Running: {Waiting, Completed, Failed, Cancelled},
	Waiting: {Running, Completed, Failed, Cancelled},
	Failed:  {Running},
}

// Over says whether a run of that status is at an end. One that has failed may be retried.
func Over(status string) bool { return status == Completed || status == Failed || status == Cancelled }

// Run is a run as it stands.
type Run struct {
	Workspace, ID, Definition, Key   string
	Status                           string
	Version                          int64
	Input, State, Output             []byte
	Error                            string
	Step                             string // where it stands
	Visit                            int64
	CancelRequested                  bool
	CreatedAt, StartedAt, FinishedAt time.Time

	memo []byte
}

// Step is one visit of a step.
type Step struct {
	Name                  string
	Visit, N              int64
	Type                  definitions.Type
	Handler, Status       string
	Input, Output         []byte
	Error, Next           string
	Attempts, Failures    int64
	Holder                string
	Epoch                 int64
	Until                 time.Time
	Deaths                int64
	Quiet                 bool  // it was handed out, and its holder was not heard of yet
	Lost                  int64 // hand-outs in a row of which nobody was
	Timeout               time.Duration
	Due, Deadline         time.Time
	Begun                 int64
	Uncertain             bool
	Safety, Unknown       string
	Signal, Fired         string
	StartedAt, FinishedAt time.Time

	past bool // the deadline is, by the database's time
}

// Live is a run with one of its steps, and what has come for that: a signal, or a decision.
type Live struct {
	Shard int16
	Run   Run
	Step  Step

	signal   told
	approval verdict
	again    bool      // it was ended so before
	taken    bool      // the step is held by who moved the run
	since    time.Time // where it was taken: on this node's clock, before that
}

// Taken says that the step is held by who has just moved the run.
func (l *Live) Taken() bool { return l.taken }

type told struct {
	id      string
	payload []byte
}

type verdict struct {
	status, actor, label string
	content              []byte
}

// Operation names a visit of a step to other systems: it is the same for every attempt.
func Operation(run, step string, visit int64) string { return run + "/" + step + "/" + itoa(visit) }

// Operation names the step to other systems.
func (l *Live) Operation() string { return Operation(l.Run.ID, l.Step.Name, l.Step.Visit) }

func (l *Live) place() store.Place { return store.Place{Shard: l.Shard, Workspace: l.Run.Workspace} }

// Stream is the name of the stream that holds a run's history.
func Stream(id string) string { return "$run/" + id }

// Topic is what a worker of a handler is woken by. The engine's own steps are those of "".
func Topic(handler string) string { return "run/" + handler }

// Made is what those are woken by who do the steps of whatever handler.
const Made = "run-made"

// Progress is what those are woken by who follow a run.
func Progress(id string) string { return "run-progress/" + id }

// CancelTopic is woken when a run is to be cancelled.
func CancelTopic(id string) string { return "run-cancelled/" + id }

func row(id string) string { return "run/" + id }

type loadArgs struct {
	run, step string
	visit     int64
}

type listArgs struct {
	behind, status, definition string
	limit                      int
}

type stepsArgs struct {
	run    string
	behind int64
	limit  int
}

var (
	loadVerb = store.NewVerb(store.Decl{Name: "runs.load", Lane: store.Read}, nil,
		func(a loadArgs, args *store.Args) {
			args.Text("run", a.run)
			args.Text("step", a.step)
			args.Int("visit", a.visit)
		}, scanLive)
	listVerb     = newListVerb("runs.list")
	listLiveVerb = newListVerb("runs.listlive")
	stepsVerb    = store.NewVerb(store.Decl{Name: "runs.steps", Lane: store.Read}, nil,
		func(a stepsArgs, args *store.Args) {
			args.Text("run", a.run)
			args.Int("after", a.behind)
			args.Int("limit", int64(a.limit))
		},
		func(all *[]Step, r store.Row) error {
			var s stepRow
			err := r.Scan(s.into()...)
			*all = append(*all, s.step())
			return err
		})
)

func newListVerb(name string) *store.Verb[listArgs, []Run] {
	return store.NewVerb(store.Decl{Name: name, Lane: store.Read}, nil,
		func(a listArgs, args *store.Args) {
			args.Text("after", a.behind)
			args.Text("status", a.status)
			args.Text("definition", a.definition)
			args.Int("limit", int64(a.limit))
		},
		func(all *[]Run, r store.Row) error {
			var x runRow
			err := r.Scan(x.into()...)
			*all = append(*all, x.run())
			return err
		})
}

// runRow is a run as it is read.
type runRow struct{ Run }

func (x *runRow) into() []any {
	r := &x.Run
	return []any{&r.Workspace, &r.ID, &r.Definition, &r.Key, &r.Status, &r.Version, &r.Input, &r.State, &r.memo, &r.Output, &r.Error, &r.Step, &r.Visit,
		&r.CancelRequested, &r.CreatedAt, &r.StartedAt, &r.FinishedAt}
}

func (x *runRow) run() Run {
	r := x.Run
	return r
}

// stepRow is a step as it is read.
type stepRow struct {
	Step
	kind    string
	timeout int64
}

func (x *stepRow) into() []any {
	s := &x.Step
	return []any{&s.Name, &s.Visit, &s.N, &x.kind, &s.Handler, &s.Status, &s.Input, &s.Output, &s.Error, &s.Next, &s.Attempts, &s.Failures, &s.Holder, &s.Epoch, &s.Until,
		&s.Deaths, &s.Quiet, &s.Lost, &x.timeout, &s.Due, &s.Deadline, &s.past, &s.Begun, &s.Uncertain, &s.Safety, &s.Unknown, &s.Signal, &s.Fired, &s.StartedAt, &s.FinishedAt}
}

func (x *stepRow) step() Step {
	s := x.Step
	s.Type, s.Timeout = definitions.Type(x.kind), time.Duration(x.timeout)*time.Millisecond
	return s
}

func scanLive(all *[]Live, r store.Row) error {
	var x runRow
	var s stepRow
	var l Live
	g, a := &l.signal, &l.approval
	err := r.Scan(append(append(x.into(), s.into()...), &g.id, &g.payload, &a.status, &a.actor, &a.label, &a.content)...)
	l.Run, l.Step = x.run(), s.step()
	*all = append(*all, l)
	return err
}

// IDs of runs begin with this, and are in the order of time.
const idPrefix = "run_"

func newID() string { return idPrefix + strings.ReplaceAll(store.NewID().String(), "-", "") }

// load reads a run with a step of it: with the one that it stands at, if none is named.
func load(ctx context.Context, d store.Doer, at store.Place, a loadArgs) (Live, error) {
	all, err := loadVerb.DoAt(ctx, d, at, a)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "there is no run %q", a.run)
		if a.step != "" {
			err = fault.New(fault.NotFound, "there is no operation %q", Operation(a.run, a.step, a.visit))
		}
	}
	if err != nil {
		return Live{}, err
	}
	all[0].Shard = at.Shard
	return all[0], nil
}

// Load returns a run with the step that it stands at, or [fault.NotFound].
func Load(ctx context.Context, d store.Doer, id string) (Live, error) {
	if err := CheckID(id); err != nil {
		return Live{}, err
	}
	at, err := d.Place(ctx, store.Read)
	if err != nil {
		return Live{}, err
	}
	return load(ctx, d, at, loadArgs{run: id})
}

// Get returns a run, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, id string) (Run, error) {
	l, err := Load(ctx, d, id)
	return l.Run, err
}

// CheckID refuses what cannot be a run's id.
func CheckID(id string) error {
	if err := strict.Text("run", id, events.MaxName); err != nil {
		return err
	}
	if strings.Contains(id, "/") {
		return fault.New(fault.Validation, "a run's id has no slash: %q", id)
	}
	return nil
}

// Filter says which runs are meant.
type Filter struct{ Status, Definition string }

// List returns runs, the newest first, behind one of them.
func List(ctx context.Context, d store.Doer, f Filter, behind string, limit int) ([]Run, error) {
	if f.Status != "" && !slices.Contains(Statuses, f.Status) {
		return nil, fault.New(fault.Validation, "a run's status is one of %s: %q", strings.Join(Statuses, ", "), f.Status).With("pointer", "/status")
	}
	verb := listVerb
	if f.Status != "" && f.Status != Completed && f.Status != Cancelled {
		verb = listLiveVerb
	}
	return verb.Do(ctx, d, listArgs{behind, f.Status, f.Definition, limit})
}

// Steps returns the visits of steps of a run, in their order, behind one of them.
func Steps(ctx context.Context, d store.Doer, id string, behind int64, limit int) ([]Step, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	all, err := stepsVerb.Do(ctx, d, stepsArgs{id, behind, limit})
	if err == nil && len(all) == 0 { // there may be no such run
		_, err = Get(ctx, d, id)
	}
	return all, err
}

// memo is what a run remembers of its steps: how often each was visited, and of those that
// an expression looks at, what came out last.
type memo struct {
	N      int64                `json:"n"`
	Visits map[string]int64     `json:"visits"`
	Steps  map[string]knownStep `json:"steps,omitempty"`
	// Last is what came out of the last step that had anything to say.
	Last json.RawMessage `json:"last,omitempty"`
}

type knownStep struct {
	Status string          `json:"status"`
	Visit  int64           `json:"visit"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

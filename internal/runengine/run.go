// Package runengine keeps workflows that are taken step by step: a run, which is one execution
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
//
// The files stand in layers, and call those below (internal/archtest lists and checks them). From the lowest up: runs and
// their ids, and how they are read (runs.go, read.go); plans, which know no database (plan.go, input.go, enter.go, moves.go);
// the desk, which puts them into force under the hold of a step (apply.go, journal.go, desk.go, step.go); signals,
// approvals and what is due (inbox.go, due.go); and who does the steps: this program or another (serve.go,
// worker.go, remote.go).
package runengine

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/workflow"
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

// Engine is what runs run on.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
	Shards(context.Context) ([]int16, error)
}

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
	Type                  workflow.Type
	Handler, Status       string
	Input, Output         []byte
	Error, Next           string
	Attempts, Failures    int64
	Holder                string
	Epoch                 int64
	Until                 time.Time
	Crashes               int64
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

// ClaimedStep is a run with one of its steps, and what has come for that: a signal, or a decision.
type ClaimedStep struct {
	Shard int16
	Run   Run
	Step  Step

	signal   delivered
	approval decision
	again    bool      // it was ended so before
	taken    bool      // the step is held by who moved the run
	since    time.Time // where it was taken: on this node's clock, before that
}

// Taken says that the step is held by who has just moved the run.
func (l *ClaimedStep) Taken() bool { return l.taken }

type delivered struct {
	id      string
	payload []byte
}

type decision struct {
	status, actor, label string
	content              []byte
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

func (l *ClaimedStep) partition() store.Partition {
	return store.Partition{Shard: l.Shard, Workspace: l.Run.Workspace}
}

// share is whose room a body of a step takes.
func (l *ClaimedStep) share() lease.Share {
	return lease.Share{Workspace: l.Run.Workspace, Handler: l.Step.Handler}
}

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

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// IDs of runs begin with this, and are in the order of time.
const idPrefix = "run_"

func newID() string { return idPrefix + strings.ReplaceAll(store.NewID().String(), "-", "") }

// CheckID refuses what cannot be a run's id.
func CheckID(id string) error {
	if err := strictjson.Text("run", id, events.MaxName); err != nil {
		return err
	}
	if strings.Contains(id, "/") {
		return fault.New(fault.Validation, "a run's id has no slash: %q", id)
	}
	return nil
}

// Operation names a visit of a step to other systems: it is the same for every attempt.
func Operation(run, step string, visit int64) string { return run + "/" + step + "/" + itoa(visit) }

// Operation names the step to other systems.
func (l *ClaimedStep) Operation() string { return Operation(l.Run.ID, l.Step.Name, l.Step.Visit) }

// IsOperation says whether an operation's id may be one of a step.
func IsOperation(id string) bool { return strings.HasPrefix(id, idPrefix) }

// visited names a visit of a step. Without a step it is the one that the run stands at.
type visited struct {
	run, step string
	visit     int64
}

// visitedOf takes apart what names a visit.
func visitedOf(parts []string) (v visited, ok bool) {
	if len(parts) != 3 {
		return v, false
	}
	visit, err := strconv.ParseInt(parts[2], 10, 64)
	return visited{parts[0], parts[1], visit}, err == nil
}

// cutOperation takes the id of an operation apart.
func cutOperation(id string) (visited, bool) {
	v, ok := visitedOf(strings.Split(id, "/"))
	return v, ok && v.visit > 0 && IsOperation(id)
}

// cutID takes apart the id of something that a visit has.
func cutID(prefix, id string) (visited, bool) {
	parts, _ := lease.Parts(prefix, id, 3)
	return visitedOf(parts)
}

// id names something that the visit has.
func (v visited) id(prefix string) string { return lease.ID(prefix, v.run, v.step, itoa(v.visit)) }

// visited names the visit of the step.
func (l *ClaimedStep) visited() visited { return visited{l.Run.ID, l.Step.Name, l.Step.Visit} }

// operationPrefix begins the id that an operation has in a path.
const operationPrefix = "opr_"

// OperationID names the step's operation in a path: it has no slash.
func (l *ClaimedStep) OperationID() string {
	return l.visited().id(operationPrefix)
}

// OperationOf is the operation that an [ClaimedStep.OperationID] names, or that id itself where it
// is an operation already; false if it is none of a step.
func OperationOf(id string) (operation string, ok bool) {
	if IsOperation(id) {
		return id, true
	}
	v, ok := cutID(operationPrefix, id)
	return Operation(v.run, v.step, v.visit), ok && IsOperation(v.run)
}

// Subject is what the step's operation is of.
func (l *ClaimedStep) Subject() string { return "run " + l.Run.ID + " step " + l.Step.Name }

// taskPrefix begins the id of a step's task.
const taskPrefix = "stp_"

// TaskID names the step in somebody's hands to that somebody.
func (l *ClaimedStep) TaskID() string { return l.visited().id(taskPrefix) }

// Package runengine executes workflows step by step. A run is one execution of a definition; each
// visit of a step is a row of its own.
//
// This package computes the next move of a run from the definition, as a plan. The database applies
// the plan if the run still has the version that the plan was made at, and if the lease on its step
// still has the same holder. One statement therefore makes every move of a run, and all changes of a
// move are in one transaction: the step that ends, the step that begins, the state, the events. A
// concurrent caller that comes second finds another version, reads the run again and makes a new
// plan. A holder's result is recorded even if a pause or a cancel came first.
//
// Every statement locks in the order run, step, approval.
//
// The files form layers, and each layer calls mostly those below it (internal/archtest lists the layers and limits the
// exceptions). From the lowest to the highest: runs, their ids and reads (run.go, read.go); plans, which do not access the
// database (plan.go, input.go, enter.go, moves.go); the executor, which applies them under the lease of a step (plain.go,
// apply.go, journal.go, executor.go, step.go); signals, approvals and due steps (inbox.go, due.go); and the execution of
// steps, in this program or elsewhere (behind.go, serve.go, worker.go, remote.go).
package runengine

import (
	"context"
	"encoding/json"
	"maps"
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

// Statuses are the statuses of runs.
var Statuses = []string{Pending, Running, Waiting, Paused, Completed, Failed, Cancelled}

// RunTable lists the allowed transitions between statuses of a run.
var RunTable = map[string][]string{
	Pending: {Running, Cancelled},
	Running: {Waiting, Paused, Completed, Failed, Cancelled},
	Waiting: {Running, Cancelled, Failed},
	Paused:  {Running, Cancelled},
	Failed:  {Running},
}

// StepTable lists the allowed transitions between statuses of a step.
var StepTable = map[string][]string{
	Pending: {Running, Skipped, Cancelled},
	Running: {Waiting, Completed, Failed, Cancelled},
	Waiting: {Running, Completed, Failed, Cancelled},
	Failed:  {Running},
}

// Over reports whether a run with this status has ended. A failed run may be retried.
func Over(status string) bool { return status == Completed || status == Failed || status == Cancelled }

// Engine is the part of an engine that runs need.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
	Shards(context.Context) ([]int16, error)
}

// Run is the current state of a run.
type Run struct {
	Workspace, ID, Definition, Key   string
	Status                           string
	Version                          int64
	Input, State, Output             []byte
	Error                            string
	Step                             string // the current step
	Visit                            int64
	CancelRequested                  bool
	CreatedAt, StartedAt, FinishedAt time.Time
	UpdatedAt                        time.Time

	memo []byte // as stored; see the type memo
}

// Step is one visit of a step.
type Step struct {
	Name                  string
	Visit                 int64 // among the visits of this step, from 1
	N                     int64 // among all visits of the run, from 1
	Type                  workflow.Type
	Handler, Status       string
	Input, Output         []byte
	Error                 string
	Next                  string // the step that follows; set when the step has ended
	Attempts, Failures    int64
	Holder                string
	Epoch                 int64
	Until                 time.Time
	Crashes               int64
	Quiet                 bool  // handed out to a remote holder that has not responded yet
	Lost                  int64 // consecutive hand-outs without any response
	Timeout               time.Duration
	Due                   time.Time // when it may be taken
	Deadline              time.Time // of a wait for a signal or a decision
	Begun                 int64     // effects begun and not known as not done
	Uncertain             bool
	Safety                string
	Unknown               string // the policy for effects with an unknown outcome
	Signal                string // the type of the signal that it waits for
	Fired                 string // the operation that a transition fired
	StartedAt, FinishedAt time.Time

	past bool // the deadline has passed, by the database's clock
}

// ClaimedStep is a run with one of its steps, leased or not, and the signal or decision that arrived for the step.
type ClaimedStep struct {
	Shard int16
	Run   Run
	Step  Step

	signal   delivered
	approval decision
	again    bool      // this end was recorded before
	taken    bool      // the caller that moved the run holds the lease of the step
	since    time.Time // if taken: this node's clock before that
	memo     *memo     // the run's memo, decoded; or nil
}

// Taken reports whether the caller that just moved the run holds the lease of the step.
func (l *ClaimedStep) Taken() bool { return l.taken }

type delivered struct {
	id      string
	payload []byte
}

type decision struct {
	status, actor, label string
	content              []byte
}

// memo is a run's memory of its steps: the number of visits of each and, for steps that expressions
// refer to, their latest result.
type memo struct {
	N      int64                `json:"n"` // all visits
	Visits map[string]int64     `json:"visits"`
	Steps  map[string]knownStep `json:"steps,omitempty"`
	// Last is the output of the latest step that had one.
	Last json.RawMessage `json:"last,omitempty"`
}

func (m *memo) clone() memo {
	return memo{m.N, maps.Clone(m.Visits), maps.Clone(m.Steps), m.Last}
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

// share returns the capacity share of a step's body.
func (l *ClaimedStep) share() lease.Share {
	return lease.Share{Workspace: l.Run.Workspace, Handler: l.Step.Handler}
}

// Stream returns the name of the stream with a run's history.
func Stream(id string) string { return "$run/" + id }

// Topic returns the topic that wakes workers of a handler. "" is for the engine's own steps.
func Topic(handler string) string { return "run/" + handler }

// Made is the topic that wakes workers that serve any handler.
const Made = "run-made"

// ProgressTopic returns the topic that wakes readers that follow a run.
func ProgressTopic(id string) string { return "run-progress/" + id }

// EndTopic returns the topic that is woken when a run ends.
func EndTopic(id string) string { return "run-ended/" + id }

// CancelTopic returns the topic that is woken when the cancellation of a run is requested.
func CancelTopic(id string) string { return "run-cancelled/" + id }

// row returns the name of a run's row, for verbs that lock it.
func row(id string) string { return "run/" + id }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// idPrefix is the prefix of run ids, which are ordered by time.
const idPrefix = "run_"

// expiredPrefix replaces idPrefix in the id of a row that keeps only the key of a deleted run. The order of the two matters:
// lists begin at idPrefix.
const expiredPrefix = "expired_"

// expiredID returns the id of the row that keeps the key of a run; that of such a row is its own.
func expiredID(run string) string {
	if id, ok := strings.CutPrefix(run, idPrefix); ok {
		return expiredPrefix + id
	}
	return run
}

func newID() string { return idPrefix + strings.ReplaceAll(store.NewID().String(), "-", "") }

// CheckID returns an error if id is not a valid run id.
func CheckID(id string) error {
	if err := strictjson.Text("run", id, events.MaxName); err != nil {
		return err
	}
	if strings.Contains(id, "/") {
		return fault.New(fault.Validation, "a run id must not contain a slash, got %q", id)
	}
	return nil
}

// Operation returns the external id of a visit of a step. It is the same for every attempt.
func Operation(run, step string, visit int64) string { return run + "/" + step + "/" + itoa(visit) }

// Operation returns the external id of the step's visit.
func (l *ClaimedStep) Operation() string { return Operation(l.Run.ID, l.Step.Name, l.Step.Visit) }

// IsOperation reports whether an operation id may be that of a step.
func IsOperation(id string) bool { return strings.HasPrefix(id, idPrefix) }

// visited identifies a visit of a step. Without a step it is the current step of the run.
type visited struct {
	run, step string
	visit     int64
}

// visitedOf parses the parts of a visit's id.
func visitedOf(parts []string) (v visited, ok bool) {
	if len(parts) != 3 {
		return v, false
	}
	visit, err := strconv.ParseInt(parts[2], 10, 64)
	return visited{parts[0], parts[1], visit}, err == nil
}

// cutOperation parses the id of an operation.
func cutOperation(id string) (visited, bool) {
	v, ok := visitedOf(strings.Split(id, "/"))
	return v, ok && v.visit > 0 && IsOperation(id)
}

// cutID parses the id of an object that belongs to a visit.
func cutID(prefix, id string) (visited, bool) {
	parts, _ := lease.Parts(prefix, id, 3)
	return visitedOf(parts)
}

// id returns the id of an object that belongs to the visit.
func (v visited) id(prefix string) string { return lease.ID(prefix, v.run, v.step, itoa(v.visit)) }

// visited returns the visit of the step.
func (l *ClaimedStep) visited() visited { return visited{l.Run.ID, l.Step.Name, l.Step.Visit} }

// operationPrefix is the prefix of operation ids in paths.
const operationPrefix = "opr_"

// OperationID returns the id of the step's operation for use in a path: it has no slash.
func (l *ClaimedStep) OperationID() string {
	return l.visited().id(operationPrefix)
}

// OperationOf returns the operation for a [ClaimedStep.OperationID]. It returns an operation id
// unchanged, and false for any other id.
func OperationOf(id string) (operation string, ok bool) {
	if IsOperation(id) {
		return id, true
	}
	v, ok := cutID(operationPrefix, id)
	return Operation(v.run, v.step, v.visit), ok && IsOperation(v.run)
}

// Phase returns the phase of the step's operation: held, due, uncertain or ended.
func (s Step) Phase() string {
	switch {
	case s.Uncertain:
		return "uncertain"
	case s.Holder != "":
		return "held"
	case s.Status == Running || s.Status == Waiting || s.Status == Pending:
		return "due"
	}
	return "ended"
}

// Subject returns a description of the step for operators.
func (l *ClaimedStep) Subject() string { return "run " + l.Run.ID + " step " + l.Step.Name }

// taskPrefix is the prefix of task ids.
const taskPrefix = "stp_"

// TaskID returns the id of the step's task for its worker.
func (l *ClaimedStep) TaskID() string { return l.visited().id(taskPrefix) }

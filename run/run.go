package run

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Status is the status of a run.
type Status string

// The statuses of runs.
const (
	Pending   Status = "PENDING"   // not begun
	Running   Status = "RUNNING"   // a step is in flight or due
	Waiting   Status = "WAITING"   // for a time, a signal, a decision or a retry
	Paused    Status = "PAUSED"    // by [Pause]
	Completed Status = "COMPLETED" // final
	Failed    Status = "FAILED"    // final, unless [Retry] continues it
	Cancelled Status = "CANCELLED" // final
)

// StepStatus is the status of a [Visit].
type StepStatus string

// The statuses of visits.
const (
	StepPending   StepStatus = "PENDING"   // not begun
	StepRunning   StepStatus = "RUNNING"   // in flight or due
	StepWaiting   StepStatus = "WAITING"   // for a time, a signal, a decision or a retry
	StepCompleted StepStatus = "COMPLETED" // final
	StepFailed    StepStatus = "FAILED"    // final, unless [Retry] continues the run
	StepCancelled StepStatus = "CANCELLED" // final
	StepSkipped   StepStatus = "SKIPPED"   // final: its branch was not taken
)

// Run is the state of a run at the time of the read.
type Run struct {
	ID, Definition, Key  string
	Status               Status
	Version              int64
	Input, State, Output json.RawMessage
	Error                string
	Step                 string // the current step, or the last one of a run that has ended
	CancelRequested      bool
	CreatedAt            time.Time
	StartedAt            time.Time
	FinishedAt           time.Time
	UpdatedAt            time.Time // the last change
}

// Over reports whether the run is COMPLETED, FAILED or CANCELLED. A failed run can be retried with [Retry].
func (r Run) Over() bool { return runengine.Over(string(r.Status)) }

func public(r runengine.Run) Run {
	return Run{ID: r.ID, Definition: r.Definition, Key: r.Key, Status: Status(r.Status), Version: r.Version, Input: r.Input, State: r.State, Output: raw(r.Output), Error: r.Error,
		Step: r.Step, CancelRequested: r.CancelRequested, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, UpdatedAt: r.UpdatedAt}
}

// raw returns stored JSON, or nil if it is empty, because an empty [json.RawMessage] cannot be encoded.
func raw(text []byte) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	return text
}

// StartOption is an option of [Definition.Start].
type StartOption struct{ set func(*runengine.Start) }

// Key makes a start idempotent: every later start with the same key, by any caller, returns the run
// that was started first. If the key is empty, Start returns [holdfast.ErrValidation].
func Key(key string) StartOption {
	return StartOption{func(s *runengine.Start) {
		if s.Key = key; key == "" {
			s.Key = "\x00" // rejected by Start: an empty key is a mistake
		}
	}}
}

// Start starts a run; created reports whether the run is new. With a [Key] that was used before, Start
// returns the run that was started first, [holdfast.ErrKeyMismatch] if the content differs, or [holdfast.ErrKeyExpired] if that
// run was deleted after its [Retention]. If the
// definition is invalid, or the input cannot be encoded as JSON, Start returns [holdfast.ErrValidation].
// In a transaction, the run starts when the transaction commits.
func (d *Definition) Start(ctx context.Context, doer holdfast.Doer, input any, o ...StartOption) (r Run, created bool, err error) {
	if d.bad != nil {
		return Run{}, false, d.bad
	}
	s := runengine.Start{Declared: d.def}
	if s.Input, err = json.Marshal(input); err != nil {
		return Run{}, false, fault.New(fault.Validation, "the input cannot be encoded as JSON: %v", err)
	}
	for _, option := range o {
		option.set(&s)
	}
	if s.Key == "\x00" {
		return Run{}, false, runengine.CheckKey("")
	}
	at := store.DoerOf(doer)
	l, created, err := localOf(at).Start(ctx, at, s)
	return public(l.Run), created, err
}

// localOf returns what an engine, or the engine of a transaction, keeps in memory for its runs.
func localOf(d store.Doer) *runengine.Local {
	if tx, inside := d.(*store.Tx); inside {
		return runengine.LocalOf(tx)
	}
	return serviceOf(d.(*engine.Engine)).Local
}

// Get returns a run, or [holdfast.ErrNotFound].
func Get(ctx context.Context, d holdfast.Doer, id string) (Run, error) {
	r, err := runengine.Get(ctx, store.DoerOf(d), id)
	return public(r), err
}

// StepType is the type of a step.
type StepType string

// The types of steps, and the functions that make them.
const (
	TaskStep       StepType = "task"       // [Task], [Remote]
	CallStep       StepType = "http"       // [Call]
	WaitStep       StepType = "wait"       // [Wait], [Until]
	SignalStep     StepType = "event"      // [Signal]
	ApprovalStep   StepType = "approval"   // [Approval]
	ConditionStep  StepType = "condition"  // [If]
	TransitionStep StepType = "transition" // [Fire]
)

// Visit is one visit of a step. A loop visits a step several times.
type Visit struct {
	Name  string
	Visit int
	// Operation identifies the visit: [Info.Operation], and the argument of [Resolve] and [Release].
	Operation string
	Type      StepType
	// Handler is the handler that executes the step, or "" if the engine does so itself. For a [Task] it is
	// name@version/step.
	Handler  string
	Status   StepStatus
	Attempts int
	Failures int // attempts that were reported as failed
	// Crashes counts the attempts whose lease expired without a report. The fifth one ends the step ([WithRetry]).
	Crashes int
	// LostHandOuts counts consecutive hand-outs to workers that never responded.
	LostHandOuts int
	Holder       string    // of the lease, or ""
	Epoch        int64     // of the lease
	Until        time.Time // end of the lease
	// DueAt is when the step may next be executed, or when its wait ends. It is the zero time if there is no such time, for
	// example while the step is leased.
	DueAt time.Time
	// Uncertain reports that the outcome of an effect is unknown: the step waits for [Resolve].
	Uncertain             bool
	Input, Output         json.RawMessage
	Error                 string
	StartedAt, FinishedAt time.Time
}

// ListSteps iterates over the visits of a run's steps, in the order in which they were visited. If the run does not
// exist, the error is [holdfast.ErrNotFound].
func ListSteps(ctx context.Context, d holdfast.Doer, id string) iter.Seq2[Visit, error] {
	return store.Seq(func(after runengine.Step, limit int) ([]runengine.Step, error) {
		return runengine.Steps(ctx, store.DoerOf(d), id, after.N, limit)
	}, func(s runengine.Step) Visit { return visit(id, s) })
}

func visit(id string, s runengine.Step) Visit {
	return Visit{Name: s.Name, Visit: int(s.Visit), Operation: runengine.Operation(id, s.Name, s.Visit), Type: StepType(s.Type), Handler: s.Handler, Status: StepStatus(s.Status),
		Attempts: int(s.Attempts), Failures: int(s.Failures), Crashes: int(s.Crashes), LostHandOuts: int(s.Lost), Holder: s.Holder, Epoch: s.Epoch, Until: store.OrZero(s.Until), DueAt: store.OrZero(s.Due),
		Uncertain: s.Uncertain, Input: s.Input, Output: raw(s.Output), Error: s.Error, StartedAt: s.StartedAt, FinishedAt: s.FinishedAt}
}

// Await waits until a run has ended and returns it. If ctx ends first, Await returns the error from ctx, and the run as it
// last read it, or the zero Run if it has not read the run. If the run does not exist, the error is [holdfast.ErrNotFound].
func Await(ctx context.Context, e *holdfast.Engine, id string) (Run, error) {
	if r, ok, err := awaitServed(ctx, e, id); ok {
		return r, err
	}
	woken, end := engine.Of(e).Hub().Wait(runengine.EndTopic(id))
	defer end()
	// A run that ends on another node, or whose wake-up is lost, is found by polling.
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		r, err := Get(ctx, e, id)
		if err != nil || r.Over() {
			return r, err
		}
		timer := time.NewTimer(clock.Jitter(pause))
		select {
		case <-woken:
			pause = 20 * time.Millisecond
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return r, ctx.Err()
		}
		timer.Stop()
	}
}

// awaitServed waits for the end of a run that this process serves now, without reading the run. ok is false if the run
// must be read: this process does not serve it, has left it before its end, or has served it for so long that it may
// have ended on another node meanwhile.
func awaitServed(ctx context.Context, e *holdfast.Engine, id string) (r Run, ok bool, err error) {
	w := localOf(engine.Of(e)).Worker
	if w == nil {
		return r, false, nil
	}
	s := w.Served(store.WorkspaceOf(ctx), id)
	if s == nil {
		return r, false, nil
	}
	timer := time.NewTimer(clock.Jitter(time.Second))
	defer timer.Stop()
	select {
	case <-s.Done:
		r = public(s.Run())
		r.Input, r.State, r.Output = slices.Clone(r.Input), slices.Clone(r.State), slices.Clone(r.Output) // others may wait for the run too
		return r, r.Over() && r.Status != Failed, nil                                                     // a failed run may have been retried since
	case <-timer.C:
		return r, false, nil
	case <-ctx.Done():
		read, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if r, err = Get(read, e, id); err != nil || !r.Over() {
			err = ctx.Err()
		}
		return r, true, err
	}
}

// SendOption is an option of [Send]: [SignalID] or [By].
type SendOption interface {
	send(*runengine.Signal) error
}

type signalID string

func (id signalID) send(s *runengine.Signal) error {
	if s.ID = string(id); s.ID == "" {
		return fault.New(fault.Validation, "the id of a signal must not be empty: omit SignalID to generate one")
	}
	return nil
}

func (a ActorOption) send(s *runengine.Signal) error {
	s.Actor = a.actor
	return nil
}

// SignalID makes a signal idempotent: sending the same signal again has no further effect, and other content under the
// same id returns [holdfast.ErrConflict]. An empty id makes Send return [holdfast.ErrValidation].
func SignalID(id string) SendOption { return signalID(id) }

// Send sends a signal to a run. Without a [SignalID], each call sends another signal. A run that is over accepts no
// signals: Send returns [holdfast.ErrInvalidTransition].
func Send(ctx context.Context, d holdfast.Doer, id, signal string, payload any, o ...SendOption) error {
	data, err := json.Marshal(payload)
	if err != nil {
		return fault.New(fault.Validation, "the payload cannot be encoded as JSON: %v", err)
	}
	s := runengine.Signal{Run: id, Type: signal, Payload: data}
	for _, option := range o {
		if err := option.send(&s); err != nil {
			return err
		}
	}
	_, err = runengine.Send(ctx, store.DoerOf(d), s)
	return err
}

// ApprovalStatus is the status of an approval request.
type ApprovalStatus string

// The statuses of approval requests.
const (
	AwaitingDecision ApprovalStatus = "pending"
	Approved         ApprovalStatus = "approved"
	Rejected         ApprovalStatus = "rejected"
	Edited           ApprovalStatus = "edited"  // approved with other content
	Expired          ApprovalStatus = "expired" // nobody decided in time
)

// ApprovalRequest is the question that an approval step asks.
type ApprovalRequest struct {
	ID, Run, Step        string
	Visit                int // of the step
	Prompt               string
	Requesters           []string // requesters that may decide; empty means any
	Status               ApprovalStatus
	Actor                string // actor that decided
	Content              json.RawMessage
	CreatedAt, DecidedAt time.Time
	ExpiresAt            time.Time // the end of the step's [Timeout]; the zero time if it has none
}

func approvalRequest(a runengine.Approval) ApprovalRequest {
	return ApprovalRequest{ID: a.ID, Run: a.Run, Step: a.Step, Visit: int(a.Visit), Prompt: a.Prompt, Requesters: a.Requesters, Status: ApprovalStatus(a.Status), Actor: a.Actor,
		Content: raw(a.Content), CreatedAt: a.CreatedAt, DecidedAt: a.DecidedAt, ExpiresAt: store.OrZero(a.ExpiresAt)}
}

// GetApproval returns an approval request, or [holdfast.ErrNotFound].
func GetApproval(ctx context.Context, d holdfast.Doer, id string) (ApprovalRequest, error) {
	a, err := runengine.GetApproval(ctx, store.DoerOf(d), id)
	return approvalRequest(a), err
}

// ApprovalFilter selects approval requests. The zero value selects all.
type ApprovalFilter struct {
	Run    string
	Status ApprovalStatus
}

// ListApprovals iterates over approval requests, ordered by id. An unknown status is [holdfast.ErrValidation].
func ListApprovals(ctx context.Context, d holdfast.Doer, f ApprovalFilter) iter.Seq2[ApprovalRequest, error] {
	return store.SeqFound(func(after runengine.Approval, limit int) ([]store.Found[runengine.Approval], error) {
		return runengine.Approvals(ctx, store.DoerOf(d), string(f.Status), f.Run, after.ID, limit)
	}, approvalRequest)
}

// Decision is the answer to an approval request.
type Decision struct {
	Status    ApprovalStatus // [Approved], [Rejected] or [Edited]
	Requester string         // requester on whose behalf it is decided
	Content   any
}

// ActorOption is the option [By] for [Decide], which requires it. It is also a [CommandOption], a [SendOption], a
// [ReleaseOption] and a [ResolveOption].
type ActorOption struct{ actor string }

// By sets the actor that the history records.
func By(actor string) ActorOption { return ActorOption{actor} }

// Decide decides an approval request. Only the first decision counts. Any later decision, also the same one again,
// returns [holdfast.ErrConflict], and so does a decision that comes after the request has expired or the run has moved
// on. The approval request beside the error says what was decided ([ApprovalRequest.Status] and Actor). A decision needs
// an actor ([By]); without one it returns [holdfast.ErrValidation]. A requester that the approval request does not name
// gets [holdfast.ErrForbidden].
func Decide(ctx context.Context, d holdfast.Doer, approval string, v Decision, o ...ActorOption) (ApprovalRequest, error) {
	x := runengine.Decision{Decision: string(v.Status), May: func(requesters []string) error {
		if len(requesters) == 0 || slices.Contains(requesters, v.Requester) {
			return nil
		}
		return fault.New(fault.Forbidden, "requester %q may not decide approval %q; allowed requesters: %s", v.Requester, approval, strings.Join(requesters, ", ")).With("requesters", requesters)
	}}
	for _, option := range o {
		x.Actor = option.actor
	}
	if x.Actor == "" {
		return ApprovalRequest{}, fault.New(fault.Validation, "the decision has no actor: pass run.By with the name of the person or system that decides")
	}
	if v.Content != nil {
		var err error
		if x.Content, err = json.Marshal(v.Content); err != nil {
			return ApprovalRequest{}, fault.New(fault.Validation, "the content cannot be encoded as JSON: %v", err)
		}
	}
	a, err := runengine.Decide(ctx, store.DoerOf(d), approval, x)
	return approvalRequest(a), err
}

// CommandOption is an option of [Cancel], [Pause], [Resume] and [Retry]: [ExpectVersion] or [By].
type CommandOption interface {
	command(*runengine.Command)
}

type commandOption func(*runengine.Command)

func (f commandOption) command(c *runengine.Command) { f(c) }

func (a ActorOption) command(c *runengine.Command) { c.Actor = a.actor }

// ExpectVersion makes a command fail with [holdfast.ErrConcurrency] unless the run is at this version, which must not
// be negative.
func ExpectVersion(version int64) CommandOption {
	return commandOption(func(c *runengine.Command) { c.Version = &version })
}

// Cancel cancels a run. If a step is in flight, the cancellation is recorded, and the run is
// cancelled when that step ends. If the step is uncertain, or an effect of it is unknown while it waits for its next
// attempt (the step then becomes uncertain), the run is cancelled only after [Resolve]. The results of finished steps stay
// stored. If the run has ended, also by a cancellation, Cancel returns [holdfast.ErrInvalidTransition].
func Cancel(ctx context.Context, d holdfast.Doer, id string, o ...CommandOption) (Run, error) {
	return command(ctx, d, id, runengine.Cancel, o)
}

// Pause stops a RUNNING run from beginning further steps. A step in flight finishes first. If the
// run cannot be paused, Pause returns [holdfast.ErrInvalidTransition].
func Pause(ctx context.Context, d holdfast.Doer, id string, o ...CommandOption) (Run, error) {
	return command(ctx, d, id, runengine.Pause, o)
}

// Resume continues a paused run. If the run is not paused, Resume returns
// [holdfast.ErrInvalidTransition].
func Resume(ctx context.Context, d holdfast.Doer, id string, o ...CommandOption) (Run, error) {
	return command(ctx, d, id, runengine.Resume, o)
}

// Retry continues a failed run at the step that failed. If the run has not failed, or if it would fail again at once,
// because it has reached its limit of steps or because an expression fails as before, Retry returns
// [holdfast.ErrInvalidTransition] and changes nothing.
func Retry(ctx context.Context, d holdfast.Doer, id string, o ...CommandOption) (Run, error) {
	return command(ctx, d, id, runengine.Retry, o)
}

func command(ctx context.Context, d holdfast.Doer, id, name string, all []CommandOption) (Run, error) {
	c := runengine.Command{Name: name}
	for _, option := range all {
		option.command(&c)
	}
	r, err := localOf(store.DoerOf(d)).Executor.Command(ctx, store.DoerOf(d), id, c)
	return public(r), err
}

// Info describes the run and the step of a task.
type Info struct {
	Run, Key string
	Step     string
	Visit    int
	Attempt  int
	// Operation is an idempotency key for other systems. It is the same for every attempt of this visit.
	Operation    string
	Input, State json.RawMessage
}

type workKey struct{}

// work is one attempt of a task.
type work struct {
	step    *runengine.ClaimedStep
	patches [][]byte
	commits []runengine.Commit
}

func workOf(ctx context.Context) *work {
	w, _ := ctx.Value(workKey{}).(*work)
	return w
}

// Of returns the Info of the task that ctx belongs to, and false outside a task.
func Of(ctx context.Context) (Info, bool) {
	w := workOf(ctx)
	if w == nil {
		return Info{}, false
	}
	l := w.step
	return Info{Run: l.Run.ID, Key: l.Run.Key, Step: l.Step.Name, Visit: int(l.Step.Visit), Attempt: int(l.Step.Attempts), Operation: l.Operation(), Input: l.Run.Input, State: l.Run.State}, true
}

// Patch changes the run's state when the task completes, by a merge patch (RFC 7396). The patches of a task are applied
// one after the other. A run's state is an object, so Patch returns [holdfast.ErrValidation] for a patch that is not an object: it
// would replace the whole state. It also returns this error outside a task.
func Patch(ctx context.Context, merge any) error {
	w := workOf(ctx)
	if w == nil {
		return outside("run.Patch")
	}
	data, err := json.Marshal(merge)
	if err != nil {
		return fault.New(fault.Validation, "the patch cannot be encoded as JSON: %v", err)
	}
	if err := strictjson.Object(data); err != nil {
		return err
	}
	w.patches = append(w.patches, data)
	return nil
}

// WriteTx adds f to the transaction that completes the step, so that the writes of f and the step's
// result are committed together or not at all. f may run more than once. Outside a task, WriteTx
// returns [holdfast.ErrValidation].
func WriteTx(ctx context.Context, f func(context.Context, holdfast.Tx) error) error {
	w := workOf(ctx)
	if w == nil {
		return outside("run.WriteTx")
	}
	w.commits = append(w.commits, func(ctx context.Context, tx *store.Tx) error { return f(ctx, tx) })
	return nil
}

func outside(what string) error {
	return fault.New(fault.Validation, "%s was called outside a task: call it inside a task, with the task's context", what)
}

// bodyOf makes a step's body from a function, or nil from none.
func bodyOf[I, O any](f func(context.Context, I) (O, error)) runengine.Body {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
		var input I
		if err := json.Unmarshal(l.Step.Input, &input); err != nil {
			return runengine.Done{}, holdfast.NonRetryable(fault.New(fault.Validation, "the input of step %q does not match the input type of its task: %v", l.Step.Name, err))
		}
		w := &work{step: l}
		output, err := f(context.WithValue(ctx, workKey{}, w), input)
		if err != nil {
			return runengine.Done{}, err
		}
		data, err := json.Marshal(output)
		if err != nil {
			return runengine.Done{}, runengine.MayHaveActed(holdfast.NonRetryable(fault.New(fault.Validation, "the result of step %q cannot be encoded as JSON: %v", l.Step.Name, err)))
		}
		return runengine.Done{Output: data, Patches: w.patches, Commits: w.commits}, nil
	}
}

// Filter selects runs. The zero value selects all.
type Filter struct {
	Status     Status
	Definition string // "name@version"
	Key        string // the key that a run was started with
	Step       string // the current step, or the last one
	Handler    string // the handler of that step
	// Since and Until limit when runs were created, UpdatedSince and UpdatedUntil when they were last changed: from a time,
	// inclusive, until another, exclusive.
	Since, Until, UpdatedSince, UpdatedUntil time.Time
}

// List iterates over runs, newest first. A key, and a status other than [Completed] and [Cancelled], are found by an index. The
// rest of the filter is applied to all runs that remain, or to those back to Since. An unknown status is
// [holdfast.ErrValidation].
func List(ctx context.Context, d holdfast.Doer, f Filter) iter.Seq2[Run, error] {
	g := runengine.Filter{Status: string(f.Status), Definition: f.Definition, Key: f.Key, Step: f.Step, Handler: f.Handler,
		Times: store.Times{Since: f.Since, Until: f.Until, UpdatedSince: f.UpdatedSince, UpdatedUntil: f.UpdatedUntil}}
	return store.SeqFound(func(after runengine.Run, limit int) ([]store.Found[runengine.Run], error) {
		return runengine.List(ctx, store.DoerOf(d), g, after.ID, limit)
	}, public)
}

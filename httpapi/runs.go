package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/wire"
)

// runRoutes adds the routes of runs. Idempotency says where the response to a request with the header Idempotency-Key is
// stored.
func (a *API) runRoutes() {
	const one = "workflow-runs/{id}"
	add(a, route{Method: http.MethodPost, Path: "workflow-runs", ID: "startRun", Tag: "runs", Summary: "Start a run. If a run was already started with the same key, the response contains that run.",
		Roles: operators, Status: http.StatusCreated, Also: http.StatusOK, Idempotency: table.InCommand, Adds: []quota.Kind{quota.Work, quota.Storage},
		More: "This key is the idempotencyKey in the request body, not the header Idempotency-Key."}, startRun)
	add(a, route{Method: http.MethodGet, Path: "workflow-runs", ID: "listRuns", Tag: "runs", Summary: "List the workspace's runs, newest first.", Roles: readers, Filter: "RunFilter", More: searches}, listRuns)
	add(a, route{Method: http.MethodGet, Path: one, ID: "getRun", Tag: "runs", Summary: "Show a run.", Roles: readers}, getRun)
	add(a, route{Method: http.MethodGet, Path: one + "/steps", ID: "listSteps", Tag: "runs", Summary: "List a run's step visits, in order.", Roles: readers}, listSteps)
	add(a, route{Method: http.MethodGet, Path: one + "/events", ID: "readRunHistory", Tag: "runs", Summary: "Read a run's events, or follow them until the run ends.", Roles: readers, Stream: true}, readRunHistory)
	add(a, route{Method: http.MethodPost, Path: one + "/cancel", ID: "cancelRun", Tag: "runs", Summary: "Cancel a run, immediately or when the step in flight ends.",
		Roles: operators, Also: http.StatusAccepted, Idempotency: table.InCommand, Frees: true,
		More: "Until the run ends, cancelRequested is set."}, cancelRun)
	add(a, route{Method: http.MethodPost, Path: one + "/pause", ID: "pauseRun", Tag: "runs", Summary: "Pause a run: no further step starts.", Roles: operators, Idempotency: table.InCommand}, commanded(runengine.Pause))
	add(a, route{Method: http.MethodPost, Path: one + "/resume", ID: "resumeRun", Tag: "runs", Summary: "Resume a paused run.", Roles: operators, Idempotency: table.InCommand}, commanded(runengine.Resume))
	add(a, route{Method: http.MethodPost, Path: one + "/retry", ID: "retryRun", Tag: "runs", Summary: "Retry a failed run at the step that failed.", Roles: operators, Idempotency: table.InCommand, Adds: []quota.Kind{quota.Work}}, commanded(runengine.Retry))
	add(a, route{Method: http.MethodPost, Path: one + "/signals", ID: "signalRun", Tag: "runs", Summary: "Send a signal to a run. The signal is stored until the run reads it.",
		Roles: operators, Status: http.StatusAccepted, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage},
		More: "Sending a signal again with the same id has no effect."}, signalRun)
}

func runOf(r runengine.Run) wire.Run {
	w := wire.Run{ID: r.ID, WorkspaceID: r.Workspace, DefinitionID: r.Definition, IdempotencyKey: nonEmpty(r.Key), Status: r.Status, Version: r.Version,
		Input: remote.OrNull(r.Input), State: remote.OrNull(r.State), Output: remote.OrNull(r.Output), CurrentStepName: nonEmpty(r.Step), CancelRequested: r.CancelRequested, Error: nonEmpty(r.Error),
		CreatedAt: timeOrNil(r.CreatedAt), StartedAt: timeOrNil(r.StartedAt), FinishedAt: timeOrNil(r.FinishedAt), UpdatedAt: timeOrNil(r.UpdatedAt)}
	if r.Status == runengine.Completed {
		w.CurrentStepName = nil
	}
	return w
}

// nonEmpty returns a pointer to s, or nil if it is empty.
func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// timeOrNil converts a time, or returns nil if the database has none.
func timeOrNil(t time.Time) *wire.Time {
	if t.Unix() <= 0 {
		return nil
	}
	return shapes.At(t)
}

type startRunIn struct{ Body wire.StartRun }

func (in *startRunIn) repeats(c *call) (bool, error) {
	if in.Body.IdempotencyKey == nil {
		return false, nil
	}
	found, err := runengine.List(c.ctx(), c.api.engine, runengine.Filter{Key: *in.Body.IdempotencyKey}, "", 1)
	return len(found) > 0, err
}

func startRun(c *call, in *startRunIn) (wire.StartedRun, error) {
	b := in.Body
	s := runengine.Start{Definition: b.DefinitionID, Input: b.Input}
	if b.DefinitionID == "" {
		return wire.StartedRun{}, fault.New(fault.Validation, "definitionId is required: set it to the id of the definition to run").With("pointer", "/definitionId")
	}
	if len(b.Input) > 0 {
		if err := strictjson.Object(b.Input); err != nil {
			return wire.StartedRun{}, strictjson.Within(err, "/input")
		}
	}
	if b.IdempotencyKey != nil {
		s.Key = *b.IdempotencyKey
		if err := runengine.CheckKey(s.Key); err != nil {
			return wire.StartedRun{}, strictjson.Within(err, "/idempotencyKey")
		}
	}
	l, created, err := runengine.LocalOf(c.api.engine).Start(c.ctx(), c.doer(), s)
	if err != nil {
		return wire.StartedRun{}, err
	}
	now := l.Run
	if created { // its times are set by the database
		if now, err = runengine.Get(c.ctx(), c.doer(), now.ID); err != nil {
			return wire.StartedRun{}, err
		}
	} else {
		c.status = http.StatusOK
	}
	c.w.Header().Set("Location", table.Base+"workflow-runs/"+url.PathEscape(now.ID))
	return wire.StartedRun{Run: runOf(now), Created: created}, nil
}

type listRunsIn struct {
	paged
	Status       string `query:"status" doc:"List only runs with this status."`
	DefinitionID string `query:"definitionId" doc:"List only runs of this definition."`
	Key          string `query:"key" doc:"List only the run with this run key."`
	Step         string `query:"step" doc:"List only runs whose current step has this name."`
	Handler      string `query:"handler" doc:"List only runs whose current step has this handler."`
	ranged
}

func listRuns(c *call, in *listRunsIn) (wire.List[wire.Run], error) {
	times, err := in.times()
	if err != nil {
		return wire.List[wire.Run]{}, err
	}
	f := runengine.Filter{Status: in.Status, Definition: in.DefinitionID, Key: in.Key, Step: in.Step, Handler: in.Handler, Times: times}
	return search(c, in.paged, func(ctx context.Context, after string, limit int) ([]store.Found[runengine.Run], error) {
		return runengine.List(ctx, c.doer(), f, after, limit)
	}, runOf, func(r runengine.Run) string { return r.ID })
}

type runIn struct {
	ID string `path:"id"`
}

func getRun(c *call, in *runIn) (wire.Run, error) {
	r, err := runengine.Get(c.ctx(), c.doer(), in.ID)
	return runOf(r), err
}

type listStepsIn struct {
	ID string `path:"id"`
	paged
}

func listSteps(c *call, in *listStepsIn) (wire.List[wire.RunStep], error) {
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]runengine.Step, error) {
		n, err := numberOf(after)
		if err != nil {
			return nil, err
		}
		return runengine.Steps(ctx, c.doer(), in.ID, n, limit)
	}, stepOf, func(s runengine.Step) string { return strconv.FormatInt(s.N, 10) })
}

func stepOf(s runengine.Step) wire.RunStep {
	return wire.RunStep{Name: s.Name, Visit: s.Visit, Type: string(s.Type), Handler: s.Handler, Status: s.Status, Attempts: s.Attempts, Failures: s.Failures, Deaths: s.Crashes, LostHandOuts: s.Lost,
		Uncertain: s.Uncertain, Input: remote.OrNull(s.Input), Output: remote.OrNull(s.Output), Error: nonEmpty(s.Error), Epoch: s.Epoch, Holder: nonEmpty(s.Holder), Until: timeOrNil(s.Until),
		DueAt: timeOrNil(s.Due), StartedAt: timeOrNil(s.StartedAt), FinishedAt: timeOrNil(s.FinishedAt)}
}

type commandIn struct {
	ID   string       `path:"id"`
	Body wire.Command `optional:"true"`
}

// commanded returns the handler of a command.
func commanded(name string) func(*call, *commandIn) (wire.Run, error) {
	return func(c *call, in *commandIn) (wire.Run, error) {
		r, err := runengine.LocalOf(c.api.engine).Executor.Command(c.ctx(), c.doer(), in.ID, runengine.Command{Name: name, Version: in.Body.ExpectedVersion, Actor: c.actor()})
		if err == nil { // its times are set by the database
			r, err = runengine.Get(c.ctx(), c.doer(), in.ID)
		}
		return runOf(r), err
	}
}

// cancelRun cancels a run. While a step is in flight, it only records the request.
func cancelRun(c *call, in *commandIn) (wire.Run, error) {
	r, err := commanded(runengine.Cancel)(c, in)
	if err == nil && !runengine.Over(r.Status) {
		c.status = http.StatusAccepted
	}
	return r, err
}

type signalIn struct {
	ID   string `path:"id"`
	Body wire.Signal
}

func signalRun(c *call, in *signalIn) (wire.Signalled, error) {
	b := in.Body
	id, err := givenID(b.ID)
	if err != nil {
		return wire.Signalled{}, err
	}
	s := runengine.Signal{Run: in.ID, ID: id, Type: b.Type, Payload: b.Payload, Actor: c.actor()}
	fresh, err := runengine.Send(c.ctx(), c.doer(), s)
	return wire.Signalled{ID: s.ID, Fresh: fresh}, err
}

// readRunHistory reads the history of a run, as a page, or as an event stream from its first event
// to its end.
func readRunHistory(c *call, in *historyRequestIn) (wire.List[wire.Event], error) {
	return c.history(in, runengine.Stream(in.ID), runengine.ProgressTopic(in.ID), func(ctx context.Context, d store.Doer) (bool, error) {
		r, err := runengine.Get(ctx, d, in.ID)
		return runengine.Over(r.Status), err
	})
}

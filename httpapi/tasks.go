package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) taskRoutes() {
	add(a, route{Method: http.MethodPost, Path: "tasks/claim", ID: "claimTasks", Tag: "tasks", Summary: "Claim tasks for handlers. If no task is due, the call waits for one.",
		Roles: workers, Idempotency: table.AsHandOut,
		More: "A task counts as received once it is renewed, journals an effect or is ended."}, claimTasks)
	add(a, route{Method: http.MethodPost, Path: "tasks/{id}/complete", ID: "completeTask", Tag: "tasks", Summary: "Complete a task.", Roles: workers, Idempotency: table.UnderLease, Frees: true,
		More: "Completing the task again under the same epoch returns the same result."}, completeTask)
	add(a, route{Method: http.MethodPost, Path: "tasks/{id}/fail", ID: "failTask", Tag: "tasks", Summary: "Report that a task failed.", Roles: workers, Idempotency: table.UnderLease, Frees: true}, failTask)
	add(a, route{Method: http.MethodPost, Path: "tasks/{id}/snooze", ID: "snoozeTask", Tag: "tasks", Summary: "Give a task back until a later time.", Roles: workers, Idempotency: table.UnderLease,
		More: "It counts neither as an attempt nor as a failure. A step of a lifecycle cannot be snoozed. Snoozing a task again under the same epoch returns the same result."}, snoozeTask)
	add(a, route{Method: http.MethodPost, Path: "tasks/{id}/renew", ID: "renewTask", Tag: "tasks", Summary: "Renew a task's lease.", Roles: workers, Idempotency: table.UnderLease}, renewTask)
	add(a, route{Method: http.MethodPost, Path: "tasks/{id}/effects", ID: "journalTaskEffect", Tag: "tasks", Summary: "Journal an effect of a task.", Roles: workers, Idempotency: table.UnderLease,
		More: "Without a result or notDone, the call records the intent; otherwise it records the outcome."}, journalTaskEffect)
}

type claimTasksIn struct{ Body wire.ClaimTasks }

func claimTasks(c *call, in *claimTasksIn) (wire.Tasks, error) {
	out := wire.Tasks{Tasks: []wire.Task{}}
	limit, claim, err := c.claim(in.Body)
	if err != nil {
		return out, err
	}
	wait := 20 * time.Second
	if in.Body.WaitMs != nil {
		wait = span(*in.Body.WaitMs)
	}
	if c.api.declares {
		if _, _, err := c.declare(claim.Handlers); err != nil {
			return out, err
		}
	}
	offers, err := c.offers(claim)
	if err != nil {
		return out, err
	}
	signer, err := c.api.signers.Signer(c.ctx(), c.api.engine)
	if err != nil {
		return out, err
	}
	err = c.await(wait, offers.Topics(), func() (bool, error) {
		claim.Busy = make(map[string]bool)
		offers, err := c.offers(claim) // outside of the transaction
		if err != nil {
			return false, err
		}
		c.api.engine.Hub().PolledBy(claim.Workspace, offers.Needs())
		some, found, err := handOut(c, offers.Needs(), func(d holdfast.Doer, due map[wake.WorkKind]bool) (wire.Tasks, time.Time, error) {
			taken, err := offers.Take(c.ctx(), store.DoerOf(d), due, limit)
			out, until := wire.Tasks{Tasks: make([]wire.Task, len(taken))}, time.Time{}
			for i, t := range taken {
				t.ID = signer.Task(claim.Workspace, t.ID, t.Epoch, t.Handler)
				out.Tasks[i] = shapes.Task(t)
				until = firstEnd(until, out.Tasks[i].Until)
			}
			return out, until, err
		})
		if found {
			out = some
		}
		return found, err
	})
	return out, err
}

// claim validates the request of a worker.
func (c *call) claim(b wire.ClaimTasks) (limit int, claim remote.Claim, err error) {
	limit = cmp.Or(b.Limit, 10)
	claim = remote.Claim{Workspace: c.key.Workspace, Worker: b.Worker, Handlers: b.Handlers, Lease: lease.DefaultDuration}
	if limit < 1 || limit > 1000 {
		return limit, claim, fault.New(fault.Validation, "limit must be between 1 and 1000, got %d", limit).With("pointer", "/limit")
	}
	if len(b.Handlers) == 0 || len(b.Handlers) > 100 {
		return limit, claim, fault.New(fault.Validation, "handlers must name between 1 and 100 handlers, got %d", len(b.Handlers)).With("pointer", "/handlers")
	}
	for i, name := range b.Handlers {
		if err := c.serves(name); err != nil {
			return limit, claim, strictjson.Within(err, "/handlers/"+strconv.Itoa(i))
		}
	}
	if b.LeaseMs != 0 {
		claim.Lease = span(b.LeaseMs)
	}
	if err := strictjson.Text("worker", b.Worker, events.MaxName); err != nil {
		return limit, claim, err
	}
	return limit, claim, entities.CheckLease(claim.Lease)
}

// offers returns the tasks available to a claim, with the handlers that its workspace has declared.
func (c *call) offers(claim remote.Claim) (remote.Offers, error) {
	e := c.api.engine
	at, err := e.Partition(c.ctx(), store.Read)
	if err != nil {
		return remote.Offers{}, err
	}
	g, err := e.Registry(c.ctx(), at, true)
	if err != nil {
		return remote.Offers{}, err
	}
	claim.Revision = g.Revision
	return c.api.sources.Offers(c.ctx(), claim)
}

// serves refuses a handler that is not among those to which the API key is restricted.
func (c *call) serves(handler string) error {
	if c.key.Serves(handler) {
		return nil
	}
	return fault.New(fault.Forbidden, "the API key may not serve handler %q, because the key is restricted to the handlers %q: use another key", handler, c.key.Handlers)
}

// unrestricted refuses claims by hand to a key that is restricted to handlers.
func (c *call) unrestricted() error {
	if c.key.Serves("") {
		return nil
	}
	return fault.New(fault.Forbidden, "this API key is restricted to the handlers %q and cannot claim entities or streams directly: use a key that is not restricted to handlers", c.key.Handlers)
}

// handedOut returns the id of a task that was handed out for a handler that the API key serves.
func (c *call) handedOut(signed string, epoch int64) (id string, err error) {
	if err := checkEpoch(epoch); err != nil {
		return "", err
	}
	signer, err := c.api.signers.Signer(c.ctx(), c.api.engine)
	if err != nil {
		return "", err
	}
	id, handler, err := signer.Open(c.key.Workspace, signed, epoch)
	if err == nil {
		err = c.serves(handler)
	}
	return id, err
}

// await polls until something is found, the wait time is over, the server stops, or other requests
// wait for the room that this one has.
func (c *call) await(wait time.Duration, topics []string, poll func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(c.ctx(), min(max(wait, 0), longestWait))
	defer cancel()
	var free func()
	defer func() {
		if free != nil {
			free()
		}
	}()
	c.share.Shrink(2 * len(c.body)) // the body as sent and as parsed
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		heard, leave := c.api.engine.Hub().Wait(topics...)
		err := c.recheckKey()
		found := false
		if err == nil {
			found, err = poll()
		}
		waits := err == nil && !found && ctx.Err() == nil && !c.api.stopping.Load() && !c.share.Wanted()
		if waits && free == nil {
			free, waits, err = c.mayWait()
		}
		if waits {
			c.pause(ctx, heard, pause)
			leave()
			continue
		}
		leave()
		return err
	}
}

// mayWait reports whether the request may wait, by the quota of connections. A step that was fired goes on without a request that waits for
// it. A stream that was closed or truncated is waited for in any case, because the request ends only then.
func (c *call) mayWait() (free func(), ok bool, err error) {
	if c.route.Idempotency != table.AsHandOut {
		free, ok = c.api.quotas.TryConnect(c.key.Workspace, c.route.Idempotency != table.AsOperation)
		return free, ok, nil
	}
	free, err = c.api.quotas.Connect(c.key.Workspace)
	return free, err == nil, c.overQuota(err)
}

// checkEpoch refuses a call without a valid epoch.
func checkEpoch(epoch int64) error {
	if epoch > 0 {
		return nil
	}
	return fault.New(fault.Validation, "epoch must be 1 or more, got %d: use the epoch of the lease", epoch).With("pointer", "/epoch")
}

// task returns a task that was handed out, and its source.
func (c *call) task(signed string, epoch int64) (remote.Source, remote.Lease, error) {
	h := remote.Lease{Epoch: epoch}
	var err error
	if h.ID, err = c.handedOut(signed, epoch); err != nil {
		return nil, h, err
	}
	s, err := c.api.sources.Of(h.ID)
	return s, h, err
}

func endedTask(e remote.Ended, err error) (wire.EndedTask, error) {
	return wire.EndedTask{Status: e.Status, Version: e.Version, NotBefore: shapes.At(e.NotBefore)}, err
}

type completeTaskIn struct {
	ID   string `path:"id"`
	Body wire.CompleteTask
}

func completeTask(c *call, in *completeTaskIn) (wire.EndedTask, error) {
	s, h, err := c.task(in.ID, in.Body.Epoch)
	if err != nil {
		return wire.EndedTask{}, err
	}
	e, err := s.Complete(c.ctx(), h, remote.Result{Output: in.Body.Output, State: in.Body.State})
	if err == nil {
		c.api.tally(s)
	}
	return endedTask(e, err)
}

// tally counts a task that a worker has completed.
func (a *API) tally(s remote.Source) {
	t := &a.engine.Hub().Tally
	switch s.(type) {
	case *runengine.Remote:
		t.Steps.Add(1)
	case *batchengine.Remote:
		t.Items.Add(1)
	case *reactions.Remote:
		t.Reactions.Add(1)
	}
}

type failTaskIn struct {
	ID   string `path:"id"`
	Body wire.FailTask
}

func failTask(c *call, in *failTaskIn) (wire.EndedTask, error) {
	b := in.Body
	s, h, err := c.task(in.ID, b.Epoch)
	if err != nil {
		return wire.EndedTask{}, err
	}
	return endedTask(s.Fail(c.ctx(), h, remote.Failure{Message: b.Message, Final: b.Retryable != nil && !*b.Retryable, Invalid: b.Invalid}))
}

type snoozeTaskIn struct {
	ID   string `path:"id"`
	Body wire.SnoozeTask
}

func snoozeTask(c *call, in *snoozeTaskIn) (wire.EndedTask, error) {
	s, h, err := c.task(in.ID, in.Body.Epoch)
	if err == nil {
		err = checkDelay(in.Body.DelayMs)
	}
	if err != nil {
		return wire.EndedTask{}, err
	}
	return endedTask(s.Snooze(c.ctx(), h, span(in.Body.DelayMs)))
}

// checkDelay refuses a snooze for no time, or for too long.
func checkDelay(ms wire.Millis) error {
	if d := span(ms); d >= time.Millisecond && d <= lease.LongestSnooze {
		return nil
	}
	return fault.New(fault.Validation, "delayMs must be between 1 and %d (30 days), got %d", lease.LongestSnooze.Milliseconds(), ms).With("pointer", "/delayMs")
}

type renewTaskIn struct {
	ID   string `path:"id"`
	Body wire.Renew
}

func renewTask(c *call, in *renewTaskIn) (wire.Renewed, error) {
	s, h, err := c.task(in.ID, in.Body.Epoch)
	if err != nil {
		return wire.Renewed{}, err
	}
	lease := lease.DefaultDuration
	if in.Body.LeaseMs != 0 {
		lease = span(in.Body.LeaseMs)
	}
	if err := entities.CheckLease(lease); err != nil {
		return wire.Renewed{}, err
	}
	r, err := s.Renew(c.ctx(), h, lease)
	return wire.Renewed{Until: shapes.At(r.Until), CancelRequested: r.CancelRequested}, err
}

type taskEffectIn struct {
	ID   string `path:"id"`
	Body wire.EffectCall
}

func journalTaskEffect(c *call, in *taskEffectIn) (wire.EffectState, error) {
	b := in.Body
	s, h, err := c.task(in.ID, b.Epoch)
	if err != nil {
		return wire.EffectState{}, err
	}
	if err := checkEffect(b); err != nil {
		return wire.EffectState{}, err
	}
	x, err := s.Effect(c.ctx(), h, remote.Effect{Name: b.Name, Ordinal: b.Ordinal, Result: b.Result, NotDone: b.NotDone})
	return wire.EffectState{Key: x.Key, State: x.State, Result: x.Result}, err
}

// checkEffect refuses a call that cannot be journaled.
func checkEffect(b wire.EffectCall) error {
	if err := effects.CheckCall(b.Name, b.Ordinal); err != nil {
		return err
	}
	if b.NotDone && len(b.Result) > 0 {
		return fault.New(fault.Validation, "result and notDone cannot both be set")
	}
	return nil
}

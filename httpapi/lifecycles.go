package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/wire"
)

type (
	raw       = json.RawMessage
	named     = lifecycleengine.Lifecycle // of the workspace, found by its name
	rawEntity = lifecycleengine.Entity    // with its data as JSON
)

func (a *API) lifecycleRoutes() {
	const entity = "lifecycles/{name}/entities/{id}"
	add(a, route{Method: http.MethodGet, Path: "lifecycles", ID: "listLifecycles", Tag: "lifecycles", Summary: "List the workspace's lifecycles.", Roles: readers}, listLifecycles)
	add(a, route{Method: http.MethodGet, Path: "lifecycles/{name}", ID: "getLifecycle", Tag: "lifecycles", Summary: "Show a lifecycle's config, origin, janitor and lint warnings.", Roles: readers}, getLifecycle)
	add(a, route{Method: http.MethodGet, Path: "lifecycles/{name}/diagram", ID: "getLifecycleDiagram", Tag: "lifecycles", Summary: "Show a lifecycle's diagram.", Roles: readers, SVG: true,
		More: diagramFormats}, getLifecycleDiagram)
	add(a, route{Method: http.MethodPost, Path: "lifecycles/{name}/entities", ID: "createEntity", Tag: "lifecycles", Summary: "Create an entity.",
		Roles: operators, Status: http.StatusCreated, Idempotency: table.InCommand, Adds: []quota.Kind{quota.Storage},
		More: "Without an id and without a [Key], each call creates a new entity."}, createEntity)
	add(a, route{Method: http.MethodGet, Path: "lifecycles/{name}/entities", ID: "listEntities", Tag: "lifecycles", Summary: "List a lifecycle's entities, ordered by id.", Roles: readers, Filter: "EntityFilter", More: searches}, listEntities)
	add(a, route{Method: http.MethodGet, Path: entity, ID: "getEntity", Tag: "lifecycles", Summary: "Show an entity.", Roles: readers}, getEntity)
	add(a, route{Method: http.MethodGet, Path: entity + "/history", ID: "readEntityHistory", Tag: "lifecycles", Summary: "Read an entity's history.", Roles: readers,
		More: "Events are in order, oldest first."}, readEntityHistory)
	add(a, route{Method: http.MethodGet, Path: entity + "/attempts", ID: "listRefusals", Tag: "lifecycles", Summary: "List the refused writes to an entity, newest first.", Roles: readers}, listRefusals)
	add(a, route{Method: http.MethodGet, Path: entity + "/timeline", ID: "readEntityTimeline", Tag: "lifecycles", Summary: "Read an entity's events, refusals, effects and answers, newest first.", Roles: readers,
		More: "Their order is that of the database: a refusal comes after the event whose version it found."}, readEntityTimeline)
	add(a, route{Method: http.MethodPost, Path: entity + "/steps/{stepKey}", ID: "fireStep", Tag: "lifecycles", Summary: "Fire a step of an entity.",
		Roles: operators, Also: http.StatusAccepted, Idempotency: table.AsOperation, Adds: []quota.Kind{quota.Work, quota.Storage},
		More: "The outcome may be pending or uncertain: the step then continues in the background, and the same call with the same [Key] later returns its outcome."}, fireStep)
}

// lifecycle returns a lifecycle by name.
func (c *call) lifecycle(name string) (*named, error) {
	if c.found != nil && c.found.Name() == name {
		return c.found, nil
	}
	l, err := lifecycleengine.Named(c.ctx(), c.api.engine, name)
	if err == nil {
		c.found = l
	}
	return l, err
}

func listLifecycles(c *call, in *paged) (wire.List[wire.Lifecycle], error) {
	p, err := c.page(*in)
	if err != nil {
		return wire.List[wire.Lifecycle]{}, err
	}
	var all []wire.Lifecycle
	next := ""
	names, err := lifecycleengine.Names(c.ctx(), c.api.engine)
	if err != nil {
		return wire.List[wire.Lifecycle]{}, err
	}
	for _, name := range names {
		if name <= p.after {
			continue
		}
		if len(all) == p.limit || p.budget.Spent() {
			next = all[len(all)-1].Name
			break
		}
		l, err := c.lifecycle(name)
		if err != nil {
			return wire.List[wire.Lifecycle]{}, err
		}
		w, err := lifecycleOf(c, l)
		if err != nil {
			return wire.List[wire.Lifecycle]{}, err
		}
		all = append(all, w)
		p.budget.Spend(len(l.Source()))
	}
	return listed(c, all, next), nil
}

func lifecycleOf(c *call, l *named) (w wire.Lifecycle, err error) {
	w = wire.Lifecycle{Name: l.Name(), Statuses: l.Statuses()}
	w.Revision, err = lifecycleengine.RevisionOf(c.ctx(), c.api.engine, l.Name())
	if text := l.Source(); json.Valid(text) {
		w.Config = text
	} else {
		w.Source = string(text)
	}
	return w, err
}

type lifecycleIn struct {
	Name string `path:"name"`
}

func getLifecycle(c *call, in *lifecycleIn) (w wire.LifecycleDetails, err error) {
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return w, err
	}
	if w.Lifecycle, err = lifecycleOf(c, l); err != nil {
		return w, err
	}
	d, err := lifecycleengine.DetailsOf(c.ctx(), c.api.engine, in.Name)
	if w.Origin = "program"; d.Published {
		w.Origin = "published"
	}
	w.Janitor = wire.LifecycleJanitor{Kind: d.Janitor, EveryMs: wire.Millis(d.Every.Milliseconds()), StuckAfterMs: wire.Millis(d.StuckAfter.Milliseconds())}
	w.Warnings = violationsOf(d.Warnings)
	return w, err
}

type createEntityIn struct {
	Name string `path:"name"`
	Body wire.NewEntity
}

func (in *createEntityIn) repeats(c *call) (bool, error) {
	l, err := c.lifecycle(in.Name)
	if err != nil || in.Body.ID == nil {
		return false, err
	}
	_, err = l.Get(c.ctx(), c.api.engine, *in.Body.ID)
	return exists(err)
}

func createEntity(c *call, in *createEntityIn) (wire.Entity, error) {
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return wire.Entity{}, err
	}
	b := in.Body
	id, err := givenID(b.ID)
	if err != nil {
		return wire.Entity{}, err
	}
	if err := strictjson.Object(orEmpty(b.Data)); err != nil {
		return wire.Entity{}, strictjson.Within(err, "/data")
	}
	e, err := l.CreateAt(c.ctx(), c.doer(), id, b.Status, orEmpty(b.Data), c.actor())
	if err != nil {
		return wire.Entity{}, err
	}
	c.w.Header().Set("Location", table.Base+"lifecycles/"+url.PathEscape(in.Name)+"/entities/"+url.PathEscape(id))
	return shapes.Entity(in.Name, e), nil
}

type listEntitiesIn struct {
	Name   string `path:"name"`
	Status string `query:"status" doc:"Only entities with this status."`
	ranged
	paged
}

func listEntities(c *call, in *listEntitiesIn) (wire.List[wire.Entity], error) {
	var none wire.List[wire.Entity]
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return none, err
	}
	times, err := in.times()
	if err != nil {
		return none, err
	}
	f := entities.Filter{Status: in.Status, Times: times}
	return search(c, in.paged, func(ctx context.Context, after string, limit int) ([]store.Found[rawEntity], error) {
		return l.List(ctx, c.api.engine, f, after, limit)
	}, func(e rawEntity) wire.Entity { return shapes.Entity(in.Name, e) }, func(e rawEntity) string { return e.ID })
}

type getEntityIn struct {
	Name string `path:"name"`
	ID   string `path:"id"`
	At   *int64 `query:"at" doc:"Show the entity as it was at this version, without its claim."`
}

func getEntity(c *call, in *getEntityIn) (wire.Entity, error) {
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return wire.Entity{}, err
	}
	if in.At != nil {
		e, err := l.GetAt(c.ctx(), c.doer(), in.ID, *in.At)
		return shapes.Entity(in.Name, e), err
	}
	e, err := l.Get(c.ctx(), c.api.engine, in.ID)
	return shapes.Entity(in.Name, e), err
}

type historyIn struct {
	Name string `path:"name"`
	ID   string `path:"id"`
	paged
}

func readEntityHistory(c *call, in *historyIn) (wire.List[wire.Event], error) {
	var none wire.List[wire.Event]
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return none, err
	}
	if in.Cursor == "" {
		if _, err := l.Get(c.ctx(), c.api.engine, in.ID); err != nil {
			return none, err
		}
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]events.Event, error) {
		from, err := numberOf(after)
		if err != nil {
			return nil, err
		}
		return l.History(ctx, c.doer(), in.ID, from, limit)
	}, shapes.Event, func(e events.Event) string { return nextVersion(e.Version, false) })
}

type fireIn struct {
	Name    string       `path:"name"`
	ID      string       `path:"id"`
	StepKey string       `path:"stepKey"`
	WaitMs  *wire.Millis `query:"waitMs" doc:"How long to wait for a worker; default 30000."`
	Body    wire.Fire
}

// fireStep fires a step. With an idempotency key, the key points to the operation from the
// transaction on that begins it.
func fireStep(c *call, in *fireIn) (wire.Fired, error) {
	l, err := c.lifecycle(in.Name)
	if err == nil {
		err = c.mayActAs(in.Body.Requester)
	}
	if err != nil {
		return wire.Fired{}, err
	}
	begun, answer, err := c.begin(l, in.ID, firedAs)
	if answer != nil || err != nil {
		fired, _ := answer.(wire.Fired)
		return fired, err
	}
	o := c.fireOptions(in.Body.Input, in.Body.ExpectedVersion, 0)
	if begun != nil {
		acts, err := l.ActsUnclaimed(c.ctx(), c.api.engine, in.ID, in.StepKey, in.Body.Requester)
		if err != nil {
			return wire.Fired{}, err
		}
		if acts && !c.repoints { // the leased key shows other requests that the step has begun
			held, end, err := c.takeKey(in.Name, in.ID)
			if answer, came, failed := c.answerOfTwin(l, in.ID, err, firedAs); came {
				fired, _ := answer.(wire.Fired)
				return fired, failed
			}
			if err != nil {
				return wire.Fired{}, err
			}
			defer end()
			begun = held
		}
		o.Begin = begun
	}
	var output raw
	o.Output = &output
	e, err := l.Fire(c.ctx(), c.api.engine, in.ID, in.StepKey, in.Body.Requester, o)
	if answer, came, failed := c.answerOfTwin(l, in.ID, err, firedAs); came {
		fired, _ := answer.(wire.Fired)
		return fired, failed
	}
	fired, err := c.fired(in.Name, e, err)
	fired.Output = output
	if err != nil || fired.Outcome != "pending" {
		return fired, err
	}
	return c.awaitStep(l, in, fired)
}

// fireWait is the default time to wait for a step that a worker runs.
const fireWait = 30 * time.Second

// awaitStep waits for a step that runs elsewhere, until it ends or the wait time is over.
func (c *call) awaitStep(l *named, in *fireIn, fired wire.Fired) (wire.Fired, error) {
	wait := fireWait
	if in.WaitMs != nil {
		wait = span(*in.WaitMs)
	}
	var f lifecycleengine.OperationOutcome
	c.endQuotas(true) // the operation is written
	err := c.await(wait, nil, func() (bool, error) {
		var err error
		f, err = l.OutcomeOf(c.ctx(), c.api.engine, in.ID, fired.Operation)
		return f.Outcome != "pending", err
	})
	if err != nil || f.Outcome == "pending" {
		return fired, nil // the step continues, whether its outcome can be read or not
	}
	switch {
	case f.Invalid:
		return wire.Fired{}, fault.New(fault.ActionInvalid, "%s", f.Message).With("operation", fired.Operation).With("outcome", f.Outcome)
	case f.Outcome == "failed" || f.Outcome == "released":
		return wire.Fired{}, fault.New(fault.ActionFailed, "%s", f.Message).With("operation", fired.Operation).With("outcome", f.Outcome)
	}
	e, err := l.Get(c.ctx(), c.api.engine, in.ID)
	if err != nil {
		return fired, nil
	}
	c.status = http.StatusOK
	if f.Outcome != "success" {
		c.status = http.StatusAccepted
	}
	return wire.Fired{Outcome: f.Outcome, Operation: fired.Operation, Entity: shapes.Entity(in.Name, e), Output: f.Output}, nil
}

// fired converts the result of a step.
func (c *call) fired(name string, e rawEntity, err error) (wire.Fired, error) {
	if err == nil {
		return wire.Fired{Outcome: "success", Entity: shapes.Entity(name, e)}, nil
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.ActionFailed {
		return wire.Fired{}, err
	}
	outcome, _ := f.Fields["outcome"].(string)
	if outcome != "pending" && outcome != "uncertain" {
		return wire.Fired{}, err
	}
	c.status = http.StatusAccepted
	operation, _ := f.Fields["operation"].(string)
	return wire.Fired{Outcome: outcome, Operation: operation, Entity: shapes.Entity(name, e)}, nil
}

// fireOptions returns the options of a step that is fired or claimed.
func (c *call) fireOptions(input raw, want *int64, lease time.Duration) lifecycleengine.FireOptions {
	o := lifecycleengine.FireOptions{ExpectVersion: want, Lease: lease, Meta: events.Meta{Actor: c.actor()}}
	if len(input) > 0 {
		o.SetInput(input)
	}
	return o
}

// answerFunc returns the response of a request whose operation is known.
type answerFunc func(c *call, l *named, id, operation string, f lifecycleengine.OperationOutcome) (any, error)

// firedAs answers a repeated request for a step that was fired before.
func firedAs(c *call, l *named, id, operation string, f lifecycleengine.OperationOutcome) (any, error) {
	if f.Outcome == "failed" {
		c.replayed(0)
		return nil, fault.New(fault.ActionFailed, "%s", f.Message).With("operation", operation).With("outcome", "failed")
	}
	e, err := l.Get(c.ctx(), c.api.engine, id)
	if err != nil {
		return nil, err
	}
	c.replayed(http.StatusOK)
	if f.Outcome != "success" {
		c.status = http.StatusAccepted
	}
	return wire.Fired{Outcome: f.Outcome, Operation: operation, Entity: shapes.Entity(l.Name(), e), Output: f.Output}, nil
}

// takeKey leases the request's key while its step runs. It returns the write for the transaction
// that begins, and ends, the operation. If that was not written, end releases the key.
func (c *call) takeKey(name, id string) (begun func(context.Context, *store.Tx, string) error, end func(), err error) {
	_, mine, err := c.flight.Take(c.ctx(), c.api.engine)
	if err == nil && !mine {
		err = idempotency.UnderWay(0)
	}
	if err != nil {
		return nil, nil, err
	}
	r := c.r
	held, free := c.flight.Renewing(r.Context())
	// The cause of a lost key must not reach the body of the step: the body interprets such a cause
	// as the loss of its own lease.
	ctx, stop := context.WithCancel(r.Context())
	left := context.AfterFunc(held, stop)
	c.r = r.WithContext(ctx)
	return func(ctx context.Context, tx *store.Tx, operation string) error {
			return c.flight.Point(ctx, tx, operation, subjectOf(name, id))
		}, func() {
			left()
			stop()
			c.r = r
			free(true)
		}, nil
}

// begin checks whether a request was made before. If so, it returns the response. If not, or if its
// operation was released without effect, it returns the write for the transaction that begins the
// operation.
func (c *call) begin(l *named, id string, as answerFunc) (begun func(context.Context, *store.Tx, string) error, answer any, err error) {
	if c.flight == nil {
		return nil, nil, nil
	}
	begins := func(was string) func(context.Context, *store.Tx, string) error {
		return func(ctx context.Context, tx *store.Tx, operation string) error {
			return c.flight.Begin(ctx, tx, c.flight.Key, was, operation, subjectOf(l.Name(), id))
		}
	}
	q, err := idempotency.Get(c.ctx(), c.api.engine, c.flight.Key)
	if err != nil {
		return nil, nil, err
	}
	abandoned := q.State == idempotency.Held && q.RetryAfter <= 0 && q.Fingerprint == c.flight.Fingerprint
	if q.State == "" || abandoned {
		return begins(""), nil, nil
	}
	if q.Fingerprint != c.flight.Fingerprint || q.State != idempotency.Operation {
		answer, err = c.replay(q)
		return nil, answer, err
	}
	f, err := l.OutcomeOf(c.ctx(), c.api.engine, id, q.Operation)
	switch {
	case err != nil:
		return nil, nil, err
	case f.Outcome == "released":
		c.repoints = true
		return begins(q.Operation), nil, nil
	case f.Running && !c.manual():
		return nil, nil, idempotency.UnderWay(0)
	}
	answer, err = as(c, l, id, q.Operation, f)
	return nil, answer, err
}

// manual reports whether the request claims a step by hand, so that its operation is still leased
// when the response is sent.
func (c *call) manual() bool { return strings.HasSuffix(c.route.Path, "/claims") }

// answerOfTwin checks whether a step was refused because its twin, a concurrent request with the same key, came first.
// If so, came is true, and answer and failed are the response.
func (c *call) answerOfTwin(l *named, id string, err error, as answerFunc) (answer any, came bool, failed error) {
	if c.flight == nil {
		return nil, false, nil
	}
	switch fault.CodeOf(err) {
	case fault.ClaimFailed, fault.InvalidTransition, fault.Concurrency, fault.KeyInFlight:
	default:
		return nil, false, nil
	}
	begun, answer, failed := c.begin(l, id, as)
	return answer, begun == nil, failed
}

// subjectOf returns the subject that is stored with an idempotency key: the lifecycle and the entity, as JSON.
func subjectOf(name, id string) string {
	text, _ := json.Marshal([2]string{name, id})
	return string(text)
}

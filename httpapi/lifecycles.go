package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/requests"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/wire"
)

type (
	raw       = json.RawMessage
	named     = lifecycleengine.Lifecycle
	rawEntity = lifecycleengine.Entity
)

func (a *API) lifecycleRoutes() {
	const entity = "lifecycles/{name}/entities/{id}"
	add(a, route{method: http.MethodGet, path: "lifecycles", id: "listLifecycles", tag: "lifecycles", summary: "List the lifecycles of the workspace.", roles: readers}, listLifecycles)
	add(a, route{method: http.MethodGet, path: "lifecycles/{name}", id: "getLifecycle", tag: "lifecycles", summary: "Show the config of a lifecycle.", roles: readers}, getLifecycle)
	add(a, route{method: http.MethodGet, path: "lifecycles/{name}/diagram", id: "drawLifecycle", tag: "lifecycles", summary: "Draw a lifecycle.", roles: readers, drawn: true,
		more: `The format is svg ("") or mermaid.`}, drawLifecycle)
	add(a, route{method: http.MethodPost, path: "lifecycles/{name}/entities", id: "createEntity", tag: "lifecycles", summary: "Make an entity.",
		roles: operators, status: http.StatusCreated, once: inTx,
		more: "Without an id and without a key, each call makes another."}, createEntity)
	add(a, route{method: http.MethodGet, path: "lifecycles/{name}/entities", id: "listEntities", tag: "lifecycles", summary: "List the entities of a lifecycle.", roles: readers, filter: "EntityFilter"}, listEntities)
	add(a, route{method: http.MethodGet, path: entity, id: "getEntity", tag: "lifecycles", summary: "Show an entity.", roles: readers}, getEntity)
	add(a, route{method: http.MethodGet, path: entity + "/history", id: "getHistory", tag: "lifecycles", summary: "What happened to an entity.", roles: readers,
		more: "The first event comes first."}, getHistory)
	add(a, route{method: http.MethodGet, path: entity + "/attempts", id: "getAttempts", tag: "lifecycles", summary: "Who was refused on an entity, the last first.", roles: readers,
		more: "It is one page."}, getAttempts)
	add(a, route{method: http.MethodPost, path: entity + "/steps/{stepKey}", id: "fireStep", tag: "lifecycles", summary: "Fire a step.",
		roles: operators, also: http.StatusAccepted, once: asOperation,
		more: "Its outcome may be pending or uncertain: then it goes on without the caller, and the same call under the same [Key] tells later what became of it."}, fireStep)
}

// lifecycle returns a lifecycle by its name.
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

type listLifecyclesIn struct {
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

func listLifecycles(c *call, in *listLifecyclesIn) (wire.List[wire.Lifecycle], error) {
	p, err := c.page(in.Limit, in.Cursor)
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

func getLifecycle(c *call, in *lifecycleIn) (wire.Lifecycle, error) {
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return wire.Lifecycle{}, err
	}
	return lifecycleOf(c, l)
}

type drawLifecycleIn struct {
	Name   string `path:"name"`
	Format string `query:"format" doc:"svg, if it is not named, or mermaid."`
}

// drawLifecycle draws a lifecycle: as JSON or, to who takes pictures, as one.
func drawLifecycle(c *call, in *drawLifecycleIn) (wire.Diagram, error) {
	d := wire.Diagram{Format: cmp.Or(in.Format, "svg")}
	if d.Format != "svg" && d.Format != "mermaid" {
		return d, fault.New(fault.Validation, "format is svg or mermaid")
	}
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return d, err
	}
	config, violations := lifecycles.Parse(l.Source())
	if len(violations) > 0 {
		return d, fault.New(fault.Conflict, "the config cannot be drawn: %s", violations[0].Message)
	}
	if d.Format == "mermaid" {
		d.Diagram = config.Mermaid()
		return d, nil
	}
	d.Diagram = config.SVG()
	if c.takes("image/svg+xml") || c.takes("text/html") {
		c.done = true
		h := c.w.Header()
		h.Set("Content-Type", "image/svg+xml")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		c.w.WriteHeader(http.StatusOK)
		if c.r.Method != http.MethodHead {
			_, _ = io.WriteString(c.w, d.Diagram) // the client went away: nobody is left to be told
		}
	}
	return d, nil
}

type createEntityIn struct {
	Name string `path:"name"`
	Body wire.NewEntity
}

func createEntity(c *call, in *createEntityIn) (wire.Entity, error) {
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return wire.Entity{}, err
	}
	b := in.Body
	if b.ID == "" {
		b.ID = store.NewID().String()
	}
	if err := strict.Object(orEmpty(b.Data)); err != nil {
		return wire.Entity{}, strict.Within(err, "/data")
	}
	e, err := l.CreateAt(c.ctx(), c.doer(), b.ID, b.Status, orEmpty(b.Data), c.actor())
	if err != nil {
		return wire.Entity{}, err
	}
	c.w.Header().Set("Location", base+"lifecycles/"+url.PathEscape(in.Name)+"/entities/"+url.PathEscape(b.ID))
	return shapes.Entity(in.Name, e), nil
}

type listEntitiesIn struct {
	Name   string `path:"name"`
	Status string `query:"status"`
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

func listEntities(c *call, in *listEntitiesIn) (wire.List[wire.Entity], error) {
	var none wire.List[wire.Entity]
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return none, err
	}
	return list(c, in.Limit, in.Cursor, func(ctx context.Context, after string, limit int) ([]rawEntity, error) {
		return l.List(ctx, c.api.engine, in.Status, after, limit)
	}, func(e rawEntity) wire.Entity { return shapes.Entity(in.Name, e) }, func(e rawEntity) string { return e.ID })
}

type entityIn struct {
	Name string `path:"name"`
	ID   string `path:"id"`
}

func getEntity(c *call, in *entityIn) (wire.Entity, error) {
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return wire.Entity{}, err
	}
	e, err := l.Get(c.ctx(), c.api.engine, in.ID)
	return shapes.Entity(in.Name, e), err
}

type historyIn struct {
	Name   string `path:"name"`
	ID     string `path:"id"`
	Limit  *int   `query:"limit"`
	Cursor string `query:"cursor"`
}

func getHistory(c *call, in *historyIn) (wire.List[wire.Event], error) {
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
	return list(c, in.Limit, in.Cursor, func(ctx context.Context, after string, limit int) ([]events.Event, error) {
		from, err := numberOf(after)
		if err != nil {
			return nil, err
		}
		return l.History(ctx, c.doer(), in.ID, from, limit)
	}, func(e events.Event) wire.Event {
		return wire.Event{Stream: "$entity/" + in.Name + "/" + in.ID, Version: e.Version, Name: e.Name, Data: e.Data, Actor: e.Actor, At: wire.At(e.At)}
	}, func(e events.Event) string { return nextVersion(e.Version, false) })
}

func getAttempts(c *call, in *entityIn) (wire.List[wire.Attempt], error) {
	var none wire.List[wire.Attempt]
	l, err := c.lifecycle(in.Name)
	if err != nil {
		return none, err
	}
	if _, err := l.Get(c.ctx(), c.api.engine, in.ID); err != nil {
		return none, err
	}
	found, err := l.Attempts(c.ctx(), c.api.engine, in.ID)
	if err != nil {
		return none, err
	}
	all := make([]wire.Attempt, len(found))
	for i, x := range found {
		all[i] = wire.Attempt{StepKey: x.Step, Requester: x.Requester, Code: fault.Code(x.Code), Detail: x.Detail, At: wire.At(x.At)}
	}
	return listed(c, all, ""), nil
}

type fireIn struct {
	Name    string       `path:"name"`
	ID      string       `path:"id"`
	StepKey string       `path:"stepKey"`
	WaitMs  *wire.Millis `query:"waitMs" doc:"How long to wait for a worker; 30000 if it is not named."`
	Body    wire.Fire
}

// fireStep fires a step. Under a key, the key points to the operation from the
// transaction on that begins it.
func fireStep(c *call, in *fireIn) (wire.Fired, error) {
	l, err := c.lifecycle(in.Name)
	if err == nil {
		err = c.speaks(in.Body.Requester)
	}
	if err != nil {
		return wire.Fired{}, err
	}
	begun, answer, err := c.begin(l, in.ID, firedAs)
	if answer != nil || err != nil {
		fired, _ := answer.(wire.Fired)
		return fired, err
	}
	o := c.asks(in.Body.Input, in.Body.ExpectedVersion, 0)
	if begun != nil {
		acts, err := l.ActsUnclaimed(c.ctx(), c.api.engine, in.ID, in.StepKey, in.Body.Requester)
		if err != nil {
			return wire.Fired{}, err
		}
		if acts && !c.repoints { // the key is what tells others that it has begun
			held, end, err := c.holdKey(in.Name, in.ID)
			if again, ok := c.second(l, in.ID, err, firedAs); ok {
				fired, _ := again.answer.(wire.Fired)
				return fired, again.err
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
	if again, ok := c.second(l, in.ID, err, firedAs); ok {
		fired, _ := again.answer.(wire.Fired)
		return fired, again.err
	}
	fired, err := c.fired(in.Name, e, err)
	fired.Output = output
	if err != nil || fired.Outcome != "pending" {
		return fired, err
	}
	return c.waited(l, in, fired)
}

// fireWait is how long a fired step is waited for that a worker does.
const fireWait = 30 * time.Second

// waited waits until a step that goes on elsewhere is done, for a while.
func (c *call) waited(l *named, in *fireIn, fired wire.Fired) (wire.Fired, error) {
	wait := fireWait
	if in.WaitMs != nil {
		wait = span(*in.WaitMs)
	}
	var f lifecycleengine.Fate
	err := c.await(wait, nil, func() (bool, error) {
		var err error
		f, err = l.FateOf(c.ctx(), c.api.engine, in.ID, fired.Operation)
		return f.Outcome != "pending", err
	})
	if err != nil || f.Outcome == "pending" {
		return fired, nil // it goes on, whether it can be looked at or not
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

// fired is what a step came to.
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

// asks are the options of a step that is fired or claimed.
func (c *call) asks(input raw, want *int64, lease time.Duration) lifecycleengine.FireOptions {
	o := lifecycleengine.FireOptions{Want: want, Lease: lease, Meta: events.Meta{Actor: c.actor()}}
	if len(input) > 0 {
		o.SetInput(input)
	}
	return o
}

// shown makes the answer of a request whose operation is known.
type shown func(c *call, l *named, id, operation string, f lifecycleengine.Fate) (any, error)

// firedAs is the answer to a step that was fired before.
func firedAs(c *call, l *named, id, operation string, f lifecycleengine.Fate) (any, error) {
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

// holdKey holds the request's key while its step is worked on, and returns what is to be
// written in the transaction that begins, and ends, the operation. Where nothing was
// written, the key is freed in the end.
func (c *call) holdKey(name, id string) (begun func(context.Context, *store.Tx, string) error, end func(), err error) {
	q, mine, err := requests.Take(c.ctx(), c.api.engine, requests.TakeArgs{Key: c.idempotency, Fingerprint: c.fingerprint(), Holder: store.NewID().String(), Lease: keyLease})
	if err == nil && !mine {
		err = errSecond
	}
	if err != nil {
		return nil, nil, err
	}
	r := c.r
	k := c.keepKey(q.Epoch)
	// Why the key was lost is nothing to who works on the step: a hold of its own may
	// be lost for the same reason, and that is another matter.
	ctx, stop := context.WithCancel(r.Context())
	left := context.AfterFunc(k.Start(r.Context()), stop)
	c.r = r.WithContext(ctx)
	return func(ctx context.Context, tx *store.Tx, operation string) error {
			return requests.Point(ctx, tx, c.idempotency, q.Epoch, operation, subjectOf(name, id))
		}, func() {
			left()
			k.Stop()
			stop()
			c.r = r
			c.freeKey(q.Epoch)
		}, nil
}

// errSecond says that another has come first under the key.
var errSecond = fault.New(fault.KeyInFlight, "the request with this key is being worked on").With("retryAfter", 1)

// begin looks whether a request was made before. It was: the answer is returned. It
// was not, or its operation was put back without effect: begun is to be written in
// the transaction that begins the operation.
func (c *call) begin(l *named, id string, as shown) (begun func(context.Context, *store.Tx, string) error, answer any, err error) {
	if c.idempotency == "" {
		return nil, nil, nil
	}
	subject := subjectOf(l.Name(), id)
	q, err := requests.Get(c.ctx(), c.api.engine, c.idempotency)
	abandoned := err == nil && q.State == requests.Held && q.RetryAfter <= 0 && q.Fingerprint == c.fingerprint()
	if fault.CodeOf(err) == fault.NotFound || abandoned {
		return func(ctx context.Context, tx *store.Tx, operation string) error {
			q, mine, err := requests.Take(ctx, tx, requests.TakeArgs{Key: c.idempotency, Fingerprint: c.fingerprint(), Holder: operation, Lease: keyLease})
			if err == nil && !mine {
				err = errSecond
			}
			if err != nil {
				return err
			}
			return requests.Point(ctx, tx, c.idempotency, q.Epoch, operation, subject)
		}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if q.Fingerprint != c.fingerprint() || q.State != requests.Operation {
		answer, err = c.replay(q)
		return nil, answer, err
	}
	f, err := l.FateOf(c.ctx(), c.api.engine, id, q.Operation)
	switch {
	case err != nil:
		return nil, nil, err
	case f.Outcome == "released":
		c.repoints = true
		return func(ctx context.Context, tx *store.Tx, operation string) error {
			mine, err := requests.Repoint(ctx, tx, c.idempotency, c.fingerprint(), q.Operation, operation, subject)
			if err == nil && !mine {
				err = errSecond
			}
			return err
		}, nil, nil
	case f.Running && !c.manual():
		return nil, nil, errSecond
	}
	answer, err = as(c, l, id, q.Operation, f)
	return nil, answer, err
}

// manual says that the request takes a claim by hand, which is held when it is
// answered.
func (c *call) manual() bool { return strings.HasSuffix(c.route.path, "/claims") }

type again struct {
	answer any
	err    error
}

// second looks, where a step was refused, whether that was because the same request
// came first.
func (c *call) second(l *named, id string, err error, as shown) (again, bool) {
	if c.idempotency == "" {
		return again{}, false
	}
	switch fault.CodeOf(err) {
	case fault.ClaimFailed, fault.InvalidTransition, fault.Concurrency, fault.KeyInFlight:
	default:
		return again{}, false
	}
	begun, answer, failed := c.begin(l, id, as)
	if begun != nil { // nobody has
		return again{}, false
	}
	return again{answer, failed}, true
}

func subjectOf(name, id string) string {
	text, _ := json.Marshal([2]string{name, id})
	return string(text)
}

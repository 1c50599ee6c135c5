package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/timeline"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) timelineRoutes() {
	add(a, route{Method: http.MethodGet, Path: "timeline", ID: "readTimeline", Tag: "streams", Summary: "Read the events, refusals, effects and answers of any stream, newest first.", Roles: readers,
		More: "The stream may be a history, such as $run/{id} or $scope/{kind}/{id}."}, readTimeline)
	add(a, route{Method: http.MethodGet, Path: "races", ID: "listRaces", Tag: "streams", Summary: "List the workspace's refused writes, newest first, grouped by what they lost to.", Roles: readers,
		More: "The limit is a number of refusals. A race with more refusals than fit on a page continues on the next one."}, listRaces)
}

func refusedBy(r refusals.Refusal) wire.RefusedBy {
	return wire.RefusedBy{ID: r.ID, Version: r.Version, Actor: r.Actor, Node: r.Node, RequestID: r.Request, Operation: r.Operation, Epoch: r.Epoch, StandsFor: r.StandsFor}
}

func refusalShape(r refusals.Refusal) wire.Refusal {
	return wire.Refusal{Stream: r.Stream, Action: r.Action, Requester: r.Requester, Code: fault.Code(r.Code), Detail: r.Detail, At: shapes.At(r.At), RefusedBy: refusedBy(r)}
}

// timelinePlace parses the cursor of a timeline: a version and the id of a refusal.
func timelinePlace(after string) (timeline.Cursor, error) {
	if after == "" {
		return timeline.Cursor{}, nil
	}
	version, id, ok := strings.Cut(after, " ")
	n, err := strconv.ParseInt(version, 10, 64)
	if !ok || err != nil || n < -1 {
		return timeline.Cursor{}, noCursor()
	}
	return timeline.At(n, id), nil
}

func textOfPlace(c timeline.Cursor) string { return strconv.FormatInt(c.Version, 10) + " " + c.ID }

func listRefusals(c *call, in *historyIn) (wire.List[wire.Attempt], error) {
	l, err := c.lifecycle(in.Name)
	if err == nil && in.Cursor == "" {
		_, err = l.Get(c.ctx(), c.api.engine, in.ID)
	}
	if err != nil {
		return wire.List[wire.Attempt]{}, err
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]refusals.Refusal, error) {
		from, err := timelinePlace(after)
		if err != nil {
			return nil, err
		}
		return l.Refusals(ctx, c.api.engine, in.ID, refusals.Refusal{Version: from.Version, ID: from.ID}.Cursor(), limit)
	}, func(r refusals.Refusal) wire.Attempt {
		return wire.Attempt{StepKey: r.Action, Requester: r.Requester, Code: fault.Code(r.Code), Detail: r.Detail, At: shapes.At(r.At), RefusedBy: refusedBy(r)}
	}, func(r refusals.Refusal) string { return textOfPlace(timeline.At(r.Version, r.ID)) })
}

func readEntityTimeline(c *call, in *historyIn) (wire.List[wire.TimelineEntry], error) {
	l, err := c.lifecycle(in.Name)
	if err == nil && in.Cursor == "" {
		_, err = l.Get(c.ctx(), c.api.engine, in.ID)
	}
	if err != nil {
		return wire.List[wire.TimelineEntry]{}, err
	}
	return c.timeline(in.paged, entities.Stream(in.Name, in.ID))
}

type timelineIn struct {
	Stream string `query:"stream" doc:"The name of the stream, for example $entity/invoice/17 or orders-17."`
	paged
}

func readTimeline(c *call, in *timelineIn) (wire.List[wire.TimelineEntry], error) {
	if in.Stream == "" {
		return wire.List[wire.TimelineEntry]{}, fault.New(fault.Validation, "stream is required: set it to the name of a stream").With("pointer", "/stream")
	}
	return c.timeline(in.paged, in.Stream)
}

// flushPatience is how long a list of refusals waits for those that this node is writing.
const flushPatience = time.Second

// flushRefusals writes the refusals of this node first, so that a caller sees its own.
func (c *call) flushRefusals() {
	ctx, cancel := context.WithTimeout(c.ctx(), flushPatience)
	defer cancel()
	c.api.engine.Refusals().Flush(ctx)
}

func (c *call) timeline(from paged, stream string) (wire.List[wire.TimelineEntry], error) {
	c.flushRefusals()
	return list(c, from, func(ctx context.Context, after string, limit int) ([]timeline.Entry, error) {
		place, err := timelinePlace(after)
		if err != nil {
			return nil, err
		}
		return timeline.Read(ctx, c.doer(), stream, place, limit)
	}, func(e timeline.Entry) (w wire.TimelineEntry) {
		switch {
		case e.Event != nil:
			x := shapes.Event(*e.Event)
			w.Event = &x
		case e.Refusal != nil:
			x := refusalShape(*e.Refusal)
			w.Refusal = &x
		case e.Answer != nil:
			x := c.storedRequest(*e.Answer)
			x.Withheld, x.Response = x.Withheld || x.Response != nil, nil // only admins may read it, as part of the request
			w.Answer = &x
		default:
			x := e.Effect
			w.Effect = &wire.TimelineEffect{Operation: x.Operation, Epoch: x.Epoch, BegunAt: shapes.At(x.BegunAt),
				Effect: wire.Effect{Name: x.Name, Ordinal: x.Ordinal, Key: effects.Key(x.Operation, x.Name, x.Ordinal), State: string(x.State), Result: x.Result}}
		}
		return w
	}, func(e timeline.Entry) string { return textOfPlace(e.Cursor()) })
}

func listRaces(c *call, in *paged) (wire.List[wire.Race], error) {
	p, err := c.page(*in)
	if err != nil {
		return wire.List[wire.Race]{}, err
	}
	c.flushRefusals()
	found, next, err := timeline.Races(p.budget.In(c.ctx()), c.doer(), p.after, p.limit)
	all := make([]wire.Race, len(found))
	for i, r := range found {
		all[i] = wire.Race{Stream: r.Stream, Operation: r.Operation, Refused: r.Refused, Refusals: make([]wire.Refusal, len(r.Refusals))}
		if r.Winner != nil {
			all[i].Winner = &wire.Winner{Version: r.Version, Name: r.Winner.Name, Actor: r.Winner.Actor, At: shapes.At(r.Winner.At)}
		}
		for n, x := range r.Refusals {
			all[i].Refusals[n] = refusalShape(x)
		}
	}
	return listed(c, all, next), err
}

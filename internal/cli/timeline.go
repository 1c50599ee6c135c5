package cli

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/wire"
)

type timelineCommand struct {
	pageFlags
	Stream string `arg:"" help:"Stream name: a stream of events, or a history such as $entity/invoice/i1."`
}

func (c *timelineCommand) Run(ctx context.Context, d *connection) error {
	l, err := d.ReadTimelinePage(ctx, c.Stream, c.page(), d.raw())
	return d.showList(timelineTable(l.Items), l.Next, err)
}

type entitiesTimeline struct {
	pageFlags
	entityArgs
}

func (c *entitiesTimeline) Run(ctx context.Context, d *connection) error {
	l, err := d.ReadEntityTimelinePage(ctx, c.Lifecycle, c.ID, c.page(), d.raw())
	return d.showList(timelineTable(l.Items), l.Next, err)
}

func timelineTable(all []wire.TimelineEntry) *table {
	t := &table{heads: []string{"VERSION", "WHAT", "AT", "ACTOR", "DETAIL"}}
	for _, e := range all {
		switch {
		case e.Event != nil:
			t.add(number64(e.Event.Version), e.Event.Name, at(e.Event.At), e.Event.Actor, string(e.Event.Data))
		case e.Refusal != nil:
			t.add("", "refused: "+e.Refusal.Action, at(e.Refusal.At), e.Refusal.Actor, refusedText(e.Refusal))
		case e.Answer != nil:
			t.add("", "answer: "+e.Answer.Route, at(e.Answer.At), "", answerText(e.Answer))
		case e.Effect != nil:
			t.add("", "effect: "+e.Effect.Name, at(e.Effect.BegunAt), "", e.Effect.State+" "+string(e.Effect.Result))
		}
	}
	return t
}

// answerText says what a caller was told.
func answerText(q *wire.StoredRequest) string {
	text := q.State
	if q.Status != 0 {
		text += fmt.Sprint(" ", q.Status)
	}
	return text + " operation " + q.Operation + ", stored request " + q.ID
}

// refusedText says why a write was refused, and whom it lost to.
func refusedText(r *wire.Refusal) string {
	text := string(r.Code)
	if r.StandsFor > 1 {
		text += fmt.Sprintf(" (%d times)", r.StandsFor)
	}
	switch {
	case r.Epoch > 0:
		text += fmt.Sprintf(": late holder of operation %s, epoch %d", r.Operation, r.Epoch)
	case r.Operation != "":
		text += ": operation " + r.Operation + " was in progress"
	default:
		text += fmt.Sprintf(": at version %d", r.Version)
	}
	if r.RequestID != "" {
		text += ", request " + r.RequestID
	}
	return text
}

type racesCommand struct{ pageFlags }

func (c *racesCommand) Run(ctx context.Context, d *connection) error {
	l, err := d.ListRacesPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"STREAM", "WON", "BY", "AT", "REFUSED", "CODES"}}
	for _, r := range l.Items {
		won, by, when := "", "", ""
		if r.Winner != nil {
			won, by, when = r.Winner.Name, r.Winner.Actor, at(r.Winner.At)
		}
		codes := ""
		for _, x := range r.Refusals {
			if codes != "" {
				codes += ", "
			}
			codes += x.Action + " " + string(x.Code)
			if x.Actor != "" {
				codes += " (" + x.Actor + ")"
			}
		}
		t.add(r.Stream, won, by, when, number64(r.Refused), codes)
	}
	return d.showList(t, l.Next, err)
}

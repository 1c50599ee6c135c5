package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	demoInvoices = 20
	demoCallers  = 8 // that try to close the same invoice at once
)

// demo tells the story of the double-click: invoices that many callers close at
// the same moment. What it shows is counted from what the callers were told, and
// then again from the database's own history; where the two disagree, it fails.
func (p *program) demo(ctx context.Context, engine *holdfast.Engine, m *mailer) error {
	d := demo{mailer: m, engine: engine, run: uuid.NewString()[:8], out: p.stdout, bar: newBar(p.stdout, demoInvoices)}
	return d.tell(holdfast.InWorkspace(ctx, "demo"))
}

type demo struct {
	engine *holdfast.Engine
	run    string // makes the names of one run its own
	out    io.Writer
	bar    *bar
	mailer *mailer
}

func (d demo) tell(ctx context.Context) error {
	d.say("\n%d invoices are open. %d callers close each of them, all at once.\n\n", demoInvoices, demoCallers)
	var total tally
	for n := range demoInvoices {
		race, err := d.race(ctx, fmt.Sprintf("%s-%02d", d.run, n+1))
		if err != nil {
			return err
		}
		total.add(race)
		d.bar.clear()
		d.say("  invoice %s   %-18s   %d refused   history: %s\n", race.id, race.winners(), race.refused, race.history())
		d.bar.draw(n + 1)
	}
	d.bar.clear()
	d.say("\n%s\n", total)
	if err := d.mail(ctx, d.mailer); err != nil {
		return err
	}
	if err := d.append(ctx); err != nil {
		return err
	}
	return total.check()
}

func (d demo) say(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

// race is one invoice and what happened to it.
type race struct {
	id      string
	won     []string       // callers that were told that they closed it
	refused int            // callers that were told that it is closed already
	events  []stream.Event // what the database says
	status  string
}

// race opens an invoice and lets the callers close it, then reads it back.
func (d demo) race(ctx context.Context, id string) (race, error) {
	r := race{id: id}
	if _, err := entities.Create(ctx, d.engine, entities.CreateArgs{Lifecycle: "invoice", ID: id, Status: "open"}); err != nil {
		return r, err
	}
	if err := r.count(d.close(ctx, id)); err != nil {
		return r, err
	}
	return r, d.readBack(ctx, &r)
}

// close is the callers, who wait for each other and then all close at once. It
// returns what each was told.
func (d demo) close(ctx context.Context, id string) []error {
	told := make([]error, demoCallers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range told {
		all.Go(func() {
			<-start
			_, told[i] = entities.Transition(ctx, d.engine, entities.TransitionArgs{
				Lifecycle: "invoice", ID: id, From: []string{"open"}, To: "closed",
				Event: "closed", Meta: events.Meta{Actor: caller(i)},
			})
		})
	}
	close(start)
	all.Wait()
	return told
}

func caller(i int) string { return "caller " + strconv.Itoa(i+1) }

// count sorts what the callers were told. Anything but yes and no ends the demo.
func (r *race) count(told []error) error {
	for i, err := range told {
		switch {
		case err == nil:
			r.won = append(r.won, caller(i))
		case errors.Is(err, holdfast.ErrInvalidTransition):
			r.refused++
		default:
			return fmt.Errorf("%s, invoice %s: %w", caller(i), r.id, err)
		}
	}
	return nil
}

func (d demo) readBack(ctx context.Context, r *race) (err error) {
	if r.events, err = stream.Read(ctx, d.engine, entities.Stream("invoice", r.id), 0, 0); err != nil {
		return err
	}
	e, err := entities.Get(ctx, d.engine, "invoice", r.id)
	r.status = e.Status
	return err
}

// closings are the events that closed the invoice.
func (r race) closings() []stream.Event {
	var all []stream.Event
	for _, e := range r.events {
		if e.Name == "closed" {
			all = append(all, e)
		}
	}
	return all
}

// tally is the sum of the races.
type tally struct {
	invoices, attempts, closed, refused, twice int
	wrong                                      []string
}

// add counts a race. Closed and twice are what the history says; refused is
// what the callers were told.
func (t *tally) add(r race) {
	t.invoices++
	t.attempts += len(r.won) + r.refused
	t.refused += r.refused
	closings := r.closings()
	if len(closings) > 0 {
		t.closed++
	}
	if len(closings) > 1 {
		t.twice++
	}
	if len(closings) != 1 || len(r.won) != 1 || closings[0].Actor != r.won[0] || r.status != "closed" {
		t.wrong = append(t.wrong, r.id)
	}
}

func (t tally) String() string {
	return fmt.Sprintf("%d invoices, %d attempts: %d closed, %d refused, %d closed twice", t.invoices, t.attempts, t.closed, t.refused, t.twice)
}

func (t tally) check() error {
	if len(t.wrong) == 0 {
		return nil
	}
	return fault.New(fault.Internal, "the demo found what must not be: invoices that were not closed once, by the caller who was told so: %v", t.wrong)
}

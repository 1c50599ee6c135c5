package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	// Home is the workspace of the company, which the dashboard of a server without API keys shows.
	Home = "default"
	// HistoryRetention bounds the histories of a demo that is left running.
	HistoryRetention = 6 * time.Hour

	round = 750 * time.Millisecond // time between two rounds of the company
	hold  = 600 * time.Millisecond // how long a clerk takes, so that the claim can be seen

	perCustomer   = 6 // invoices of each customer: a paid one is used again (step renew), so that there are never more
	createdAtOnce = 4
	moveEvery     = 2   // rounds between two steps of invoices
	onboardEvery  = 40  // rounds between two onboardings
	patience      = 80  // rounds until the manager decides, if nobody else does
	forgetAfter   = 800 // rounds after which a run or batch that a person holds up is left alone
	scanEvery     = 80  // rounds between two batches
	scanRounds    = 8   // rounds until a batch is cancelled
	abroadEvery   = 400 // rounds between a payment from abroad and the repair of the one before
	tidyEvery     = 80  // rounds between two truncations
	keptEvents    = 50  // events of a stream that a truncation keeps
	slowDownBy    = 50  // runs or batches after which the pause between them has doubled
	scanWallet    = "scans"
	abroad        = "payments-abroad"
	rates         = "exchange-rates"
	books         = "books"
	bookkeeping   = "bookkeeping"
	received      = "received" // a payment from abroad
)

var (
	customers = []string{"acme", "birch", "cedar", "dune"}
	newcomers = []string{"elm", "fjord", "grove", "heath"}
)

// company is what the demo does after its chapters, as long as the server runs: clerks close,
// charge and renew a fixed number of invoices, two of them at once, so that one of them is refused;
// a reaction books the payments and is blocked by one from abroad; onboardings wait for a manager's
// approval; batches are paid by a queue that delivers more than once, cancelled, and refunded. It works in rounds. What a round cannot do, because
// a person has changed something, the next one does.
type company struct {
	*shop
	scans      *batch.Kind[int, string]
	onboarding *run.Definition
	hold       time.Duration
	now        int // number of the round
	quiet      int // the round before which no payment comes from abroad
	runs       job
	batches    job
}

// job is the run or batch that the company has under way.
type job struct {
	id   string
	at   int // the round in which it was started
	next int // the round in which the next one is started
	n    int
}

func (j *job) start(id string, now int) { j.id, j.at, j.n = id, now, j.n+1 }

// end ends the job. Runs and batches leave rows, so the pause grows with their number.
func (j *job) end(now, pause int) { j.id, j.next = "", now+pause*(1+j.n/slowDownBy) }

func newCompany(s *shop, scans *batch.Kind[int, string], onboarding *run.Definition) *company {
	return &company{shop: s, scans: scans, onboarding: onboarding, hold: hold}
}

// parts returns the parts that the company needs besides those of the chapters.
func (c *company) parts() []holdfast.Part {
	return []holdfast.Part{stream.React(bookkeeping,
		stream.Select{Pattern: "^(gateway-(" + strings.Join(customers, "|") + ")|" + abroad + ")$", Events: []string{slipCharged, received}}, c.book, stream.Options{Workspaces: []string{Home}})}
}

// work runs rounds until ctx ends.
func (c *company) work(ctx context.Context) error {
	ctx = holdfast.InWorkspace(ctx, Home)
	for {
		c.round(ctx)
		if err := clock.Wait(ctx, round); err != nil {
			return err
		}
	}
}

// round does what is to be done now. An error is not reported: a person may have changed what the
// company works on, and the next round tries again.
func (c *company) round(ctx context.Context) {
	for _, x := range []struct {
		every int
		do    func(context.Context) error
	}{{moveEvery, c.move}, {1, c.payFromAbroad}, {1, c.onboard}, {1, c.scan}, {tidyEvery, c.tidy}} {
		if c.now%x.every == 0 {
			_ = x.do(ctx)
		}
	}
	c.now++
}

// move creates invoices that are missing, and fires a step of one of them. The steps take turns, so
// that every third one is a race.
func (c *company) move(ctx context.Context) error {
	byStatus, missing, err := c.look(ctx)
	if err != nil {
		return err
	}
	for _, id := range missing[:min(len(missing), createdAtOnce)] {
		if _, err := c.invoices.Create(ctx, c.engine, id, invoice{Cents: 1000 + rand.Int64N(90_000)}, lifecycle.By(clerk(c.now))); err != nil {
			return err
		}
		byStatus["approved"] = append(byStatus["approved"], id)
	}
	steps := []struct{ from, step string }{{"approved", "close"}, {"closed", "pay"}, {"paid", "renew"}}
	for i := range steps {
		s := steps[(c.now/moveEvery+i)%len(steps)]
		if all := byStatus[s.from]; len(all) > 0 {
			return c.fire(ctx, all[rand.IntN(len(all))], s.step)
		}
	}
	return nil
}

// look returns the company's invoices by status, and those that do not exist.
func (c *company) look(ctx context.Context) (byStatus map[string][]string, missing []string, err error) {
	for _, customer := range customers {
		for n := range perCustomer {
			missing = append(missing, fmt.Sprintf("%s-%02d", customer, n+1))
		}
	}
	byStatus = make(map[string][]string)
	for e, err := range c.invoices.List(ctx, c.engine, lifecycle.Filter{}) {
		if err != nil {
			return nil, nil, err
		}
		if i := slices.Index(missing, e.ID); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
			byStatus[e.Status] = append(byStatus[e.Status], e.ID)
		}
	}
	return byStatus, missing, nil
}

func (c *company) fire(ctx context.Context, id, step string) error {
	if step == "close" {
		return c.clickTwice(ctx, id)
	}
	_, err := c.invoices.Fire(ctx, c.engine, id, step, "admin", lifecycle.By(clerk(c.now)))
	return err
}

// clickTwice closes an invoice from two clerks at once: the second one clicks while the first one
// has the claim, and is refused.
func (c *company) clickTwice(ctx context.Context, id string) error {
	one := rand.IntN(3)
	other := one + 1 + rand.IntN(2)
	held, refused, first := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	claimed := sync.OnceFunc(func() { close(held) })
	c.meanwhile(id, func(ctx context.Context) error {
		claimed()
		select {
		case <-refused:
			return clock.Wait(ctx, c.hold)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	defer c.meanwhile(id, nil)
	go func() {
		_, err := c.invoices.Fire(ctx, c.engine, id, "close", "admin", lifecycle.By(clerk(one)))
		first <- err
	}()
	select {
	case err := <-first: // a person was faster
		return err
	case <-held:
	}
	_, _ = c.invoices.Fire(ctx, c.engine, id, "close", "admin", lifecycle.By(clerk(other))) // refused
	close(refused)
	return <-first
}

func clerk(n int) string { return []string{"clerk Ada", "clerk Ben", "clerk Cleo"}[n%3] }

// tidy removes old events of the company's streams.
func (c *company) tidy(ctx context.Context) error {
	names := []string{books, abroad, rates}
	for _, customer := range customers {
		names = append(names, "mail-"+customer, "gateway-"+customer)
	}
	for _, customer := range newcomers {
		names = append(names, accountOf(customer))
	}
	for _, name := range names { // exactly these: a database may have others, which are not the company's
		s, err := stream.Get(ctx, c.engine, name)
		if errors.Is(err, holdfast.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if s.Status == stream.StreamOpen && s.Last-s.First > 2*keptEvents {
			_ = stream.Truncate(ctx, c.engine, s.Name, s.Last-keptEvents) // refused while a reaction needs an event
		}
	}
	return nil
}

// payment is the data of a payment, from the gateway or from abroad.
type payment struct {
	Cents    int64  `json:"cents"`
	Currency string `json:"currency,omitempty"`
}

// rate is the data of an entered exchange rate.
type rate struct {
	Currency string `json:"currency"`
	For      string `json:"for"` // the payment
}

// payFromAbroad appends a payment that blocks the bookkeeping, a while after the last one was
// repaired.
func (c *company) payFromAbroad(ctx context.Context) error {
	for p, err := range stream.ListPositions(ctx, c.engine, stream.PositionFilter{Reaction: bookkeeping, Streams: []string{abroad}}) {
		if err != nil {
			return err
		}
		if p.Blocked {
			c.quiet = c.now + abroadEvery
		}
	}
	if c.now < c.quiet {
		return nil
	}
	data, err := json.Marshal(payment{Cents: 4200, Currency: "CHF"})
	if err != nil {
		return err
	}
	c.quiet = c.now + abroadEvery
	_, err = stream.Append(ctx, c.engine, abroad, stream.Any, stream.Event{Name: received, Data: data, Actor: "bank"})
	return err
}

// book is the reaction that books a payment. A payment in a foreign currency blocks it once: the
// exchange rate is entered before the stream is blocked, so that a person only has to unblock it.
func (c *company) book(ctx context.Context, d *stream.Delivery) error {
	var p payment
	if err := json.Unmarshal(d.Data, &p); err != nil {
		return holdfast.NonRetryable(err)
	}
	if p.Currency != "" {
		if err := c.convert(ctx, p, eventID(d.Stream, d.Version)); err != nil {
			return err
		}
	}
	customer := strings.TrimPrefix(d.Stream, "gateway-")
	d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, books, stream.Any, stream.Event{Name: "booked", Data: d.Data, Actor: bookkeeping, Correlation: d.Correlation, Causation: eventID(d.Stream, d.Version)})
		if err == nil {
			err = c.earn(ctx, tx, customer, p.Cents)
		}
		return err
	})
	return nil
}

// convert returns an error if there is no exchange rate for a payment, and enters it.
func (c *company) convert(ctx context.Context, p payment, id string) error {
	for e, err := range stream.ReadBackward(ctx, c.engine, rates, stream.Any) {
		var r rate
		if err == nil {
			err = json.Unmarshal(e.Data, &r)
		}
		if err != nil {
			return err
		}
		if r.For == id {
			return nil
		}
		break // only the last rate can be that of the payment: the stream waits at the payment
	}
	data, err := json.Marshal(rate{Currency: p.Currency, For: id})
	if err == nil {
		_, err = stream.Append(ctx, c.engine, rates, stream.Any, stream.Event{Name: "entered", Data: data, Actor: "treasury", Causation: id})
	}
	if err != nil {
		return err
	}
	return holdfast.NonRetryable(fmt.Errorf("payment %s is in %s, and no exchange rate was known for it. The rate has been entered since: unblock the stream", id, p.Currency))
}

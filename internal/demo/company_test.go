package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// openCompany returns a company on a running engine, whose clerks take no time.
func openCompany(t *testing.T) *company {
	t.Helper()
	d := New(io.Discard, nil)
	d.company.hold = 0
	hf := holdfasttest.Open(t, d.Parts()...)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = hf.Run(ctx) }) // ends with ctx
	t.Cleanup(func() { stop(); running.Wait() })
	return d.company
}

// until runs rounds until happened.
func (c *company) until(t *testing.T, what string, happened func() (bool, error)) {
	t.Helper()
	for range 1000 {
		c.round(t.Context())
		yes, err := happened()
		if err != nil {
			t.Fatal(what+":", err)
		}
		if yes {
			return
		}
	}
	t.Fatalf("after %d rounds: no %s", c.now, what)
}

// names returns how many events of each name the streams have whose names begin with prefix.
func (c *company) names(t *testing.T, prefix string) map[string]int {
	t.Helper()
	all := make(map[string]int)
	for s, err := range stream.List(t.Context(), c.engine, stream.Filter{Prefix: prefix}) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range stream.Read(t.Context(), c.engine, s.Name, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all[e.Name]++
		}
	}
	return all
}

// The company moves invoices, loses and wins claims, charges, mails, books, onboards and refunds.
func TestTheCompanyWorks(t *testing.T) {
	c := openCompany(t)
	ctx := t.Context()
	for stream, name := range map[string]string{"gateway-": slipCharged, "mail-": "sent", books: "booked", "account-": opened, abroad: received, rates: "entered"} {
		c.until(t, name, func() (bool, error) { return c.names(t, stream)[name] > 0, nil })
	}
	c.until(t, "invoice that went through every step", func() (bool, error) {
		seen := make(map[string]bool)
		for e, err := range c.invoices.List(ctx, c.engine, lifecycle.Filter{}) {
			if err != nil {
				return false, err
			}
			for h, err := range c.invoices.ReadHistory(ctx, c.engine, e.ID, 0) {
				if err != nil {
					return false, err
				}
				seen[h.Name] = true
			}
		}
		return seen["claimed"] && seen["settled/close"] && seen["settled/pay"] && seen["settled/renew"], nil
	})
	c.until(t, "claim that was lost", func() (bool, error) {
		for e, err := range c.invoices.List(ctx, c.engine, lifecycle.Filter{}) {
			if err != nil {
				return false, err
			}
			if r, err := first(c.invoices.ListRefusals(ctx, c.engine, e.ID)); err != nil || r.Code == holdfast.ErrClaimFailed.Code {
				return true, err
			}
		}
		return false, nil
	})
	c.until(t, "batch that was cancelled and refunded", func() (bool, error) {
		for b, err := range batch.List(ctx, c.engine, batch.Filter{Wallet: scanWallet}) {
			if err != nil || b.Over() && b.Refunded > 0 {
				return err == nil, err
			}
		}
		return false, nil
	})
}

// A payment from abroad blocks the bookkeeping. Unblocking it once repairs it, and the next
// payment comes some minutes later.
func TestTheBookkeepingIsRepairedByOneUnblock(t *testing.T) {
	c := openCompany(t)
	position := func() (stream.Position, error) {
		return first(stream.ListPositions(t.Context(), c.engine, stream.PositionFilter{Reaction: bookkeeping, Streams: []string{abroad}}))
	}
	blocked := func() (bool, error) { p, err := position(); return p.Blocked, err }
	c.until(t, "blocked reaction", blocked)
	for range 2 * abroadEvery { // as long as it is blocked, no other comes
		if err := c.payFromAbroad(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.now++
	}
	p, err := position()
	if err != nil || p.Head != 0 || !strings.Contains(p.Error, "unblock the stream") {
		t.Fatalf("got position %+v, error %v, want one event and what to do", p, err)
	}
	if done, err := stream.Unblock(t.Context(), c.engine, bookkeeping, stream.PositionFilter{Streams: []string{abroad}}); err != nil || len(done.Repaired) != 1 {
		t.Fatalf("got %+v, error %v", done, err)
	}
	repaired := c.now
	c.until(t, "repaired reaction", func() (bool, error) { p, err := position(); return p.Watermark == 0, err })
	c.until(t, "second payment", func() (bool, error) { p, err := position(); return p.Head == 1, err })
	if c.now-repaired < abroadEvery {
		t.Errorf("the next payment came after %d rounds, want %d", c.now-repaired, abroadEvery)
	}
	c.until(t, "second block", blocked)
}

// What a person does to the objects of the company does not stop it.
func TestThePersonAndTheCompany(t *testing.T) {
	c := openCompany(t)
	ctx := t.Context()
	c.until(t, "run and batch", func() (bool, error) { return c.runs.id != "" && c.batches.id != "", nil })
	old := c.runs.id
	if _, err := run.Cancel(ctx, c.engine, old); err != nil {
		t.Fatal(err)
	}
	if _, err := batch.Cancel(ctx, c.engine, c.batches.id); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Close(ctx, c.engine, rates, stream.Archive); err != nil && !strings.Contains(err.Error(), "exist") {
		t.Fatal(err)
	}
	c.until(t, "next run and batch", func() (bool, error) { return c.runs.n >= 2 && c.batches.n >= 2 && c.runs.id != old, nil })
}

// The number of invoices is fixed, and old events are removed from streams.
func TestTheCompanyDoesNotGrow(t *testing.T) {
	c := openCompany(t)
	c.until(t, "full set of invoices", func() (bool, error) { return c.now > 2*moveEvery*perCustomer*len(customers), nil })
	all, err := holdfast.Collect(c.invoices.List(t.Context(), c.engine, lifecycle.Filter{}))
	if err != nil || len(all) != perCustomer*len(customers) {
		t.Errorf("got %d invoices, error %v", len(all), err)
	}
	var events []stream.Event // of a stream to which only a round appends: mails may still be sent
	for i := range 300 {
		events = append(events, stream.Event{Name: fmt.Sprint("old-", i)})
	}
	if _, err := stream.Append(t.Context(), c.engine, rates, stream.Any, events...); err != nil {
		t.Fatal(err)
	}
	if err := c.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := stream.Get(t.Context(), c.engine, rates)
	if err != nil || s.Last-s.First != keptEvents {
		t.Errorf("got stream %+v, error %v, want %d events before the last", s, err, keptEvents)
	}
	j := job{n: 10 * slowDownBy}
	if j.end(0, 7); j.next != 7*11 {
		t.Errorf("the next job starts in round %d, want 77", j.next)
	}
}

// The company stops with its context.
func TestTheCompanyStops(t *testing.T) {
	d := New(io.Discard, nil)
	holdfasttest.Open(t, d.Parts()...)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := d.Work(ctx); err != context.Canceled {
		t.Errorf("got error %v", err)
	}
}

package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// person is the actor that resolves the uncertain operation.
const person = "a person"

// payments pays two invoices from processes that are killed after they have charged the card
// and before they record the charge.
func (d *Demo) payments(ctx context.Context) error {
	keyed, err := d.open(ctx, invoice{Cents: 9900})
	if err != nil {
		return err
	}
	keyless, err := d.open(ctx, invoice{Cents: 9900, Keyless: true})
	if err != nil {
		return err
	}
	if err := together([]*account{keyed, keyless}, func(a *account) error { return d.killPaying(ctx, a) }); err != nil {
		return err
	}
	if err := d.paid(ctx, keyed); err != nil { // the charge is retried with the same key
		return err
	}
	if err := d.resolveManually(ctx, keyless); err != nil {
		return err
	}
	return d.auditBook(ctx, keyed, keyless)
}

// killPaying closes an invoice and kills the process that pays it.
func (d *Demo) killPaying(ctx context.Context, a *account) error {
	if _, err := d.closeAs(ctx, a, admin(0)); err != nil {
		return err
	}
	if err := d.callers.Killed(ctx, "pay", a.id, admin(1)); err != nil {
		return err
	}
	a.killed(admin(1), "interrupted")
	return nil
}

// paid waits until an invoice is paid.
func (d *Demo) paid(ctx context.Context, a *account) error {
	a.observed = append(a.observed, "settled/pay")
	err := await(ctx, func() (bool, error) {
		e, err := d.invoices.Get(ctx, d.engine, a.id)
		return e.Status == "paid", err
	})
	if err != nil {
		return err
	}
	return d.audit(ctx, a)
}

// resolveManually waits until the operation is uncertain, and resolves it as a person would:
// it reads the book of the gateway and records whether the charge happened.
func (d *Demo) resolveManually(ctx context.Context, a *account) error {
	var operation string
	err := await(ctx, func() (bool, error) {
		e, err := d.invoices.Get(ctx, d.engine, a.id)
		if err != nil || e.Claimed == nil {
			return false, err
		}
		operation = e.Claimed.ID
		return e.Claimed.Phase == "uncertain", nil
	})
	if err != nil {
		return err
	}
	a.observed = append(a.observed, "parked")
	_, err = d.invoices.Fire(ctx, d.engine, a.id, "pay", "admin", lifecycle.By(admin(2)))
	if _, err := a.observe(admin(2), "pay", err); err != nil {
		return err
	}
	if err := d.resolve(ctx, a, operation); err != nil {
		return err
	}
	a.observed = append(a.observed, "resumed by "+person)
	return d.paid(ctx, a)
}

// resolve resolves an uncertain operation from the book of the gateway.
func (d *Demo) resolve(ctx context.Context, a *account, operation string) error {
	p, err := lifecycle.GetOperation(ctx, d.engine, operation)
	if err != nil {
		return err
	}
	b, err := gatewayOf(d.engine, a.id).entries(ctx)
	if err != nil {
		return err
	}
	var known []holdfast.Resolution
	for _, effect := range p.Effects {
		r := holdfast.Resolution{Name: effect.Name, Ordinal: effect.Ordinal, State: holdfast.EffectNotDone}
		if found := b.under(effect.Key, slipCharged); len(found) > 0 {
			r.State = holdfast.EffectDone
			if r.Result, err = json.Marshal(found[0].Receipt); err != nil {
				return err
			}
		}
		known = append(known, r)
	}
	_, err = lifecycle.Resolve(ctx, d.engine, operation, known, lifecycle.By(person))
	return err
}

// auditBook compares the receipts of the invoices with the book of the gateway.
func (d *Demo) auditBook(ctx context.Context, all ...*account) error {
	b, err := gatewayOf(d.engine, d.run+"-").entries(ctx)
	if err != nil {
		return err
	}
	calls := 0
	for _, e := range b {
		switch e.name {
		case slipCharged:
			calls++
			d.total.recorded.charges++
		case slipRepeated:
			calls++
		}
	}
	for _, a := range all {
		if a.receipt == "" || b.with(a.receipt, slipCharged) != 1 {
			d.total.mismatch(a.id, "the card was not charged exactly once")
		}
	}
	d.tell("%d processes killed after charging: %d gateway calls, %d charges", len(all), calls, d.total.recorded.charges)
	return nil
}

// with counts the entries with a receipt and an event name.
func (b book) with(receipt, name string) (n int) {
	for _, e := range b {
		if e.Receipt == receipt && e.name == name {
			n++
		}
	}
	return n
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

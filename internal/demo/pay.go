package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-go/holdfast/lifecycle"
)

// person is who resolves what nobody else can know.
const person = "a person"

// payments has two invoices paid by processes that are killed when the card is
// charged and that is not noted yet.
func (d *Demo) payments(ctx context.Context) error {
	d.say("\n3. Money: 2 more are paid by processes that are killed after the card was charged, before that was noted.\n\n")
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
	if err := d.paidAgain(ctx, keyed); err != nil {
		return err
	}
	if err := d.paidByHand(ctx, keyless); err != nil {
		return err
	}
	return d.auditBook(ctx, keyed, keyless)
}

// killPaying closes an invoice, and kills the one who pays it.
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

// paidAgain waits until the operation has been resumed, with the same key.
func (d *Demo) paidAgain(ctx context.Context, a *account) error {
	d.say("  invoice %s   %s was killed; its gateway knows a charge again by the key, so it is asked again with the same one\n", a.id, admin(1))
	return d.paid(ctx, a)
}

// paid waits until an invoice is paid, and reads it back.
func (d *Demo) paid(ctx context.Context, a *account) error {
	a.told = append(a.told, "settled/pay")
	err := await(ctx, func() (bool, error) {
		e, err := d.invoices.Get(ctx, d.engine, a.id)
		return e.Status == "paid", err
	})
	if err != nil {
		return err
	}
	if err := d.audit(ctx, a); err != nil {
		return err
	}
	b, err := gatewayOf(d.engine, a.id).entries(ctx)
	if err != nil {
		return err
	}
	charged, repeated := b.with(a.receipt, slipCharged), b.with(a.receipt, slipRepeated)
	d.say("  invoice %s   paid, receipt %s: the gateway was asked %s and charged %s   history: %s\n",
		a.id, a.receipt, times(charged+repeated), times(charged), a.recorded())
	return nil
}

// paidByHand waits until the operation is uncertain, and resolves it as a person
// would: who looks into the gateway's book, and says what happened.
func (d *Demo) paidByHand(ctx context.Context, a *account) error {
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
	a.told = append(a.told, "parked")
	_, err = d.invoices.Fire(ctx, d.engine, a.id, "pay", "admin", lifecycle.By(admin(2)))
	if _, err := a.answered(admin(2), "pay", err); err != nil {
		return err
	}
	d.say("  invoice %s   %s was killed; its gateway knows no keys, so nobody guesses: uncertain; %s is refused (%s)\n", a.id, admin(1), admin(2), a.code())
	if err := d.resolve(ctx, a, operation); err != nil {
		return err
	}
	a.told = append(a.told, "resumed by "+person)
	return d.paid(ctx, a)
}

// resolve is the one call that ends an uncertainty.
func (d *Demo) resolve(ctx context.Context, a *account, operation string) error {
	p, err := lifecycle.Find(ctx, d.engine, operation)
	if err != nil {
		return err
	}
	b, err := gatewayOf(d.engine, a.id).entries(ctx)
	if err != nil {
		return err
	}
	var known []lifecycle.Resolution
	for _, effect := range p.Effects {
		r := lifecycle.Resolution{Name: effect.Name, Ordinal: effect.Ordinal}
		if found := b.under(effect.Key, slipCharged); len(found) > 0 {
			r.Happened = true
			if r.Result, err = json.Marshal(found[0].Receipt); err != nil {
				return err
			}
			d.say("  invoice %s   %s finds the charge in the gateway's book and says so: it happened, receipt %s\n", a.id, person, found[0].Receipt)
		}
		known = append(known, r)
	}
	_, err = lifecycle.Resolve(ctx, d.engine, operation, known, "", person)
	return err
}

// auditBook holds the receipts that the invoices have to the gateway's book.
func (d *Demo) auditBook(ctx context.Context, all ...*account) error {
	b, err := gatewayOf(d.engine, d.run+"-").entries(ctx)
	if err != nil {
		return err
	}
	for _, e := range b {
		switch e.name {
		case slipCharged:
			d.total.recorded.charges++
		case slipRepeated:
			d.total.repeated++
		}
	}
	for _, a := range all {
		if a.receipt == "" || b.with(a.receipt, slipCharged) != 1 {
			d.total.blame(a.id, "it was not charged once")
		}
	}
	return nil
}

// with counts the entries of a name with a receipt.
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

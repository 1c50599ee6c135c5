package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/batch"
)

const (
	scans      = 20 // items of the batch
	doneBefore = 6  // that are done before it is cancelled
	accepted   = 2  // of these, that are accepted
	inMiddle   = 3  // that are in the middle then
	price      = 10 // points that each costs
	cancels    = 4  // people who cancel it at once
)

// scanKind is what the batch of the demo does: some scans are done at once, and the rest take
// until they are cancelled.
func scanKind() *batch.Kind[int, string] {
	return batch.Define("demo-scan", func(ctx context.Context, i *batch.Item[int]) (string, error) {
		if i.Input < doneBefore {
			return "scanned", nil
		}
		<-ctx.Done()
		return "", ctx.Err()
	}, batch.Options{MaxConcurrency: inMiddle, Lease: time.Second})
}

// refunds has a batch cancelled in the middle, by several at once, and adds up what went
// from its wallet and back.
func (d *Demo) refunds(ctx context.Context) error {
	d.say("\n5. Refunds: a batch of %d scans at %d points each is cancelled in the middle, by %d people at once.\n\n", scans, price, cancels)
	id, wallet := d.run+"-scans", d.run+"-points"
	if _, err := batch.PutWallet(ctx, d.engine, wallet, false); err != nil {
		return err
	}
	if _, err := batch.Credit(ctx, d.engine, wallet, scans*price, "payment"); err != nil {
		return err
	}
	_, err := d.scans.Create(ctx, d.engine, wallet, func(yield func(batch.Work[int]) bool) {
		for i := range scans {
			if !yield(batch.Work[int]{Key: fmt.Sprintf("page-%02d", i+1), Cost: price, Input: i}) {
				return
			}
		}
	}, batch.ID(id))
	if err == nil {
		err = await(ctx, func() (bool, error) {
			b, err := batch.Get(ctx, d.engine, id)
			return b.Counts.Succeeded == doneBefore && b.Counts.Running == inMiddle, err
		})
	}
	if err == nil {
		_, err = batch.Finalize(ctx, d.engine, id, "page-01", "page-02")
	}
	if err == nil {
		err = d.cancelTogether(ctx, id)
	}
	if err != nil {
		return err
	}
	return d.auditRefunds(ctx, id, wallet)
}

// cancelTogether has several cancel a batch at once.
func (d *Demo) cancelTogether(ctx context.Context, id string) error {
	for _, err := range atOnce(cancels, func(int) error {
		_, _, err := batch.Cancel(ctx, d.engine, id)
		return err
	}) {
		if err != nil {
			return err
		}
	}
	return await(ctx, func() (bool, error) {
		b, err := batch.Get(ctx, d.engine, id)
		return b.Over(), err
	})
}

// auditRefunds holds the refunds in the ledger to the batch.
func (d *Demo) auditRefunds(ctx context.Context, id, wallet string) error {
	b, err := batch.Get(ctx, d.engine, id)
	if err != nil {
		return err
	}
	w, err := batch.GetWallet(ctx, d.engine, wallet)
	if err != nil {
		return err
	}
	for e, err := range batch.Ledger(ctx, d.engine, wallet, 0) {
		if err != nil {
			return err
		}
		if e.Reason == "refund" {
			d.total.recorded.refunds++
		}
	}
	d.total.told.refunds = int(b.Refunded / price)
	d.say("  batch %s   %d done, %d of them accepted, %d in the middle; %s: charged %d, refunded %d, and the wallet has %d of %d points\n", id,
		doneBefore, b.Counts.Accepted, inMiddle, b.Status, b.Charged, b.Refunded, w.Balance, scans*price)
	if w.Balance != scans*price-b.Counts.Accepted*price || b.Counts.Accepted != accepted {
		d.total.blame(id, "the wallet is not what it was but for what was accepted")
	}
	return nil
}

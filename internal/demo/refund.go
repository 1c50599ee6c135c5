package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/batch"
)

const (
	scans      = 20 // items of the batch
	doneBefore = 6  // items that succeed before the cancel
	accepted   = 2  // succeeded items that are accepted
	inFlight   = 3  // items in flight at the cancel
	price      = 10 // points per item
	cancels    = 4  // callers that cancel the batch at once
)

// scanKind returns the handler of the batch: the first scans succeed at once, and the others
// block until they are cancelled.
func scanKind() *batch.Kind[int, string] {
	return batch.Define("demo-scan", func(ctx context.Context, i *batch.Item[int]) (string, error) {
		if i.Input < doneBefore {
			return "scanned", nil
		}
		<-ctx.Done()
		return "", ctx.Err()
	}, batch.Options{MaxConcurrency: inFlight, Lease: time.Second})
}

// refunds cancels a batch halfway, from several callers at once, and audits its wallet.
func (d *Demo) refunds(ctx context.Context) error {
	id, wallet := d.run+"-scans", d.run+"-points"
	if _, err := batch.PutWallet(ctx, d.engine, wallet); err != nil {
		return err
	}
	if _, err := batch.Credit(ctx, d.engine, wallet, scans*price, "payment"); err != nil {
		return err
	}
	_, err := d.scans.Create(ctx, d.engine, wallet, func(yield func(batch.NewItem[int]) bool) {
		for i := range scans {
			if !yield(batch.NewItem[int]{Key: fmt.Sprintf("page-%02d", i+1), Cost: price, Input: i}) {
				return
			}
		}
	}, batch.ID(id))
	if err == nil {
		err = await(ctx, func() (bool, error) {
			b, err := batch.Get(ctx, d.engine, id)
			return b.Counts.Succeeded == doneBefore && b.Counts.Running == inFlight, err
		})
	}
	if err == nil {
		_, err = batch.Accept(ctx, d.engine, id, []string{"page-01", "page-02"})
	}
	if err == nil {
		err = d.cancelTogether(ctx, id)
	}
	if err != nil {
		return err
	}
	return d.auditRefunds(ctx, id, wallet)
}

// cancelTogether cancels a batch from several callers at once and waits until it ends.
func (d *Demo) cancelTogether(ctx context.Context, id string) error {
	for _, err := range atOnce(cancels, func(int) error {
		_, err := batch.Cancel(ctx, d.engine, id)
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

// auditRefunds compares the refunds in the ledger with the batch.
func (d *Demo) auditRefunds(ctx context.Context, id, wallet string) error {
	b, err := batch.Get(ctx, d.engine, id)
	if err != nil {
		return err
	}
	w, err := batch.GetWallet(ctx, d.engine, wallet)
	if err != nil {
		return err
	}
	for e, err := range batch.ReadLedger(ctx, d.engine, wallet, 0) {
		if err != nil {
			return err
		}
		if e.Reason == "refund" {
			d.total.recorded.refunds++
		}
	}
	d.total.observed.refunds = int(b.Refunded / price)
	d.tell("%d cancel a batch at once: %d items charged, %d kept, %d refunded", cancels, b.Charged/price, b.Counts.Accepted, d.total.recorded.refunds)
	if w.Balance != scans*price-b.Counts.Accepted*price || b.Counts.Accepted != accepted {
		d.total.mismatch(id, "the wallet's balance does not match the accepted items")
	}
	return nil
}

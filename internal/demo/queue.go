package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
)

const (
	transfers     = 12 // payments in the bank's queue
	maxDeliveries = 4  // of one payment
)

// deliveries returns what a queue delivers that promises to deliver at least once: some payments several times, and in any
// order.
func deliveries() (all []int) {
	for n := range transfers {
		for range 1 + rand.IntN(maxDeliveries) {
			all = append(all, n)
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// queue credits the payments of the bank's queue to a wallet, all deliveries at once.
func (d *Demo) queue(ctx context.Context) error {
	wallet, all := d.run+"-account", deliveries()
	if _, err := batch.PutWallet(ctx, d.engine, wallet); err != nil {
		return err
	}
	err := errors.Join(atOnce(len(all), func(i int) error {
		_, err := batch.Credit(ctx, d.engine, wallet, int64(100+all[i]), fmt.Sprintf("transfer-%02d", all[i]+1))
		return err
	})...)
	if err != nil {
		return err
	}
	entries, err := holdfast.Collect(batch.ReadLedger(ctx, d.engine, wallet, 0))
	if err != nil {
		return err
	}
	w, err := batch.GetWallet(ctx, d.engine, wallet)
	if err != nil {
		return err
	}
	want := int64(0)
	for n := range transfers {
		want += int64(100 + n)
	}
	if w.Balance != want {
		d.total.mismatch(wallet, fmt.Sprintf("the balance is %d, want %d", w.Balance, want))
	}
	d.total.observed.transfers, d.total.recorded.transfers = transfers, len(entries)
	d.total.redelivered = len(all) - len(entries)
	d.tell("the bank's queue delivers %d payments %d times: %d credited", transfers, len(all), len(entries))
	return nil
}

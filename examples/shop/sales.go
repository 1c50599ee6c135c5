package main

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// sales is a projection of the histories of orders to the table sales. A step that has succeeded is the event
// "settled/STEP".
var sales = stream.Project("sales",
	stream.Select{Source: stream.Histories, Pattern: `^\$entity/order/`, Events: []string{"settled/pay", "settled/refund"}},
	addSale, clearSales, stream.Options{})

// addSale applies an event of an order's history to the table sales, in the transaction that acknowledges the event.
func addSale(ctx context.Context, tx holdfast.Tx, e stream.Event) error {
	sign := 1
	if e.Name == "settled/refund" {
		sign = -1
	}
	return exec(ctx, tx, `INSERT INTO sales (tenant, customer, cents)
		SELECT tenant, customer, cents * $3 FROM orders WHERE tenant = $1 AND id = $2
		ON CONFLICT (tenant, customer) DO UPDATE SET cents = sales.cents + excluded.cents`,
		holdfast.WorkspaceOf(ctx), strings.TrimPrefix(e.Stream, "$entity/order/"), sign)
}

// clearSales removes what addSale has written, for a rebuild.
func clearSales(ctx context.Context, tx holdfast.Tx) error {
	return exec(ctx, tx, `DELETE FROM sales WHERE tenant = $1`, holdfast.WorkspaceOf(ctx))
}

// salesOf reads the projection.
func salesOf(ctx context.Context, hf *holdfast.Engine, customer string) (cents int64, err error) {
	err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		return sqlite.Raw(tx).QueryRowContext(ctx, `SELECT coalesce(sum(cents), 0) FROM sales WHERE tenant = $1 AND customer = $2`,
			holdfast.WorkspaceOf(ctx), customer).Scan(&cents)
	})
	return cents, err
}

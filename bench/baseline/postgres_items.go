package baseline

import (
	"cmp"
	"context"
	"slices"
	"time"
)

var _ ManyItems = (*PostgresCoalesced)(nil)

// CreateBatch makes a batch, with its event. If the batch exists, it is refused.
func (p *Postgres) CreateBatch(ctx context.Context, b Batch) error {
	_, err := p.number(ctx, "batch.create", newID(), b.ID, b.Wallet, b.Handler, b.Parallel)
	return err
}

// AddItems adds a page of items in one statement.
func (p *Postgres) AddItems(ctx context.Context, batch string, items []Item) error {
	keys, costs, inputs := make([]string, len(items)), make([]int64, len(items)), make([]string, len(items))
	for i, x := range items {
		keys[i], costs[i], inputs[i] = x.Key, x.Cost, x.Input
	}
	_, err := p.number(ctx, "batch.add", newID(), batch, keys, costs, inputs)
	return err
}

// TakeItem takes the next item and charges its cost.
func (p *Postgres) TakeItem(ctx context.Context, batch, holder string, lease time.Duration) (Held, error) {
	h := Held{Batch: batch}
	row := p.pool.QueryRow(ctx, p.texts["item.take"], shard, workspace, newID(), batch, holder, lease.Milliseconds())
	err := row.Scan(&h.Key, &h.Epoch, &h.Until, &h.Input)
	return h, refused(err)
}

// SettleItem ends an item with its event.
func (p *Postgres) SettleItem(ctx context.Context, h Held, output string) error {
	_, err := p.number(ctx, "item.settle", newID(), h.Batch, h.Key, h.Epoch, output)
	return err
}

// CountBatch reads a batch.
func (p *Postgres) CountBatch(ctx context.Context, batch string) (c BatchCounts, err error) {
	err = p.pool.QueryRow(ctx, p.texts["batch.count"], shard, workspace, batch).Scan(c.columns()...)
	return c, err
}

func (c *BatchCounts) columns() []any {
	return []any{&c.Items, &c.Next, &c.Running, &c.Succeeded, &c.Charged, &c.Version, &c.Balance, &c.Settled, &c.Entries, &c.Sum, &c.Events}
}

// TakeItems takes items and charges their costs in one statement.
func (c *PostgresCoalesced) TakeItems(ctx context.Context, batch, holder string, lease time.Duration, limit int) ([]Held, error) {
	rows, err := c.pool.Query(ctx, c.texts["item.take.all"], shard, workspace, newID(), batch, holder, lease.Milliseconds(), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make([]Held, 0, limit)
	for rows.Next() {
		h := Held{Batch: batch}
		if err := rows.Scan(&h.Key, &h.Epoch, &h.Until, &h.Input); err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, rows.Err()
}

// SettleItems ends items, each with its event, in one statement. It locks them in the
// order of their keys, so that two callers with some of the same items do not deadlock.
func (c *PostgresCoalesced) SettleItems(ctx context.Context, batch string, all []Held, output string) (int, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b Held) int { return cmp.Compare(a.Key, b.Key) })
	keys, epochs := make([]string, len(all)), make([]int64, len(all))
	for i, h := range all {
		keys[i], epochs[i] = h.Key, h.Epoch
	}
	n, err := c.number(ctx, "item.settle.all", ids(len(all)), batch, keys, epochs, output)
	return int(n), err
}

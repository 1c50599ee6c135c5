package baseline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

var _ ManyItems = (*SQLiteCoalesced)(nil)

// TakeItems takes items and charges their costs in one transaction.
func (c *SQLiteCoalesced) TakeItems(ctx context.Context, batch, holder string, lease time.Duration, limit int) ([]Held, error) {
	all, err := answered(ctx, c.liteCalls, func(ctx context.Context, q lite) ([]Held, error) {
		return q.takeItems(ctx, batch, holder, lease, limit)
	})
	if errors.Is(err, ErrRefused) { // it found none
		return nil, nil
	}
	return all, err
}

// SettleItems ends items, each with its event, in one transaction.
func (c *SQLiteCoalesced) SettleItems(ctx context.Context, batch string, all []Held, output string) (int, error) {
	return answered(ctx, c.liteCalls, func(ctx context.Context, q lite) (int, error) { return q.settleItems(ctx, batch, all, output) })
}

func (q lite) createBatch(ctx context.Context, b Batch) error {
	at := clock.Now().UnixMilli()
	if err := one(q("batch.create").ExecContext(ctx, shard, workspace, b.ID, b.Wallet, b.Handler, b.Parallel, at)); err != nil {
		return err
	}
	return q.history(ctx, "$batch/"+b.ID, 0, "created", `{"items":0}`, at)
}

func (q lite) addItems(ctx context.Context, batch string, items []Item) error {
	at := clock.Now().UnixMilli()
	var total, version int64
	if err := q("batch.add").QueryRowContext(ctx, shard, workspace, batch, len(items), at).Scan(&total, &version); err != nil {
		return absent(err)
	}
	before := total - int64(len(items))
	add := q("item.add")
	for i, x := range items {
		if _, err := add.ExecContext(ctx, shard, workspace, batch, x.Key, before+int64(i)+1, x.Cost, x.Input, at); err != nil {
			return err
		}
	}
	return q.history(ctx, "$batch/"+batch, version, "itemsAdded", fmt.Sprintf(`{"added":%d,"items":%d}`, len(items), total), at)
}

func (q lite) countBatch(ctx context.Context, batch string) (c BatchCounts, err error) {
	err = q("batch.count").QueryRowContext(ctx, shard, workspace, batch).Scan(c.columns()...)
	return c, err
}

func (q lite) takeItem(ctx context.Context, batch, holder string, lease time.Duration) (Held, error) {
	all, err := q.takeItems(ctx, batch, holder, lease, 1)
	if err != nil {
		return Held{}, err
	}
	return all[0], nil
}

// purse is what a take reads of a batch and of its wallet.
type purse struct {
	wallet  string
	next    int64 // how many items were taken before
	room    int64 // how many items may be taken now
	balance int64
	number  int64 // of the last row of the ledger
}

// due is an item that can be paid for.
type due struct {
	cost int64
	Held
}

// takeItems is refused if there is no item to take, or if the wallet cannot pay for the next one.
func (q lite) takeItems(ctx context.Context, batch, holder string, lease time.Duration, limit int) ([]Held, error) {
	var p purse
	err := q("batch.open").QueryRowContext(ctx, shard, workspace, batch, limit).Scan(&p.wallet, &p.next, &p.room, &p.balance, &p.number)
	if err != nil {
		return nil, absent(err)
	}
	now := clock.Now()
	at, until := now.UnixMilli(), now.Add(lease)
	taken, err := q.payable(ctx, batch, p, until)
	if err == nil && len(taken) == 0 {
		err = ErrRefused
	}
	if err != nil {
		return nil, err
	}
	if _, err := q("item.take").ExecContext(ctx, shard, workspace, batch, p.next, len(taken), holder, until.UnixMilli(), at); err != nil {
		return nil, err
	}
	cost, err := q.charge(ctx, batch, p, taken, at)
	if err != nil {
		return nil, err
	}
	var version int64
	if err := q("batch.taken").QueryRowContext(ctx, shard, workspace, batch, len(taken), cost, at).Scan(&version); err != nil {
		return nil, err
	}
	all, keys := make([]Held, len(taken)), make([]string, len(taken))
	for i, d := range taken {
		all[i], keys[i] = d.Held, d.Key
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	return all, q.history(ctx, "$batch/"+batch, version, "itemsTaken", fmt.Sprintf(`{"keys":%s,"charged":%d}`, list, cost), at)
}

// payable returns the next items that the wallet can pay for, in order.
func (q lite) payable(ctx context.Context, batch string, p purse, until time.Time) ([]due, error) {
	rows, err := q("item.due").QueryContext(ctx, shard, workspace, batch, p.next, p.room)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all, left := make([]due, 0, p.room), p.balance
	for rows.Next() {
		d := due{Held: Held{Batch: batch, Until: until}}
		if err := rows.Scan(&d.Key, &d.cost, &d.Epoch, &d.Input); err != nil {
			return nil, err
		}
		if left -= d.cost; left < 0 {
			break
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

// charge pays for items, with a row of the ledger each.
func (q lite) charge(ctx context.Context, batch string, p purse, taken []due, at int64) (cost int64, err error) {
	paid := int64(0)
	post := q("ledger.charge")
	for _, d := range taken {
		if d.cost == 0 {
			continue
		}
		paid, cost = paid+1, cost+d.cost
		if _, err := post.ExecContext(ctx, shard, workspace, p.wallet, p.number+paid, -d.cost, p.balance-cost, "$batch/"+batch+"/charge/"+d.Key, at); err != nil {
			return cost, err
		}
	}
	if paid == 0 {
		return 0, nil
	}
	_, err = q("wallet.spend").ExecContext(ctx, shard, workspace, p.wallet, cost, paid, at)
	return cost, err
}

func (q lite) settleItem(ctx context.Context, h Held, output string) error {
	n, err := q.settleItems(ctx, h.Batch, []Held{h}, output)
	if err == nil && n == 0 {
		err = ErrRefused
	}
	return err
}

func (q lite) settleItems(ctx context.Context, batch string, all []Held, output string) (int, error) {
	at := clock.Now().UnixMilli()
	events := make([]string, 0, len(all))
	settle := q("item.settle")
	for _, h := range all {
		var failures, deaths int64
		err := absent(settle.QueryRowContext(ctx, shard, workspace, batch, h.Key, h.Epoch, output, at).Scan(&failures, &deaths))
		if errors.Is(err, ErrRefused) {
			continue
		}
		if err != nil {
			return 0, err
		}
		events = append(events, fmt.Sprintf(`{"key":%s,"state":"succeeded","failures":%d,"deaths":%d,"over":false,"counts":`, quote(h.Key), failures, deaths))
	}
	if len(events) == 0 {
		return 0, nil
	}
	var version, pending, running, succeeded, failed, cancelled, accepted int64
	err := q("batch.settled").QueryRowContext(ctx, shard, workspace, batch, len(events), at).
		Scan(&version, &pending, &running, &succeeded, &failed, &cancelled, &accepted)
	if err != nil {
		return 0, err
	}
	counts := fmt.Sprintf(`{"pending":%d,"running":%d,"succeeded":%d,"failed":%d,"cancelled":%d,"accepted":%d}}`, pending, running, succeeded, failed, cancelled, accepted)
	for i, text := range events {
		if err := q.history(ctx, "$batch/"+batch, version-int64(len(events)-i-1), "itemSucceeded", text+counts, at); err != nil {
			return 0, err
		}
	}
	return len(events), nil
}

package baseline

import (
	"context"
	"database/sql"
	"time"
)

// liteCalls are the calls of a [System] on SQLite. [SQLite] and [SQLiteCoalesced] differ only in the
// transaction that a call has, or shares.
type liteCalls struct {
	// update runs a call in a transaction.
	update func(context.Context, liteCall) error
}

// liteCall is one call. The context is that of the transaction.
type liteCall func(context.Context, lite) error

// lite gives the prepared statements of one transaction.
type lite func(name string) *sql.Stmt

// answered runs a call that returns a value. After an error the value is not read, because the
// writer may still write it.
func answered[T any](ctx context.Context, c liteCalls, f func(context.Context, lite) (T, error)) (T, error) {
	v := new(T)
	err := c.update(ctx, func(ctx context.Context, q lite) (err error) { *v, err = f(ctx, q); return err })
	if err != nil {
		var none T
		return none, err
	}
	return *v, nil
}

func (c liteCalls) Create(ctx context.Context, a New) (Entity, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) (Entity, error) { return q.create(ctx, a) })
}

func (c liteCalls) Transition(ctx context.Context, a Move) (Entity, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) (Entity, error) { return q.transition(ctx, a) })
}

func (c liteCalls) Append(ctx context.Context, a Append) (int64, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) (int64, error) { return q.append(ctx, a) })
}

func (c liteCalls) Inc(ctx context.Context, a Inc) (int64, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) (int64, error) { return q.inc(ctx, a) })
}

func (c liteCalls) PutScope(ctx context.Context, kind, id, state string) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.put(ctx, kind, id, state) })
}

func (c liteCalls) AddTask(ctx context.Context, a Task) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.addTask(ctx, a) })
}

func (c liteCalls) Lease(ctx context.Context, queue, holder string, lease time.Duration) ([]Leased, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) ([]Leased, error) { return q.lease(ctx, queue, holder, lease) })
}

func (c liteCalls) Ack(ctx context.Context, t Leased, output string) (int64, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) (int64, error) { return q.ack(ctx, t, output) })
}

func (c liteCalls) PutWallet(ctx context.Context, id string, balance int64) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.putWallet(ctx, id, balance) })
}

func (c liteCalls) CreateBatch(ctx context.Context, b Batch) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.createBatch(ctx, b) })
}

func (c liteCalls) AddItems(ctx context.Context, batch string, items []Item) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.addItems(ctx, batch, items) })
}

func (c liteCalls) TakeItem(ctx context.Context, batch, holder string, lease time.Duration) (Held, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) (Held, error) { return q.takeItem(ctx, batch, holder, lease) })
}

func (c liteCalls) SettleItem(ctx context.Context, h Held, output string) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.settleItem(ctx, h, output) })
}

func (c liteCalls) CountBatch(ctx context.Context, batch string) (BatchCounts, error) {
	return answered(ctx, c, func(ctx context.Context, q lite) (BatchCounts, error) { return q.countBatch(ctx, batch) })
}

func (c liteCalls) StartRun(ctx context.Context, a StartRun) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.startRun(ctx, a) })
}

func (c liteCalls) FinishStep(ctx context.Context, a FinishStep) error {
	return c.update(ctx, func(ctx context.Context, q lite) error { return q.finishStep(ctx, a) })
}

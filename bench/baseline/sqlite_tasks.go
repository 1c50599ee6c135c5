package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

var _ AckAller = (*SQLiteCoalesced)(nil)

// AckAll ends leased tasks, each with its event, in one transaction.
func (c *SQLiteCoalesced) AckAll(ctx context.Context, all []Leased, output string) (int, error) {
	return answered(ctx, c.liteCalls, func(ctx context.Context, q lite) (acked int, err error) {
		for _, t := range all {
			_, err := q.ack(ctx, t, output)
			if err == nil {
				acked++
			} else if !errors.Is(err, ErrRefused) {
				return 0, err
			}
		}
		return acked, nil
	})
}

func (q lite) addTask(ctx context.Context, a Task) error {
	at := clock.Now().UnixMilli()
	if err := one(q("task.add").ExecContext(ctx, shard, workspace, a.Queue, a.ID, a.Input, at)); err != nil {
		return err
	}
	return q.history(ctx, "$task/"+a.Queue+"/"+a.ID, 0, "added", "{}", at)
}

func (q lite) lease(ctx context.Context, queue, holder string, lease time.Duration) ([]Leased, error) {
	at := clock.Now()
	rows, err := q("task.lease").QueryContext(ctx, shard, workspace, queue, holder, at.UnixMilli(), at.Add(lease).UnixMilli(), LeaseSize)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make([]Leased, 0, LeaseSize)
	for rows.Next() {
		var t Leased
		var until int64
		if err := rows.Scan(&t.Queue, &t.ID, &t.Epoch, &until, &t.Input); err != nil {
			return nil, err
		}
		t.Until = time.UnixMilli(until).UTC()
		all = append(all, t)
	}
	return all, rows.Err()
}

func (q lite) ack(ctx context.Context, t Leased, output string) (int64, error) {
	at := clock.Now().UnixMilli()
	var version, failures int64
	err := q("task.ack").QueryRowContext(ctx, shard, workspace, t.Queue, t.ID, t.Epoch, output, at).Scan(&version, &failures)
	if err != nil {
		return 0, absent(err)
	}
	data := fmt.Sprintf(`{"epoch":%d,"state":"done","failures":%d}`, t.Epoch, failures)
	return version, q.history(ctx, "$task/"+t.Queue+"/"+t.ID, version, "settled", data, at)
}

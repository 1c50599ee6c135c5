package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

var _ AckAller = (*SQLiteCoalesced)(nil)

// AddTask makes a task with its event, unless there is one.
func (s *SQLite) AddTask(ctx context.Context, a Task) error {
	return s.update(ctx, func(q lite) error { return q.addTask(ctx, a) })
}

// Lease takes the longest due tasks of a queue.
func (s *SQLite) Lease(ctx context.Context, queue, holder string, lease time.Duration) (all []Leased, err error) {
	err = s.update(ctx, func(q lite) error { all, err = q.lease(ctx, queue, holder, lease); return err })
	return all, err
}

// Ack ends a leased task with its event.
func (s *SQLite) Ack(ctx context.Context, t Leased, output string) (version int64, err error) {
	err = s.update(ctx, func(q lite) error { version, err = q.ack(ctx, t, output); return err })
	return version, err
}

// AddTask makes a task with its event, unless there is one.
func (c *SQLiteCoalesced) AddTask(ctx context.Context, a Task) error {
	return c.do(ctx, func(q lite) error { return q.addTask(context.Background(), a) })
}

// Lease takes the longest due tasks of a queue.
func (c *SQLiteCoalesced) Lease(ctx context.Context, queue, holder string, lease time.Duration) ([]Leased, error) {
	all := new([]Leased)
	err := c.do(ctx, func(q lite) (err error) { *all, err = q.lease(context.Background(), queue, holder, lease); return err })
	return valueOf(all, err)
}

// Ack ends a leased task with its event.
func (c *SQLiteCoalesced) Ack(ctx context.Context, t Leased, output string) (int64, error) {
	version := new(int64)
	err := c.do(ctx, func(q lite) (err error) { *version, err = q.ack(context.Background(), t, output); return err })
	return valueOf(version, err)
}

// AckAll ends leased tasks, each with its event, in one transaction.
func (c *SQLiteCoalesced) AckAll(ctx context.Context, all []Leased, output string) (int, error) {
	acked := new(int)
	err := c.do(ctx, func(q lite) error {
		for _, t := range all {
			_, err := q.ack(context.Background(), t, output)
			if err == nil {
				*acked++
			} else if !errors.Is(err, ErrRefused) {
				return err
			}
		}
		return nil
	})
	return valueOf(acked, err)
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

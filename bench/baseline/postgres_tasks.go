package baseline

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

var _ AckAller = (*PostgresCoalesced)(nil)

// AddTask makes a task, with its event. If the task exists, it is refused.
func (p *Postgres) AddTask(ctx context.Context, a Task) error {
	var member, version int64
	row := p.pool.QueryRow(ctx, p.texts["task.add"], []int16{shard}, []string{workspace}, []uuid.UUID{newID()},
		[]string{a.Queue}, []string{a.ID}, []string{a.Input})
	return refused(row.Scan(&member, &version))
}

// Lease takes the longest due tasks of a queue.
func (p *Postgres) Lease(ctx context.Context, queue, holder string, lease time.Duration) ([]Leased, error) {
	rows, err := p.pool.Query(ctx, p.texts["task.lease"], shard, workspace, queue, holder, lease.Milliseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make([]Leased, 0, LeaseSize)
	for rows.Next() {
		var t Leased
		if err := rows.Scan(&t.Queue, &t.ID, &t.Epoch, &t.Until, &t.Input); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, rows.Err()
}

// Ack ends a leased task with its event.
func (p *Postgres) Ack(ctx context.Context, t Leased, output string) (int64, error) {
	return p.number(ctx, "task.ack", newID(), t.Queue, t.ID, t.Epoch, output)
}

// ack is one caller's acknowledgement.
type ack struct {
	Leased
	output string
}

// AddTask makes a task, with its event. If the task exists, it is refused.
func (c *PostgresCoalesced) AddTask(ctx context.Context, a Task) error {
	_, err := c.adds.do(ctx, a)
	return err
}

// Ack ends a leased task with its event.
func (c *PostgresCoalesced) Ack(ctx context.Context, t Leased, output string) (int64, error) {
	return c.acks.do(ctx, ack{t, output})
}

// AckAll ends leased tasks, each with its event, in one statement. The planner may lock the rows in another
// order: then two callers that end the same tasks can deadlock, and the one that the server aborts tries again.
func (c *PostgresCoalesced) AckAll(ctx context.Context, all []Leased, output string) (acked int, err error) {
	calls := make([]*call[ack, int64], len(all))
	for i, t := range all {
		calls[i] = &call[ack, int64]{args: ack{t, output}}
	}
	for err = c.ackAll(ctx, calls); deadlocked(err); err = c.ackAll(ctx, calls) {
	}
	if err != nil {
		return 0, err
	}
	for _, k := range calls {
		if k.err == nil {
			acked++
		}
	}
	return acked, nil
}

func deadlocked(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "40P01"
}

func (c *PostgresCoalesced) addAll(ctx context.Context, calls []*call[Task, int64]) error {
	all := newMembers(len(calls), 3)
	for i, k := range calls {
		all.texts[0][i], all.texts[1][i], all.texts[2][i] = k.args.Queue, k.args.ID, k.args.Input
	}
	rows, err := c.pool.Query(ctx, c.texts["task.add"], all.shards, all.workspaces, all.ids, all.texts[0], all.texts[1], all.texts[2])
	return answer(rows, err, calls, numberColumn)
}

// ackAll passes the tasks in the order of their names, so that two callers with
// some of the same tasks rarely deadlock.
func (c *PostgresCoalesced) ackAll(ctx context.Context, calls []*call[ack, int64]) error {
	calls = slices.SortedFunc(slices.Values(calls), func(a, b *call[ack, int64]) int {
		return cmp.Or(cmp.Compare(a.args.Queue, b.args.Queue), cmp.Compare(a.args.ID, b.args.ID))
	})
	all, epochs := newMembers(len(calls), 3), make([]int64, len(calls))
	for i, k := range calls {
		epochs[i] = k.args.Epoch
		all.texts[0][i], all.texts[1][i], all.texts[2][i] = k.args.Queue, k.args.ID, k.args.output
	}
	rows, err := c.pool.Query(ctx, c.texts["task.ack.all"], all.shards, all.workspaces, all.ids, all.texts[0], all.texts[1], all.texts[2], epochs)
	return answer(rows, err, calls, numberColumn)
}

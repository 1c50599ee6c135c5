package baseline

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// PostgresCoalesced runs the calls that wait in one statement over
// arrays. It is safe for concurrent use.
type PostgresCoalesced struct {
	*Postgres
	creates *lanes[New, Entity]
	moves   *lanes[Move, Entity]
	appends *lanes[Append, int64]
	incs    *lanes[Inc, int64]
	adds    *lanes[Task, int64]
	acks    *lanes[ack, int64]
}

var _ System = (*PostgresCoalesced)(nil)

// Coalesced starts the given number of writers for each type of call.
func (p *Postgres) Coalesced(writers int) *PostgresCoalesced {
	c := &PostgresCoalesced{Postgres: p}
	c.creates = (&lanes[New, Entity]{key: func(a New) string { return a.Lifecycle + "/" + a.ID }, apart: true, serve: c.createAll}).start(writers)
	c.moves = (&lanes[Move, Entity]{key: func(a Move) string { return a.Lifecycle + "/" + a.ID }, apart: true, serve: c.moveAll}).start(writers)
	c.appends = (&lanes[Append, int64]{key: func(a Append) string { return a.Stream }, apart: true, serve: c.appendAll}).start(writers)
	c.incs = (&lanes[Inc, int64]{key: Inc.row, serve: c.incAll}).start(writers)
	c.adds = (&lanes[Task, int64]{key: func(a Task) string { return a.Queue + "/" + a.ID }, apart: true, serve: c.addAll}).start(writers)
	c.acks = (&lanes[ack, int64]{key: func(a ack) string { return a.Queue + "/" + a.ID }, apart: true, serve: c.ackAll}).start(writers)
	return c
}

// Close waits for the writers. The pool stays open.
func (c *PostgresCoalesced) Close() {
	c.creates.close()
	c.moves.close()
	c.appends.close()
	c.incs.close()
	c.adds.close()
	c.acks.close()
}

// Create makes an entity, with its event. If the entity exists, it is refused.
func (c *PostgresCoalesced) Create(ctx context.Context, a New) (Entity, error) {
	return c.creates.do(ctx, a)
}

// Transition moves an entity that is in the status From, with its event.
func (c *PostgresCoalesced) Transition(ctx context.Context, a Move) (Entity, error) {
	return c.moves.do(ctx, a)
}

// Append adds an event to a stream at its expected version.
func (c *PostgresCoalesced) Append(ctx context.Context, a Append) (int64, error) {
	return c.appends.do(ctx, a)
}

// Inc adds to a number of a scope, with its event.
func (c *PostgresCoalesced) Inc(ctx context.Context, a Inc) (int64, error) {
	return c.incs.do(ctx, a)
}

func (c *PostgresCoalesced) createAll(ctx context.Context, calls []*call[New, Entity]) error {
	all := newMembers(len(calls), 4)
	for i, k := range calls {
		all.texts[0][i], all.texts[1][i], all.texts[2][i], all.texts[3][i] = k.args.Lifecycle, k.args.ID, k.args.Status, k.args.Data
	}
	rows, err := c.pool.Query(ctx, c.texts["create.all"], all.shards, all.workspaces, all.ids, all.texts[0], all.texts[1], all.texts[2], all.texts[3])
	return answer(rows, err, calls, entityColumns)
}

func (c *PostgresCoalesced) moveAll(ctx context.Context, calls []*call[Move, Entity]) error {
	all := newMembers(len(calls), 5)
	for i, k := range calls {
		all.texts[0][i], all.texts[1][i], all.texts[2][i], all.texts[3][i], all.texts[4][i] = k.args.Lifecycle, k.args.ID, k.args.From, k.args.To, k.args.Event
	}
	rows, err := c.pool.Query(ctx, c.texts["transition.all"], all.shards, all.workspaces, all.ids, all.texts[0], all.texts[1], all.texts[2], all.texts[3], all.texts[4])
	return answer(rows, err, calls, entityColumns)
}

func (c *PostgresCoalesced) appendAll(ctx context.Context, calls []*call[Append, int64]) error {
	all, wants := newMembers(len(calls), 3), make([]int64, len(calls))
	for i, k := range calls {
		wants[i] = k.args.Want
		all.texts[0][i], all.texts[1][i], all.texts[2][i] = k.args.Stream, k.args.Name, k.args.Data
	}
	rows, err := c.pool.Query(ctx, c.texts["append.all"], all.shards, all.workspaces, all.ids, all.texts[0], wants, all.texts[1], all.texts[2])
	return answer(rows, err, calls, numberColumn)
}

func (a Inc) row() string { return a.Kind + "/" + a.ID + "/" + a.Field }

// incAll writes each row once, whatever the number of callers that add to it.
func (c *PostgresCoalesced) incAll(ctx context.Context, calls []*call[Inc, int64]) error {
	groups := make(map[string][]*call[Inc, int64])
	for _, k := range calls {
		groups[k.args.row()] = append(groups[k.args.row()], k)
	}
	for _, group := range groups {
		if err := c.incRow(ctx, group); err != nil {
			for _, k := range group {
				k.err = err
			}
		}
	}
	return nil
}

func (c *PostgresCoalesced) incRow(ctx context.Context, calls []*call[Inc, int64]) error {
	by, sum := make([]int64, len(calls)), int64(0)
	for i, k := range calls {
		by[i] = k.args.By
		sum += k.args.By
	}
	a := calls[0].args
	rows, err := c.pool.Query(ctx, c.texts["inc.all"], shard, workspace, a.Kind, a.ID, a.Field, sum, ids(len(calls)), by)
	return answer(rows, err, calls, numberColumn)
}

// answer gives each call its row, by the number of the member. A call without a row was refused.
func answer[A, R any](rows pgx.Rows, err error, calls []*call[A, R], dest func(*R, []any) []any) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for _, k := range calls {
		k.err = ErrRefused
	}
	var member int64
	into := make([]any, 0, 6)
	for rows.Next() {
		var out R
		if err := rows.Scan(dest(&out, append(into, &member))...); err != nil {
			return err
		}
		if member < 1 || member > int64(len(calls)) {
			return fmt.Errorf("baseline: the statement returned a row for member %d of %d", member, len(calls))
		}
		calls[member-1].out, calls[member-1].err = out, nil
	}
	return rows.Err()
}

func entityColumns(e *Entity, dest []any) []any {
	return append(dest, &e.Status, &e.Version, &e.Data, &e.CreatedAt, &e.UpdatedAt)
}

func numberColumn(n *int64, dest []any) []any { return append(dest, n) }

func ids(n int) []uuid.UUID {
	all := make([]uuid.UUID, n)
	for i := range all {
		all[i] = newID()
	}
	return all
}

// members are the arguments of a group of calls, one array per column. Shard and
// workspace are arrays too: if they were constants, a planner without statistics
// would expect a single row for them, and scan all rows.
type members struct {
	shards     []int16
	workspaces []string
	ids        []uuid.UUID
	texts      [][]string
}

func newMembers(n, texts int) members {
	m := members{shards: make([]int16, n), workspaces: make([]string, n), ids: ids(n), texts: make([][]string, texts)}
	for i := range n {
		m.shards[i], m.workspaces[i] = shard, workspace
	}
	for i := range m.texts {
		m.texts[i] = make([]string, n)
	}
	return m
}

package baseline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SQLiteCoalesced has one goroutine that writes: whatever waits for it shares a
// transaction, and so a flush of the disk. It is safe for concurrent use.
type SQLiteCoalesced struct {
	*SQLite
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt // of the connection itself
	writer *lanes[job, struct{}]
}

var _ System = (*SQLiteCoalesced)(nil)

// job is one call, to be run in the writer's transaction.
type job func(lite) error

// Coalesced starts the writer. It keeps the only connection: the database is
// not to be used in another way until it is closed.
func (s *SQLite) Coalesced(ctx context.Context) (*SQLiteCoalesced, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	c := &SQLiteCoalesced{SQLite: s, conn: conn, stmts: make(map[string]*sql.Stmt)}
	for _, text := range []string{"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"} {
		if c.stmts[text], err = conn.PrepareContext(ctx, text); err != nil {
			break
		}
	}
	for name, text := range liteTexts {
		if err == nil {
			c.stmts[name], err = conn.PrepareContext(ctx, text)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("baseline: %w", err), conn.Close())
	}
	c.writer = (&lanes[job, struct{}]{serve: c.serve}).start(1)
	return c, nil
}

// Close waits for the writer. The file stays open.
func (c *SQLiteCoalesced) Close() {
	c.writer.close()
	_ = c.conn.Close()
}

// serve runs all jobs in one transaction. A refusal writes nothing and is the
// caller's own; any other error ends the transaction for all.
func (c *SQLiteCoalesced) serve(ctx context.Context, calls []*call[job, struct{}]) error {
	if _, err := c.stmts["BEGIN IMMEDIATE"].ExecContext(ctx); err != nil {
		return err
	}
	stmt := func(name string) *sql.Stmt { return c.stmts[name] }
	for _, k := range calls {
		if k.err = k.args(stmt); k.err != nil && !errors.Is(k.err, ErrRefused) {
			_, undo := c.stmts["ROLLBACK"].ExecContext(ctx)
			return errors.Join(k.err, undo)
		}
	}
	_, err := c.stmts["COMMIT"].ExecContext(ctx)
	return err
}

func (c *SQLiteCoalesced) do(ctx context.Context, f job) error {
	_, err := c.writer.do(ctx, f)
	return err
}

// Create makes an entity with its event, unless there is one.
func (c *SQLiteCoalesced) Create(ctx context.Context, a New) (Entity, error) {
	e := new(Entity)
	err := c.do(ctx, func(q lite) (err error) { *e, err = q.create(context.Background(), a); return err })
	return valueOf(e, err)
}

// Transition moves an entity that is in the status From, with its event.
func (c *SQLiteCoalesced) Transition(ctx context.Context, a Move) (Entity, error) {
	e := new(Entity)
	err := c.do(ctx, func(q lite) (err error) { *e, err = q.transition(context.Background(), a); return err })
	return valueOf(e, err)
}

// Append adds an event to a stream at its expected version.
func (c *SQLiteCoalesced) Append(ctx context.Context, a Append) (int64, error) {
	n := new(int64)
	err := c.do(ctx, func(q lite) (err error) { *n, err = q.append(context.Background(), a); return err })
	return valueOf(n, err)
}

// Inc adds to a number of a scope, with its event.
func (c *SQLiteCoalesced) Inc(ctx context.Context, a Inc) (int64, error) {
	n := new(int64)
	err := c.do(ctx, func(q lite) (err error) { *n, err = q.inc(context.Background(), a); return err })
	return valueOf(n, err)
}

// PutScope makes a scope or replaces its state.
func (c *SQLiteCoalesced) PutScope(ctx context.Context, kind, id, state string) error {
	return c.do(ctx, func(q lite) error { return q.put(context.Background(), kind, id, state) })
}

// valueOf reads an answer only where there is one: after an error the writer may
// still write to it.
func valueOf[T any](v *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *v, nil
}

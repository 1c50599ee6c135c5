package baseline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SQLiteCoalesced has one goroutine that writes: the calls that wait for it share a
// transaction, and so one flush of the disk. It is safe for concurrent use.
type SQLiteCoalesced struct {
	liteCalls
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt // of the connection itself
	writer *lanes[liteCall, struct{}]
}

var _ System = (*SQLiteCoalesced)(nil)

// Coalesced starts the writer, which keeps the only connection: until it is closed,
// the database must not be used otherwise.
func (s *SQLite) Coalesced(ctx context.Context) (*SQLiteCoalesced, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	c := &SQLiteCoalesced{conn: conn, stmts: make(map[string]*sql.Stmt)}
	for _, text := range []string{"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"} {
		if c.stmts[text], err = conn.PrepareContext(ctx, text); err != nil {
			break
		}
	}
	for name, text := range s.texts {
		if err == nil {
			c.stmts[name], err = conn.PrepareContext(ctx, text)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("baseline: %w", err), conn.Close())
	}
	c.update = c.do
	c.writer = (&lanes[liteCall, struct{}]{serve: c.serve}).start(1)
	return c, nil
}

// Close waits for the writer. The file stays open.
func (c *SQLiteCoalesced) Close() {
	c.writer.close()
	_ = c.conn.Close()
}

// serve runs all calls in one transaction. A refusal writes nothing and affects only
// its caller; any other error ends the transaction for all.
func (c *SQLiteCoalesced) serve(ctx context.Context, calls []*call[liteCall, struct{}]) error {
	if _, err := c.stmts["BEGIN IMMEDIATE"].ExecContext(ctx); err != nil {
		return err
	}
	stmt := func(name string) *sql.Stmt { return c.stmts[name] }
	for _, k := range calls {
		if k.err = k.args(ctx, stmt); k.err != nil && !errors.Is(k.err, ErrRefused) {
			_, undo := c.stmts["ROLLBACK"].ExecContext(ctx)
			return errors.Join(k.err, undo)
		}
	}
	_, err := c.stmts["COMMIT"].ExecContext(ctx)
	return err
}

func (c *SQLiteCoalesced) do(ctx context.Context, f liteCall) error {
	_, err := c.writer.do(ctx, f)
	return err
}

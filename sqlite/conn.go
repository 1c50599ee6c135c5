package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// conn is one open transaction: the store's own, or a joined one of the user's.
type conn struct {
	store  *adapter
	tx     *sql.Tx
	joined bool
	// failed is the first error of a command in our own transaction. Its script may have stopped
	// half-way, so the transaction must not commit, even if the closure ignores the error.
	failed error
	// exposed is set when the user has the transaction too, through Raw.
	exposed bool
	// revisions caches the registry revisions that this transaction has read.
	revisions map[store.Partition]int64
	// did is the row that the "do" of a script returned, if wants is set.
	did   []any
	wants bool
	// ended is set when the transaction is over: the statements belong to the connection, which
	// then serves another caller.
	ended atomic.Bool
}

var _ store.Conn = (*conn)(nil)

// Run runs a command inside the transaction. The caller's context is checked before the command and
// is not passed to the driver: after an interrupt it would be unknown which statements of a script
// have run.
func (c *conn) Run(ctx context.Context, cmd store.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.ended.Load() {
		return c.store.fault(sql.ErrTxDone)
	}
	if c.failed != nil {
		return c.failed
	}
	if c.joined {
		if err := c.store.look(ctx, c.tx); err != nil {
			return err
		}
		err, _ := c.guarded(ctx, cmd)
		return err
	}
	if c.failed = c.intact(ctx); c.failed != nil {
		return c.failed
	}
	err := c.run(ctx, cmd)
	if cmd.Decl().Name == store.RaiseVerb {
		c.revisions = nil
	}
	if errors.Is(err, errStale) { // before anything was written
		cmd.Refuse()
		return nil
	}
	if err != nil && cmd.Decl().Lane != store.Read {
		c.failed = err
		_ = c.tx.Rollback() // later statements of the closure must not be committed
	}
	return err
}

// expose returns the transaction for the user's own statements.
func (c *conn) expose() *sql.Tx {
	c.exposed = true
	return c.tx
}

func (c *conn) end() { c.ended.Store(true) }

// Exposed reports whether the user has had direct access to the transaction.
func (c *conn) Exposed() bool { return c.exposed }

// intact fails if an exposed transaction has been lost. Some errors of the user's statements, such
// as a full disk, make SQLite roll everything back, and later statements would then be committed
// one by one. A BEGIN detects that: inside a transaction it fails without any effect.
func (c *conn) intact(ctx context.Context) error {
	if !c.exposed {
		return nil
	}
	_, err := c.tx.ExecContext(context.WithoutCancel(ctx), "BEGIN")
	if errors.Is(err, sql.ErrTxDone) { // the user has ended it
		return c.store.fault(err)
	}
	if err != nil {
		return nil
	}
	_ = c.tx.Rollback()
	return fault.New(fault.Unavailable, "an earlier statement of this transaction failed, and SQLite rolled the transaction back: begin a new transaction")
}

// guarded runs a command in a savepoint, so that a failure in the middle of its script leaves the
// transaction unchanged. It reports whether the transaction was lost: then there is no savepoint to
// go back to.
func (c *conn) guarded(ctx context.Context, cmd store.Command) (err error, lost bool) {
	ctx = context.WithoutCancel(ctx)
	if _, err := c.tx.ExecContext(ctx, "SAVEPOINT holdfast"); err != nil {
		return c.store.fault(err), true
	}
	err = c.run(ctx, cmd)
	if errors.Is(err, errStale) {
		cmd.Refuse()
		err = nil
	}
	if err != nil {
		if _, undo := c.tx.ExecContext(ctx, "ROLLBACK TO holdfast"); undo != nil {
			return err, true
		}
	}
	if _, end := c.tx.ExecContext(ctx, "RELEASE holdfast"); end != nil {
		return errors.Join(err, c.store.fault(end)), true
	}
	return err, false
}

// run runs a command, or the commands of a pair.
func (c *conn) run(ctx context.Context, cmd store.Command) error {
	if p, ok := cmd.(*store.Pair); ok {
		return p.Run(func(cmd store.Command) error { return c.runScript(ctx, cmd) })
	}
	return c.runScript(ctx, cmd)
}

// runScript runs the statements of a command's script.
func (c *conn) runScript(ctx context.Context, cmd store.Command) error {
	sc := c.store.scripts[cmd.Decl().Name]
	if sc == nil {
		return fault.New(fault.Internal, "verb %s has no SQL", cmd.Decl().Name)
	}
	ctx = context.WithoutCancel(ctx)
	cmd.Reset()
	var args store.Args
	cmd.Bind(&args)
	values, children := native(args.Values(0)), args.Children(0)
	if children != nil {
		values = append(values, &childList{rows: children})
	}
	if err := c.checkRevision(ctx, cmd); err != nil {
		return err
	}
	if sc.reads {
		_, err := c.query(ctx, &sc.do, values, cmd, true)
		return err
	}
	if sc.fast != nil && !c.store.plain {
		if won, err := c.decide(ctx, sc.fast, values, children, cmd); won || err != nil {
			return err
		}
	}
	if won, err := c.decide(ctx, sc, values, children, cmd); won || err != nil {
		return err
	}
	return c.lost(ctx, sc, values, cmd)
}

// decide runs the "do" of a script and, if the command won (see [script]), the statements after it.
func (c *conn) decide(ctx context.Context, sc *script, values []any, children [][]any, cmd store.Command) (won bool, err error) {
	c.wants = sc.did
	n, err := c.change(ctx, &sc.do, values, onlyIf(cmd, sc.answer == &sc.do))
	c.wants = false
	if err != nil || n == 0 {
		return false, err
	}
	if err := c.won(ctx, sc, values, children, cmd); err != nil {
		return true, err
	}
	return true, c.writeDueNotices(ctx, cmd)
}

// won runs the statements after the "do" of a command that won.
func (c *conn) won(ctx context.Context, sc *script, values []any, children [][]any, cmd store.Command) error {
	for i := range sc.won {
		st := &sc.won[i]
		rows := [][]any{nil}
		if st.each {
			rows = children
		}
		for _, child := range rows {
			all := append(values[:len(values):len(values)], native(child)...)
			n, err := c.change(ctx, st, all, onlyIf(cmd, sc.answer == st))
			if err == nil && n != 1 && !st.any {
				err = fault.New(fault.Internal, "%s must change exactly one row, but changed %d", sc.name, n)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// lost runs the "else" of a command that lost.
func (c *conn) lost(ctx context.Context, sc *script, values []any, cmd store.Command) error {
	for i := range sc.lost {
		n, err := c.query(ctx, &sc.lost[i], values, cmd, false)
		if err == nil && n != 1 {
			err = fault.New(fault.Internal, "%s: section \"else\" must return exactly one row, but returned %d", sc.name, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// change runs a statement that writes and returns the number of changed rows.
func (c *conn) change(ctx context.Context, st *statement, values []any, cmd store.Command) (int, error) {
	if st.rows {
		return c.query(ctx, st, values, cmd, true)
	}
	res, err := c.exec(ctx, st, values)
	if err != nil {
		return 0, c.store.fault(err)
	}
	n, err := res.RowsAffected()
	return int(n), c.store.fault(err)
}

// query runs a statement, passes its rows to the command, if there is one, and returns their
// number.
func (c *conn) query(ctx context.Context, st *statement, values []any, cmd store.Command, applied bool) (int, error) {
	rows, err := c.rows(ctx, st, values)
	if err != nil {
		return 0, c.store.fault(err)
	}
	var did *[]any
	if c.wants {
		did = &c.did
	}
	n, err := scanAll(rows, cmd, applied, did)
	return n, c.store.fault(err)
}

func (c *conn) exec(ctx context.Context, st *statement, values []any) (sql.Result, error) {
	p, err := c.prepared(ctx, st)
	if err != nil {
		return nil, err
	}
	if p != nil {
		return p.ExecContext(ctx, st.args(values, c.did, &c.store.wall)...)
	}
	return c.tx.ExecContext(ctx, st.text, st.args(values, c.did, &c.store.wall)...)
}

func (c *conn) rows(ctx context.Context, st *statement, values []any) (*sql.Rows, error) {
	p, err := c.prepared(ctx, st)
	if err != nil {
		return nil, err
	}
	if p != nil {
		return p.QueryContext(ctx, st.args(values, c.did, &c.store.wall)...)
	}
	return c.tx.QueryContext(ctx, st.text, st.args(values, c.did, &c.store.wall)...)
}

// prepared returns the prepared form of a statement. A joined transaction may be of another pool,
// where ours does not exist.
func (c *conn) prepared(ctx context.Context, st *statement) (*sql.Stmt, error) {
	if c.joined {
		return nil, nil
	}
	p, err := c.store.writing(ctx, st.text)
	if err != nil || c.store.link != nil {
		return p, err
	}
	return c.tx.StmtContext(ctx, p), nil
}

func onlyIf(cmd store.Command, yes bool) store.Command {
	if yes {
		return cmd
	}
	return nil
}

// scanAll reads all rows: SQLite finishes a statement only at the end. It passes them to the
// command, if there is one, and leaves the last row in did, if requested. A command that reads may
// stop early.
func scanAll(rows *sql.Rows, cmd store.Command, applied bool, did *[]any) (n int, err error) {
	defer rows.Close()
	for rows.Next() {
		n++
		if cmd != nil {
			if err := cmd.Scan(row{rows, applied}); errors.Is(err, store.ErrEnough) {
				return n, nil
			} else if err != nil {
				return n, fmt.Errorf("scan %s: %w", cmd.Decl().Name, err)
			}
		}
		if did != nil {
			if *did, err = values(rows); err != nil {
				return n, err
			}
		}
	}
	return n, rows.Err()
}

// values returns the columns of the current row.
func values(rows *sql.Rows) ([]any, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	all := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range all {
		into[i] = &all[i]
	}
	return all, rows.Scan(into...)
}

// row is a [store.Row]. SQLite has no type for a time: it is stored as milliseconds since 1970.
type row struct {
	rows    *sql.Rows
	applied bool
}

func (r row) Applied() bool { return r.applied }

func (r row) Scan(dest ...any) error {
	into := make([]any, len(dest))
	for i, d := range dest {
		switch d := d.(type) {
		case *time.Time:
			into[i] = (*millis)(d)
		case *[]byte:
			into[i] = (*text)(d)
		default:
			into[i] = d
		}
	}
	return r.rows.Scan(into...)
}

// text takes over the copy that the driver has made: database/sql would copy it again.
type text []byte

// Scan implements [sql.Scanner].
func (t *text) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*t = nil
	case string:
		*t = unsafe.Slice(unsafe.StringData(v), len(v)) // the copy has no other owner
	case []byte:
		*t = bytes.Clone(v)
	default:
		return fmt.Errorf("a text column has a value of type %T", v)
	}
	return nil
}

type millis time.Time

// Scan implements [sql.Scanner].
func (m *millis) Scan(v any) error {
	ms, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time column has a value of type %T", v)
	}
	*m = millis(time.UnixMilli(ms).UTC())
	return nil
}

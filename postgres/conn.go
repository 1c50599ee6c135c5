package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// verb is the SQL of one verb.
type verb struct {
	text string // over arrays; one row per member, refused ones included
	fast string // scalar; applies or returns no row; may be empty
	// group is the form of text that never waits; a member that would have to wait runs alone.
	group string
	// unmarked and groupUnmarked are the same forms for members without due notices.
	unmarked, groupUnmarked string
}

// of returns the text for these members.
func (v verb) of(group bool, members []store.Command) string {
	marked := slices.ContainsFunc(members, func(c store.Command) bool {
		_, marks, _ := c.Known()
		return marks != ""
	})
	switch {
	case group && marked:
		return v.group
	case group:
		return v.groupUnmarked
	case marked:
		return v.text
	}
	return v.unmarked
}

// conn is one open transaction: the store's own, or the user's.
type conn struct {
	store  *adapter
	tx     pgx.Tx
	joined bool
	// exposed is set when the user has the transaction too, through Raw.
	exposed bool
	// failed is the error of the statement that failed our own transaction. It decides whether the
	// transaction is run again; the errors of later statements do not.
	failed error
}

var _ store.Conn = (*conn)(nil)

// Run runs a command inside the transaction. Nothing is committed yet, so no error leaves
// its outcome unknown.
func (c *conn) Run(ctx context.Context, cmd store.Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.failed != nil {
		return c.failed
	}
	if c.joined {
		if err := c.store.look(ctx, c.tx.Conn()); err != nil {
			return mapError(err)
		}
	}
	err := mapError(c.call(ctx, func(ctx context.Context) error {
		err := c.store.runIn(ctx, c.tx, cmd)
		if err == nil && c.joined {
			err = c.store.notify(ctx, c.tx, cmd.Wakes())
		}
		return err
	}))
	if err != nil && !c.joined && !c.exposed && c.tx.Conn().PgConn().TxStatus() == 'E' {
		c.failed = err
	}
	return err
}

// call runs one database call in the transaction, within the call timeout. A joined transaction has
// the user's limits: its session may wait longer for a lock, and must not be broken by us.
func (c *conn) call(ctx context.Context, call func(context.Context) error) error {
	if c.joined {
		return call(ctx)
	}
	return c.store.call(ctx, c.tx.Conn(), call)
}

// Exposed reports whether the user has had direct access to the transaction.
func (c *conn) Exposed() bool { return c.exposed }

// run runs a command by the form that fits: a read by its one statement, a write by the fast form
// if there is one, and by the general form if the fast form applies nothing.
func (s *adapter) run(ctx context.Context, q querier, c store.Command) error {
	v, ok := s.verbs[c.Decl().Name]
	if !ok {
		return fault.New(fault.Internal, "verb %s has no SQL", c.Decl().Name)
	}
	c.Reset()
	var args store.Args
	c.Bind(&args)
	if c.Decl().Lane != store.Write {
		rows, err := q.Query(ctx, v.text, args.Values(0)...)
		if err != nil {
			return err
		}
		_, err = scanRows(rows, c)
		return err
	}
	if _, marks, _ := c.Known(); v.fast != "" && marks == "" && !s.plain {
		if won, err := s.runFast(ctx, q, v, c, &args); won || err != nil {
			return err
		}
	}
	return s.runAll(ctx, q, v, []store.Command{c}, &args)
}

func (s *adapter) runFast(ctx context.Context, q querier, v verb, c store.Command, args *store.Args) (won bool, err error) {
	rows, err := q.Query(ctx, v.fast, args.Scalars()...)
	if err != nil {
		return false, err
	}
	n, err := scanRows(rows, c)
	return n > 0, err
}

// runAll runs the general form over all members. A member that tried to insert a row which another
// transaction had just inserted sees neither row, because the statement's snapshot is older: it is
// retried once.
func (s *adapter) runAll(ctx context.Context, q querier, v verb, members []store.Command, args *store.Args) error {
	rows, err := q.Query(ctx, v.of(false, members), args.Arrays()...)
	if err != nil {
		return err
	}
	retry, err := scanMembers(rows, members)
	if err != nil || len(retry) == 0 {
		return err
	}
	var more store.Args
	for _, c := range retry {
		c.Reset()
		c.Bind(&more)
	}
	rows, err = q.Query(ctx, v.of(false, retry), more.Arrays()...)
	if err != nil {
		return err
	}
	if retry, err = scanMembers(rows, retry); err == nil && len(retry) > 0 {
		err = fault.New(fault.Unavailable, "%s lost its row twice to concurrent callers that rolled back: try again", retry[0].Decl().Name).AsRetryable()
	}
	return err
}

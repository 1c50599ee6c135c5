package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// pairRounds configures how groups of pairs are served: in one transaction, in which the probes, the
// first commands and the second commands are one statement each. Its locks are those of the first
// commands, which a group does not wait for, and those of the probes on idempotency keys, which
// no other transaction waits for while it has a lock that a group needs. A pair that cannot be served at
// once is not served at all: its caller does the same in a transaction of its own.
func (s *adapter) pairRounds() store.Rounds {
	r := s.rounds()
	r.Lone = func(ctx context.Context, c store.Command) error {
		link, err := s.acquire(ctx, s.quick)
		if err != nil {
			return store.ErrUnpaired
		}
		defer link.Release()
		return s.servePairs(ctx, link, []store.Command{c})
	}
	r.Serve = func(with any, members []store.Command) []error {
		err := s.servePairs(context.Background(), with.(*pgxpool.Conn), members)
		return slices.Repeat([]error{err}, len(members))
	}
	r.Alone = func(context.Context, store.Command) error { return store.ErrUnpaired }
	// A transaction of pairs costs the same whatever their number: fewer and larger ones take less of
	// the processors.
	r.Slots = func(latency time.Duration) int { return slots(latency) / 2 }
	return r
}

// servePairs commits pairs, without those that are refused by their probe: these cost the others one
// more round trip. It returns the error of all others.
func (s *adapter) servePairs(ctx context.Context, link *pgxpool.Conn, pairs []store.Command) error {
	for len(pairs) > 0 {
		err := s.commitPairs(ctx, link, pairs)
		if !errors.Is(err, errProbed) {
			return err
		}
		if link.Conn().PgConn().TxStatus() != 'I' { // it is not rolled back: nothing more may run on this connection
			return store.ErrUnpaired
		}
		pairs = store.Probed(pairs)
	}
	return nil
}

var errProbed = errors.New("a probe was refused")

// commitPairs runs pairs in one transaction, in two round trips. After an error in the first, nothing is written.
func (s *adapter) commitPairs(ctx context.Context, link *pgxpool.Conn, pairs []store.Command) error {
	tx := &pairTx{store: s, link: link.Conn(), probes: store.Probes(pairs)}
	defer s.rollback(ctx, tx, clock.Now()) // no effect after a commit
	var seconds []store.Command
	err := s.call(ctx, tx.link, func(ctx context.Context) (err error) {
		if err = s.runFirsts(ctx, tx, pairs); err == nil {
			seconds, err = store.Seconds(pairs, func(c store.Command) error { return s.run(ctx, tx, c) })
		}
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	switch {
	case errors.Is(err, errProbed):
		return err
	case err != nil:
		return fmt.Errorf("%w: %v", store.ErrUnpaired, err)
	case len(seconds) == 0:
		return nil
	}
	return lost(s.call(ctx, tx.link, func(ctx context.Context) error { return tx.commit(ctx, seconds) }))
}

func (s *adapter) runFirsts(ctx context.Context, tx *pairTx, pairs []store.Command) error {
	if len(pairs) == 1 {
		return s.run(ctx, tx, pairs[0])
	}
	left, err := s.serveAll(ctx, tx, pairs)
	for c := range left {
		c.(*store.Pair).Leave()
	}
	return err
}

// runIn runs a command, or the commands of a pair, in a transaction that has begun.
func (s *adapter) runIn(ctx context.Context, q querier, c store.Command) error {
	if p, ok := c.(*store.Pair); ok {
		return p.Run(func(c store.Command) error { return s.run(ctx, q, c) })
	}
	return s.run(ctx, q, c)
}

// together returns the statement of probes or of second commands, and its arguments.
func (s *adapter) together(all []store.Command) (text string, args []any) {
	var bound store.Args
	for _, c := range all {
		c.Reset()
		c.Bind(&bound)
	}
	return s.verbs[all[0].Decl().Name].text, bound.Arrays()
}

// transaction is an open transaction that can be rolled back.
type transaction interface {
	Conn() *pgx.Conn
	Rollback(context.Context) error
}

// pairTx is a transaction of pairs. It begins, and runs the probes, in the round trip of its first
// statement, and commits in that of the second commands.
type pairTx struct {
	store  *adapter
	link   *pgx.Conn
	probes []store.Command
	begun  bool
}

func (o *pairTx) Conn() *pgx.Conn { return o.link }

// Query runs a statement. The first one returns errProbed if a probe is refused.
func (o *pairTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if o.begun {
		return o.link.Query(ctx, sql, args...)
	}
	o.begun = true
	var b pgx.Batch
	b.Queue("begin isolation level read committed read write")
	text, bound := o.store.together(o.probes)
	b.Queue(text, bound...)
	b.Queue(sql, args...)
	results := o.link.SendBatch(ctx, &b)
	if err := o.probe(results); err != nil {
		_ = results.Close()
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return firstRows{rows, results}, nil
}

func (o *pairTx) probe(results pgx.BatchResults) error {
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err == nil {
		_, err = scanMembers(rows, o.probes)
	}
	if err == nil && slices.ContainsFunc(o.probes, func(c store.Command) bool { return !c.Applied() }) {
		err = errProbed
	}
	return err
}

// commit runs the second commands and commits. They are applied or fail: after an error the server
// skips the COMMIT.
func (o *pairTx) commit(ctx context.Context, seconds []store.Command) (err error) {
	var b pgx.Batch
	text, bound := o.store.together(seconds)
	b.Queue(text, bound...)
	b.Queue("commit")
	results := o.link.SendBatch(ctx, &b)
	defer func() { err = cmp.Or(err, results.Close()) }()
	rows, err := results.Query()
	if err == nil {
		_, err = scanMembers(rows, seconds)
	}
	if err != nil {
		return err
	}
	tag, err := results.Exec()
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	return err
}

// Rollback rolls the transaction back, unless it has ended or not begun.
func (o *pairTx) Rollback(ctx context.Context) error {
	if o.link.IsClosed() || o.link.PgConn().TxStatus() == 'I' {
		return nil
	}
	_, err := o.link.Exec(ctx, "rollback")
	return err
}

// firstRows are the rows of the first statement. They end with the round trip.
type firstRows struct {
	pgx.Rows
	batch pgx.BatchResults
}

func (r firstRows) Close() {
	r.Rows.Close()
	_ = r.batch.Close()
}

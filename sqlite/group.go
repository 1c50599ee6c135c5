package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// mostMembers limits how long a group holds the write lock.
const mostMembers = 256

// rounds configures how this store serves groups: all commands that wait for the writing connection
// share one transaction, and so one flush of the disk. The scripts run one after the other, so
// members may share rows.
func (s *adapter) rounds() store.Rounds {
	return store.Rounds{
		Queue: func(store.Command) string { return "writer" },
		Fits:  func() func(store.Command) bool { return func(store.Command) bool { return true } },
		Most:  mostMembers,
		Lone: func(ctx context.Context, c store.Command) error {
			return orAlone(s.updateOnce(ctx, func(ctx context.Context, tx store.Conn) error { return tx.Run(ctx, c) }))
		},
		Acquire: func() (any, func(), error) {
			link, release, err := s.writer(context.Background())
			return link, release, err
		},
		Serve: func(with any, members []store.Command) []error { return s.serve(with.(*sql.Conn), members) },
		Alone: s.alone,
		Slots: func(time.Duration) int { return 1 },
	}
}

// alone runs a command in a transaction of its own, and waits for the lock.
func (s *adapter) alone(ctx context.Context, c store.Command) error {
	return s.Update(ctx, func(ctx context.Context, tx store.Conn) error { return tx.Run(ctx, c) })
}

// orAlone maps a retryable error to ErrAlone, so that the caller runs alone.
func orAlone(err error) error {
	if fault.IsRetryable(err) {
		return store.ErrAlone
	}
	return err
}

// serve runs a round in one transaction. The first attempt has no savepoints, because failures are
// rare: a refusal is not a failure. After a failure nothing of that attempt is committed, and each
// member gets a savepoint.
func (s *adapter) serve(link *sql.Conn, members []store.Command) []error {
	errs := make([]error, len(members))
	err := s.updateOn(context.Background(), link, func(ctx context.Context, tx store.Conn) error {
		for _, c := range members {
			if err := tx.Run(ctx, c); err != nil {
				return errors.Join(errMember, err)
			}
		}
		return nil
	})
	if errors.Is(err, errMember) {
		return s.serveApart(link, members)
	}
	return fill(errs, orAlone(err))
}

// errMember marks an error of one member, in contrast to one of the transaction.
var errMember = errors.New("a member of the group failed")

// serveApart runs a round with a savepoint for each member. Some errors, such as a full disk, end
// the whole transaction and with it the savepoint: later statements would be committed one by one.
// So a savepoint that cannot be rolled back to ends the round, and every member runs alone.
func (s *adapter) serveApart(link *sql.Conn, members []store.Command) []error {
	errs := make([]error, len(members))
	err := s.updateOn(context.Background(), link, func(ctx context.Context, tx store.Conn) error {
		c := tx.(*conn)
		for i, m := range members {
			var lost bool
			if errs[i], lost = c.guarded(ctx, m); lost {
				return store.ErrAlone
			}
		}
		return nil
	})
	if err != nil {
		return fill(errs, orAlone(err))
	}
	return errs
}

func fill(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

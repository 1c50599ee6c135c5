package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// # A connection that dies silently
//
// A server, a pooler or a network can take what is sent and answer nothing, for
// ever, with no error. Two things end that, on the client's side:
//
//   - The socket ([dialer]): keepalive and TCP_USER_TIMEOUT break a connection
//     whose other end is gone. They hold for every statement, a user's own too.
//   - The call ([adapter.call]): a statement of Holdfast's that is not answered
//     within the call timeout breaks its connection. That is for an end that
//     still acknowledges bytes.
//
// A read is then asked again on another connection. A write, or COMMIT, has an
// unknown outcome and is resolved like any other ([store.Runner]). What the server
// still has of a broken connection, a statement that runs or a transaction that
// waits for its next one, is terminated through a new connection: otherwise its
// locks would stay until idle_in_transaction_session_timeout.
//
// A transaction as a whole has no deadline, nor have a user's own statements in
// it: those have the context that the user gives them. Nor has what runs in a joined
// transaction: the session is the user's, with a lock_timeout of theirs or none.
//
// Rejected: a deadline on each read of the socket (a statement of the user's may
// take as long as it likes); asking pg_stat_activity whether the statement still
// runs, and waiting on if it does (it needs a second connection for every slow
// statement, and a pooler hides which session it is).

const (
	callTimeout = 8 * time.Second // the default; more than the lock_timeout of a session
	// migrateTimeout is for a statement of a migration, which may rewrite a table.
	migrateTimeout = time.Hour
)

// errSilent is the cause of the end of a call's context, and is in the call's error.
var errSilent = errors.New("the database did not answer in time")

// bounded runs one call of the database, for d at the most.
func (s *adapter) bounded(ctx context.Context, d time.Duration, call func(context.Context) error) error {
	ctx, cancel := s.alarm.Within(ctx, d, errSilent)
	defer cancel()
	err := call(ctx)
	if err != nil && context.Cause(ctx) == errSilent { //nolint:errorlint // it is this very one
		var known *fault.Error
		if !errors.As(err, &known) {
			err = fmt.Errorf("%w: %v", errSilent, err) // its text only: the caller's context has not ended
		}
	}
	return err
}

// call runs one call of the database on a connection, within the call timeout.
func (s *adapter) call(ctx context.Context, conn *pgx.Conn, call func(context.Context) error) error {
	return s.callFor(ctx, s.callTimeout, conn, call)
}

func (s *adapter) callFor(ctx context.Context, d time.Duration, conn *pgx.Conn, call func(context.Context) error) error {
	err := s.bounded(ctx, d, call)
	if errors.Is(err, errSilent) {
		s.log.Warn("database connection dropped: no answer", "after", d)
		s.terminate(conn.PgConn().PID(), d)
	}
	return err
}

// acquire returns a connection of a pool.
func (s *adapter) acquire(ctx context.Context, pool *pgxpool.Pool) (link *pgxpool.Conn, err error) {
	err = s.bounded(ctx, s.callTimeout, func(ctx context.Context) (err error) {
		link, err = pool.Acquire(ctx)
		return err
	})
	return link, s.fault(err)
}

// terminate ends the server's side of a connection that was dropped, and that was
// there for so long at the least: a process that has the same id by now is left
// alone. Behind a pooler the id says nothing.
func (s *adapter) terminate(pid uint32, age time.Duration) {
	if s.pooled {
		return
	}
	s.orphans.Lock()
	defer s.orphans.Unlock()
	s.orphans.all = append(s.orphans.all, orphan{int32(pid), clock.Now().Add(-age)})
	if len(s.orphans.all) == 1 {
		s.endings.Go(s.terminateAll)
	}
}

// orphan is a session of the server's whose client is gone.
type orphan struct {
	pid   int32
	since time.Time // it was there then
}

// terminateAll ends the orphans that there are, through a connection of its own:
// those of the pools may be dead too.
func (s *adapter) terminateAll() {
	for tries := 1; ; tries++ {
		s.orphans.Lock()
		all := slices.Clone(s.orphans.all)
		s.orphans.Unlock()
		err := s.bounded(context.Background(), s.callTimeout, func(ctx context.Context) error { return s.terminateThrough(ctx, all) })
		if err != nil && tries < 3 {
			continue
		}
		if err != nil {
			s.log.Warn("dropped connections were not ended on the server: their locks stay for up to idle_in_transaction_session_timeout", "connections", len(all), "error", err)
		}
		s.orphans.Lock()
		s.orphans.all = slices.Clone(s.orphans.all[len(all):])
		done := len(s.orphans.all) == 0
		s.orphans.Unlock()
		if done {
			return
		}
		tries = 0
	}
}

func (s *adapter) terminateThrough(ctx context.Context, all []orphan) error {
	conn, err := pgx.ConnectConfig(ctx, s.vital.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, o := range all {
		_, err := conn.Exec(ctx, `SELECT pg_catalog.pg_terminate_backend(a.pid) FROM pg_catalog.pg_stat_activity AS a
			WHERE a.pid = $1 AND a.usename = current_user AND a.backend_start < pg_catalog.clock_timestamp() - $2::interval`, o.pid, clock.Since(o.since))
		if err != nil {
			return err
		}
	}
	return nil
}

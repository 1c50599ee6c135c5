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
// A server, a pooler or a network can accept bytes and never respond, without an error. Two limits
// on the client's side end that:
//
//   - The socket ([dialer]): keepalive and TCP_USER_TIMEOUT break a connection
//     whose other end is gone. They apply to every statement, a user's own too.
//   - The call ([adapter.call]): a statement of Holdfast's without a response
//     within the call timeout breaks its connection. That covers an other end
//     that still acknowledges bytes.
//
// A read is then repeated on another connection. A write, or COMMIT, has an unknown outcome and is
// resolved like any other ([store.Runner]). The server may still have a running statement or an
// idle transaction of a broken connection; it is terminated through a new connection, because its
// locks would otherwise stay until idle_in_transaction_session_timeout.
//
// A transaction as a whole has no deadline, and neither have a user's own statements in it: those
// have the context that the user passes. Statements in a joined transaction have none either: the
// session is the user's, with its own lock_timeout or none.
//
// Rejected: a deadline on each read of the socket (a user's statement may take any time); asking
// pg_stat_activity whether the statement still runs, and waiting longer if it does (it needs a
// second connection for every slow statement, and a pooler hides the session).

const (
	callTimeout = 8 * time.Second // the default; longer than the lock_timeout of a session
	// migrateTimeout limits a statement of a migration, which may rewrite a table.
	migrateTimeout = time.Hour
)

// errSilent is the cause of a call's timeout, and is wrapped in the call's error.
var errSilent = errors.New("the database did not respond in time")

// bounded runs one database call with a time limit of d.
func (s *adapter) bounded(ctx context.Context, d time.Duration, call func(context.Context) error) error {
	ctx, cancel := s.alarm.Within(ctx, d, errSilent)
	defer cancel()
	err := call(ctx)
	if err != nil && context.Cause(ctx) == errSilent { //nolint:errorlint // identity is intended
		var known *fault.Error
		if !errors.As(err, &known) {
			err = fmt.Errorf("%w: %v", errSilent, err) // only the text: the caller's context has not ended
		}
	}
	return err
}

// call runs one database call on a connection, within the call timeout.
func (s *adapter) call(ctx context.Context, conn *pgx.Conn, call func(context.Context) error) error {
	return s.callFor(ctx, s.callTimeout, conn, call)
}

func (s *adapter) callFor(ctx context.Context, d time.Duration, conn *pgx.Conn, call func(context.Context) error) error {
	err := s.bounded(ctx, d, call)
	if errors.Is(err, errSilent) {
		s.log.Warn("database connection dropped because the database did not respond", "after", d)
		s.terminate(conn.PgConn().PID(), d)
	}
	return err
}

// acquire returns a connection of a pool, of which it knows that the database is the one that was opened.
func (s *adapter) acquire(ctx context.Context, pool *pgxpool.Pool) (link *pgxpool.Conn, err error) {
	err = s.bounded(ctx, s.callTimeout, func(ctx context.Context) (err error) {
		link, err = pool.Acquire(ctx)
		return err
	})
	if err == nil {
		if err = s.look(ctx, link.Conn()); err != nil {
			link.Release()
			link = nil
		}
	}
	return link, s.fault(err)
}

// terminate ends the server's side of a dropped connection that is at least as old as age: a newer
// process with the same id is not touched. Behind a pooler the process id means nothing.
func (s *adapter) terminate(pid uint32, age time.Duration) {
	if s.pooled {
		return
	}
	s.orphans.Lock()
	defer s.orphans.Unlock()
	s.orphans.all = append(s.orphans.all, orphan{int32(pid), clock.Now().Add(-age), clock.Now()})
	if len(s.orphans.all) == 1 {
		s.endings.Go(s.terminateAll)
	}
}

// firstPause is the pause after the first failed termination. leastTermination is the time that a termination has at least:
// with a short call timeout, each attempt would begin anew just before a busy server has accepted the connection.
// orphanLimit is how long a termination is retried: by then, the server itself has ended the orphan's transaction
// (idle_in_transaction_session_timeout).
const (
	firstPause       = 50 * time.Millisecond
	leastTermination = 5 * time.Second
	orphanLimit      = time.Minute
)

// orphan is a server session whose client is gone.
type orphan struct {
	pid   int32
	since time.Time // the session existed at this time
	at    time.Time // when its connection was dropped
}

// terminateAll ends all orphans through a connection of its own, because those of the pools may be
// dead too.
func (s *adapter) terminateAll() {
	for pause := firstPause; ; {
		s.orphans.Lock()
		all := slices.Clone(s.orphans.all)
		s.orphans.Unlock()
		err := s.bounded(context.Background(), max(s.callTimeout, leastTermination), func(ctx context.Context) error { return s.terminateThrough(ctx, all) })
		if err != nil && clock.Since(all[0].at) < orphanLimit && clock.Wait(s.closing, pause) == nil {
			pause = min(2*pause, time.Second) // a server that is busy with new connections may take a while
			continue
		}
		if err != nil {
			s.log.Warn("failed to terminate dropped connections on the server: their locks may be held until idle_in_transaction_session_timeout expires", "count", len(all), "error", err)
		}
		s.orphans.Lock()
		s.orphans.all = slices.Clone(s.orphans.all[len(all):])
		done := len(s.orphans.all) == 0
		s.orphans.Unlock()
		if done {
			return
		}
		pause = firstPause
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

package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/store"
)

var _ store.Signals = (*adapter)(nil)

// longest is the longest payload of a NOTIFY that we send; PostgreSQL refuses 8,000 bytes.
const longest = 7000

func (s *adapter) channel() string { return "holdfast_" + s.schema }

// Signal notifies the other nodes of work, by a NOTIFY in a statement of its own. Topics that do
// not fit into one payload are sent in several.
func (s *adapter) Signal(ctx context.Context, topics []string) error {
	for len(topics) > 0 {
		payload, n := pack(topics)
		if n == 0 { // a single topic that is too long: it is left to polling
			topics = topics[1:]
			continue
		}
		err := s.bounded(ctx, s.callTimeout, func(ctx context.Context) error {
			_, err := s.vital.Exec(ctx, "SELECT pg_catalog.pg_notify($1, $2)", s.channel(), payload)
			return err
		})
		if err != nil {
			return s.fault(err)
		}
		topics = topics[n:]
	}
	return nil
}

// pack returns a payload with as many topics as fit, and their number.
func pack(topics []string) (payload string, n int) {
	for n = len(topics); n > 0; n /= 2 {
		list, err := json.Marshal(topics[:n])
		if err == nil && len(list) <= longest {
			return string(list), n
		}
	}
	return "", 0
}

// notify wakes the nodes when a joined transaction commits: the engine does not see that commit. This is the only
// NOTIFY inside of a transaction that writes.
func (s *adapter) notify(ctx context.Context, tx pgx.Tx, topics []string) error {
	if len(topics) == 0 {
		return nil
	}
	payload, n := pack(topics)
	if n < len(topics) {
		return nil // they are found by polling
	}
	_, err := tx.Exec(ctx, "SELECT pg_catalog.pg_notify($1, $2)", s.channel(), payload)
	return err
}

// Listen calls f with the topics that other nodes signal. It has a connection of its own while it
// listens. Behind a pooler in transaction mode it receives nothing, and the nodes poll.
func (s *adapter) Listen(ctx context.Context, f func(topics []string)) error {
	if s.pooled {
		<-ctx.Done()
		return ctx.Err()
	}
	link, err := s.acquire(ctx, s.pool)
	if err != nil {
		return err
	}
	conn := link.Hijack() // it must not return to the pool while it listens
	defer func() { _ = s.bounded(context.WithoutCancel(ctx), s.callTimeout, conn.Close) }()
	err = s.call(ctx, conn, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, `LISTEN "`+s.channel()+`"`)
		return err
	})
	for err == nil {
		err = s.hear(ctx, conn, f)
	}
	return s.fault(err)
}

// hear waits for one notification. If none arrives for a while, it pings the connection: a
// connection that died silently delivers none either.
func (s *adapter) hear(ctx context.Context, conn *pgx.Conn, f func(topics []string)) error {
	wait, cancel := s.alarm.Within(ctx, s.callTimeout/2, errSilent)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err != nil && context.Cause(wait) == errSilent && !conn.IsClosed() { //nolint:errorlint // identity is intended
		return s.callFor(ctx, s.callTimeout/2, conn, conn.Ping)
	}
	if err != nil {
		return err
	}
	var topics []string
	if json.Unmarshal([]byte(n.Payload), &topics) == nil {
		f(topics)
	}
	return nil
}

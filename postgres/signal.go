package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/store"
)

var _ store.Signals = (*adapter)(nil)

// longest is how long a payload of NOTIFY may be; PostgreSQL refuses 8,000.
const longest = 7000

func (s *adapter) channel() string { return "holdfast_" + s.schema }

// Signal tells the other nodes that there is something to do, by a NOTIFY in a
// statement of its own. More topics than a payload holds are sent in several.
func (s *adapter) Signal(ctx context.Context, topics []string) error {
	for len(topics) > 0 {
		payload, n := pack(topics)
		if n == 0 { // one topic that is too long: it is left to polling
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

// pack returns as many topics as a payload holds.
func pack(topics []string) (payload string, n int) {
	for n = len(topics); n > 0; n /= 2 {
		list, err := json.Marshal(topics[:n])
		if err == nil && len(list) <= longest {
			return string(list), n
		}
	}
	return "", 0
}

// notify wakes others with the commit of a transaction that the engine will not
// see: here alone NOTIFY is part of a transaction that writes.
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

// Listen calls f with what other nodes signal. It has a connection of its own,
// for as long as it listens. Behind a pooler in transaction mode nothing is
// heard, and the nodes poll.
func (s *adapter) Listen(ctx context.Context, f func(topics []string)) error {
	if s.pooled {
		<-ctx.Done()
		return ctx.Err()
	}
	link, err := s.acquire(ctx, s.pool)
	if err != nil {
		return err
	}
	conn := link.Hijack() // it must not go back to the pool while it listens
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

// hear waits for one notification. Where none comes for a while, it asks whether
// the connection still lives: one that died silently has none either.
func (s *adapter) hear(ctx context.Context, conn *pgx.Conn, f func(topics []string)) error {
	wait, cancel := s.alarm.Within(ctx, s.callTimeout/2, errSilent)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	if err != nil && context.Cause(wait) == errSilent && !conn.IsClosed() { //nolint:errorlint // it is this very one
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

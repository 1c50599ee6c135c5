package baseline

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Swapper changes the state of a scope by a function of the program: it reads, decides, and
// writes if no other writer was faster; otherwise it starts again immediately.
type Swapper interface {
	Swap(ctx context.Context, kind, id string, decide func(state string) (string, error)) error
}

// Swap implements [Swapper].
func (p *Postgres) Swap(ctx context.Context, kind, id string, decide func(string) (string, error)) error {
	return swap(decide,
		func() (version int64, state string, err error) {
			err = p.pool.QueryRow(ctx, p.texts["scope"], shard, workspace, kind, id).Scan(&version, &state)
			return version, state, err
		},
		func(version int64, state string) error {
			_, err := p.number(ctx, "swap", newID(), kind, id, version, state)
			return err
		})
}

// Swap implements [Swapper].
func (s *SQLite) Swap(ctx context.Context, kind, id string, decide func(string) (string, error)) error {
	return swap(decide,
		func() (version int64, state string, err error) {
			err = s.stmts["scope"].QueryRowContext(ctx, shard, workspace, kind, id).Scan(&version, &state)
			return version, state, err
		},
		func(version int64, state string) error {
			return s.update(ctx, func(ctx context.Context, q lite) error { return q.swap(ctx, kind, id, version, state) })
		})
}

func (q lite) swap(ctx context.Context, kind, id string, version int64, state string) error {
	at := clock.Now().UnixMilli()
	if err := q("swap").QueryRowContext(ctx, shard, workspace, kind, id, version, state, at).Scan(&version); err != nil {
		return absent(err)
	}
	return q.history(ctx, "$scope/"+kind+"/"+id, version, "put", "{}", at)
}

func swap(decide func(string) (string, error), read func() (int64, string, error), write func(int64, string) error) error {
	for {
		version, state, err := read()
		if err == nil {
			state, err = decide(state)
		}
		if err == nil {
			err = write(version, state)
		}
		if !errors.Is(err, ErrRefused) {
			return err
		}
	}
}

// Swap implements [Swapper]. Only the writer writes, so it calls decide in its transaction: the
// functions of all callers run one after the other, and share a commit.
func (c *SQLiteCoalesced) Swap(ctx context.Context, kind, id string, decide func(string) (string, error)) error {
	return c.do(ctx, func(ctx context.Context, q lite) error {
		var version int64
		var state string
		err := q("scope").QueryRowContext(ctx, shard, workspace, kind, id).Scan(&version, &state)
		if err == nil {
			state, err = decide(state)
		}
		if err != nil {
			return err
		}
		return q.swap(ctx, kind, id, version, state)
	})
}

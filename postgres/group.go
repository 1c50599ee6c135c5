package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	mostMembers = 64
	mostSlots   = 8
)

// rounds configures how this store serves groups: commands of one verb on one shard share a
// statement, in which no two touch the same row unless they are commutative (Fits). Two rounds
// that run at the same time never touch the same row (Exclusive).
func (s *adapter) rounds() store.Rounds {
	return store.Rounds{
		Queue: func(c store.Command) string {
			return c.Decl().Name + "/" + strconv.Itoa(int(c.Partition().Shard))
		},
		Exclusive: true,
		Fits:      store.Apart,
		Most:      mostMembers,
		Lone:      s.single,
		Acquire: func() (any, func(), error) {
			link, err := s.acquire(context.Background(), s.quick)
			if err != nil {
				return nil, nil, err
			}
			return link, link.Release, nil
		},
		Serve: func(with any, members []store.Command) []error { return s.serve(with.(*pgxpool.Conn), members) },
		Alone: s.patiently,
		Slots: slots,
	}
}

// slots returns the number of concurrent rounds for the latency of a round. If commits are fast, the
// server's processors are the bottleneck, and few large groups use them best; if commits wait for a
// disk or a network, more groups wait at the same time.
func slots(latency time.Duration) int {
	switch {
	case latency < 8*time.Millisecond:
		return 2
	case latency < 20*time.Millisecond:
		return 4
	default:
		return mostSlots
	}
}

// single serves a caller that found a free slot. If it cannot be served at once, it
// returns ErrAlone and frees the slot for others.
func (s *adapter) single(ctx context.Context, c store.Command) error {
	link, err := s.acquire(ctx, s.quick)
	if err != nil {
		return orAlone(err)
	}
	defer link.Release()
	return s.serveOne(ctx, link, c)
}

// orAlone maps a retryable error to ErrAlone: the command then runs again outside the slots, where
// it may wait for a lock (store.Rounds.Alone).
func orAlone(err error) error {
	if fault.IsRetryable(err) {
		return store.ErrAlone
	}
	return err
}

func (s *adapter) serveOne(ctx context.Context, link *pgxpool.Conn, c store.Command) error {
	return orAlone(lost(s.call(ctx, link.Conn(), func(ctx context.Context) error { return s.run(ctx, link, c) })))
}

// serve runs a round in one statement. If the server refuses the statement, nothing of it is applied,
// and each member runs alone: the faulty one then gets its error, and the others their results. If it
// is unknown whether the statement was applied, all members get OutcomeUnknown.
func (s *adapter) serve(link *pgxpool.Conn, members []store.Command) []error {
	ctx := context.Background()
	if len(members) == 1 {
		return []error{s.serveOne(ctx, link, members[0])}
	}
	errs := make([]error, len(members))
	var retry map[store.Command]bool
	err := lost(s.call(ctx, link.Conn(), func(ctx context.Context) (err error) {
		retry, err = s.serveAll(ctx, link, members)
		return err
	}))
	if err != nil && fault.CodeOf(err) != fault.OutcomeUnknown {
		err = store.ErrAlone
	}
	for i, c := range members {
		errs[i] = err
		if retry[c] {
			errs[i] = store.ErrAlone
		}
	}
	return errs
}

// serveAll runs members in one statement and returns those that the statement left out.
func (s *adapter) serveAll(ctx context.Context, q querier, members []store.Command) (retry map[store.Command]bool, err error) {
	var args store.Args
	for _, c := range members {
		c.Reset()
		c.Bind(&args)
	}
	rows, err := q.Query(ctx, s.verbs[members[0].Decl().Name].of(true, members), args.Arrays()...)
	if err != nil {
		return nil, err
	}
	left, err := scanMembers(rows, members)
	if err != nil {
		return nil, err
	}
	retry = make(map[store.Command]bool, len(left))
	for _, c := range left {
		retry[c] = true
	}
	return retry, nil
}

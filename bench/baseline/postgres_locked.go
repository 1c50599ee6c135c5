package baseline

import "context"

// PostgresLocked appends under one lock over all appends, as a store does that
// numbers its events in the order of their commits. It is here to show what that
// costs; everything else it does as [Postgres] does.
type PostgresLocked struct{ *Postgres }

// Append adds an event to a stream at its expected version, while no other
// caller appends to any stream.
func (p PostgresLocked) Append(ctx context.Context, a Append) (n int64, err error) {
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after a commit it does nothing
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(8101979)"); err != nil {
		return 0, err
	}
	row := tx.QueryRow(ctx, p.texts[a.statement()], shard, workspace, newID(), a.Stream, a.Want, a.Name, a.Data)
	if err := refused(row.Scan(&n)); err != nil {
		return 0, err
	}
	return n, tx.Commit(ctx)
}

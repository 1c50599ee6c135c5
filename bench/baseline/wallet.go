package baseline

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// PutWallet makes a wallet, or replaces its balance, without an event.
func (p *Postgres) PutWallet(ctx context.Context, id string, balance int64) error {
	_, err := p.pool.Exec(ctx, p.texts["wallet.put"], shard, workspace, id, balance)
	return err
}

func (q lite) putWallet(ctx context.Context, id string, balance int64) error {
	_, err := q("wallet.put").ExecContext(ctx, shard, workspace, id, balance, clock.Now().UnixMilli())
	return err
}

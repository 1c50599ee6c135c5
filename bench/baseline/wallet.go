package baseline

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Purchase moves an item and, in the same transaction, money of a wallet: off
// what it has, onto what is reserved. Taking an item has both at its cost;
// settling it takes the cost off what is reserved again.
type Purchase struct {
	Move
	Wallet    string
	Off, Onto int64
}

// Take is the purchase that takes an item and reserves its cost.
func (m Move) Take(wallet string, cost int64) Purchase { return Purchase{m, wallet, cost, cost} }

// Settle is the purchase that pays for an item that was taken.
func (m Move) Settle(wallet string, cost int64) Purchase { return Purchase{m, wallet, 0, -cost} }

// PutWallet makes a wallet, or replaces its balance, without an event.
func (p *Postgres) PutWallet(ctx context.Context, id string, balance int64) error {
	_, err := p.pool.Exec(ctx, p.texts["wallet.put"], shard, workspace, id, balance)
	return err
}

// Buy moves an item and its cost, each with its event, and returns the balance.
func (p *Postgres) Buy(ctx context.Context, a Purchase) (balance int64, err error) {
	var member int64
	row := p.pool.QueryRow(ctx, p.texts["wallet.move"], []int16{shard}, []string{workspace}, []uuid.UUID{newID()}, []string{a.Lifecycle}, []string{a.ID},
		[]string{a.From}, []string{a.To}, []string{a.Event}, []string{a.Wallet}, []int64{a.Off}, []int64{a.Onto})
	err = row.Scan(&member, &balance)
	return balance, refused(err)
}

// Buy moves an item and its cost, each with its event, and returns the balance.
func (c *PostgresCoalesced) Buy(ctx context.Context, a Purchase) (int64, error) {
	return c.buys.do(ctx, a)
}

func (c *PostgresCoalesced) buyAll(ctx context.Context, calls []*call[Purchase, int64]) error {
	all, off, onto := newMembers(len(calls), 6), make([]int64, len(calls)), make([]int64, len(calls))
	for i, k := range calls {
		a := k.args
		for n, text := range []string{a.Lifecycle, a.ID, a.From, a.To, a.Event, a.Wallet} {
			all.texts[n][i] = text
		}
		off[i], onto[i] = a.Off, a.Onto
	}
	rows, err := c.pool.Query(ctx, c.texts["wallet.move"], all.shards, all.workspaces, all.ids, all.texts[0], all.texts[1],
		all.texts[2], all.texts[3], all.texts[4], all.texts[5], off, onto)
	return answer(rows, err, calls, numberColumn)
}

func (q lite) putWallet(ctx context.Context, id string, balance int64) error {
	_, err := q("wallet.put").ExecContext(ctx, shard, workspace, id, balance, clock.Now().UnixMilli())
	return err
}

// buy asks the wallet before it writes anything: in a transaction that others
// share, a refusal must leave nothing behind.
func (q lite) buy(ctx context.Context, a Purchase) (int64, error) {
	var can int
	if err := q("wallet.able").QueryRowContext(ctx, shard, workspace, a.Wallet, a.Off, a.Onto).Scan(&can); err != nil {
		return 0, absent(err)
	}
	if _, err := q.transition(ctx, a.Move); err != nil {
		return 0, err
	}
	at := clock.Now().UnixMilli()
	var version, balance, reserved int64
	err := q("wallet.move").QueryRowContext(ctx, shard, workspace, a.Wallet, a.Off, a.Onto, at).Scan(&version, &balance, &reserved)
	if err != nil {
		return 0, err
	}
	data := fmt.Sprintf(`{"balance":%d,"reserved":%d}`, balance, reserved)
	return balance, q.history(ctx, "$wallet/"+a.Wallet, version, a.Event, data, at)
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

type walletCommand struct {
	List   walletList   `cmd:"" help:"List the wallets of a workspace."`
	Put    walletPut    `cmd:"" help:"Make a wallet, or change it."`
	Show   walletShow   `cmd:"" help:"Show a wallet."`
	Credit walletCredit `cmd:"" help:"Add points to a wallet."`
	Ledger walletLedger `cmd:"" help:"Read the ledger of a wallet."`
	Audit  walletAudit  `cmd:"" help:"Add up ledgers, and hold the balances to the sums."`
}

type walletArg struct {
	ID string `arg:"" help:"The wallet."`
}

type walletList struct {
	doorFlags
	pageFlags
}

// Help is shown by kong.
func (walletList) Help() string { return `    holdfast wallet list --db sqlite:holdfast.db` }

// Run lists wallets.
func (c *walletList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListWalletsPage(ctx, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"WALLET", "BALANCE", "MAY BE NEGATIVE"}}
		for _, x := range l.Items {
			t.add(x.ID, number64(x.Balance), yes(x.AllowNegative))
		}
		return d.showList(raw, t, l.Next)
	})
}

func walletFacts(x wire.Wallet) *table {
	return facts("wallet", x.ID, "balance", number64(x.Balance), "may be negative", yes(x.AllowNegative))
}

// one runs a verb that answers a wallet.
func (f doorFlags) one(ctx context.Context, p *program, k *kong.Context, verb func(*door, *json.RawMessage) (wire.Wallet, error)) error {
	return f.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := verb(d, &raw)
		if err != nil {
			return err
		}
		return d.show(raw, walletFacts(x))
	})
}

type walletPut struct {
	doorFlags
	onceFlags
	walletArg
	AllowNegative bool `setting:"-" help:"Let its balance be below zero."`
}

// Help is shown by kong.
func (walletPut) Help() string { return `    holdfast wallet put acme --db sqlite:holdfast.db` }

// Run makes a wallet.
func (c *walletPut) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.one(ctx, p, k, func(d *door, raw *json.RawMessage) (wire.Wallet, error) {
		return d.PutWallet(ctx, c.ID, wire.PutWallet{AllowNegative: c.AllowNegative}, c.options(raw)...)
	})
}

type walletShow struct {
	doorFlags
	walletArg
}

// Help is shown by kong.
func (walletShow) Help() string { return `    holdfast wallet show acme --db sqlite:holdfast.db` }

// Run shows a wallet.
func (c *walletShow) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.one(ctx, p, k, func(d *door, raw *json.RawMessage) (wire.Wallet, error) {
		return d.GetWallet(ctx, c.ID, client.Raw(raw))
	})
}

type walletCredit struct {
	doorFlags
	onceFlags
	walletArg
	Points    int64  `arg:"" help:"How many."`
	Reference string `setting:"-" required:"" placeholder:"TEXT" help:"What they are for: the same again credits nothing."`
}

// Help is shown by kong.
func (walletCredit) Help() string {
	return `    holdfast wallet credit acme 500 --reference payment-17 --db sqlite:holdfast.db`
}

// Run credits a wallet.
func (c *walletCredit) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.one(ctx, p, k, func(d *door, raw *json.RawMessage) (wire.Wallet, error) {
		return d.CreditWallet(ctx, c.ID, wire.Credit{Points: c.Points, Reference: c.Reference}, c.options(raw)...)
	})
}

type walletLedger struct {
	doorFlags
	pageFlags
	walletArg
}

// Help is shown by kong.
func (walletLedger) Help() string { return `    holdfast wallet ledger acme --db sqlite:holdfast.db` }

// Run reads a ledger.
func (c *walletLedger) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ReadLedgerPage(ctx, c.ID, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"ROW", "DELTA", "BALANCE", "REASON", "REFERENCE", "AT"}}
		for _, x := range l.Items {
			t.add(number64(x.ID), number64(x.Delta), number64(x.Balance), x.Reason, x.Reference, at(x.At))
		}
		return d.showList(raw, t, l.Next)
	})
}

type walletAudit struct {
	doorFlags
	ID string `arg:"" default:"*" help:"The wallet; by default all."`
}

// Help is shown by kong.
func (walletAudit) Help() string {
	return `It ends with 1 where a wallet does not add up, and names the first row that does not:

    holdfast wallet audit --db sqlite:holdfast.db
    holdfast wallet audit acme --db sqlite:holdfast.db`
}

// Run audits wallets.
func (c *walletAudit) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.AuditWallet(ctx, c.ID, client.Raw(&raw))
		if err != nil {
			return err
		}
		t := facts("wallets", number64(x.Wallets), "rows", number64(x.Entries))
		for _, w := range x.Wrong {
			t.add("wrong", fmt.Sprintf("%s: %s", w.Wallet, w.Message))
		}
		if err := d.show(raw, t); err != nil {
			return err
		}
		if n := len(x.Wrong); n > 0 {
			return fault.New(fault.Conflict, "%s not add up", map[bool]string{true: "a wallet does", false: plural(n, "wallet") + " do"}[n == 1])
		}
		return nil
	})
}

package cli

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

type walletCommand struct {
	List   walletList   `cmd:"" help:"List the wallets of a workspace."`
	Put    walletPut    `cmd:"" help:"Create or change a wallet."`
	Show   walletShow   `cmd:"" help:"Show a wallet."`
	Credit walletCredit `cmd:"" help:"Credit points to a wallet."`
	Ledger walletLedger `cmd:"" help:"Read the ledger of a wallet."`
	Audit  walletAudit  `cmd:"" help:"Audit wallets: compare each balance with its ledger."`
}

type walletArg struct {
	ID string `arg:"" help:"Wallet id."`
}

type walletList struct {
	pageFlags
}

func (c *walletList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListWalletsPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"WALLET", "BALANCE", "MAY BE NEGATIVE"}}
	for _, x := range l.Items {
		t.add(x.ID, number64(x.Balance), yes(x.AllowNegative))
	}
	return d.showList(t, l.Next, err)
}

func walletFacts(x wire.Wallet) *table {
	return facts("wallet", x.ID, "balance", number64(x.Balance), "may be negative", yes(x.AllowNegative))
}

type walletPut struct {
	idempotencyFlags
	walletArg
	AllowNegative bool `setting:"-" help:"Allow a negative balance."`
}

func (c *walletPut) Run(ctx context.Context, d *connection) error {
	x, err := d.PutWallet(ctx, c.ID, wire.PutWallet{AllowNegative: c.AllowNegative}, c.options(d)...)
	return d.show(walletFacts(x), err)
}

type walletShow struct {
	targetFlags
	walletArg
}

func (c *walletShow) Run(ctx context.Context, d *connection) error {
	x, err := d.GetWallet(ctx, c.ID, d.raw())
	return d.show(walletFacts(x), err)
}

type walletCredit struct {
	idempotencyFlags
	walletArg
	Points    int64  `arg:"" help:"Number of points."`
	Reference string `setting:"-" required:"" placeholder:"TEXT" help:"Reference of the credit. Crediting again with the same reference adds nothing."`
}

func (c *walletCredit) Run(ctx context.Context, d *connection) error {
	x, err := d.CreditWallet(ctx, c.ID, wire.Credit{Points: c.Points, Reference: c.Reference}, c.options(d)...)
	return d.show(walletFacts(x), err)
}

type walletLedger struct {
	pageFlags
	walletArg
	Backward bool `setting:"-" help:"Read the newest rows first."`
}

func (c *walletLedger) Run(ctx context.Context, d *connection) error {
	l, err := d.ReadLedgerPage(ctx, c.ID, client.LedgerRange{Backward: c.Backward}, c.page(), d.raw())
	t := &table{heads: []string{"ROW", "DELTA", "BALANCE", "REASON", "REFERENCE", "AT"}}
	for _, x := range l.Items {
		t.add(number64(x.ID), number64(x.Delta), number64(x.Balance), x.Reason, x.Reference, at(x.At))
	}
	return d.showList(t, l.Next, err)
}

type walletAudit struct {
	targetFlags
	ID string `arg:"" default:"*" help:"Wallet id. Default: all wallets."`
}

func (c *walletAudit) Run(ctx context.Context, d *connection) error {
	x, err := d.AuditWallet(ctx, c.ID, d.raw())
	if err != nil {
		return err
	}
	t := facts("wallets", number64(x.Wallets), "rows", number64(x.Entries))
	for _, w := range x.Wrong {
		t.add("wrong", fmt.Sprintf("%s: %s", w.Wallet, w.Message))
	}
	if err := d.show(t, nil); err != nil {
		return err
	}
	if n := len(x.Wrong); n > 0 {
		return fault.New(fault.Conflict, "%s not match the ledger", map[bool]string{true: "1 wallet does", false: plural(n, "wallet") + " do"}[n == 1])
	}
	return nil
}

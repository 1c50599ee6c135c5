package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)

// ListWallets lists the wallets of the workspace.
func (c *Client) ListWallets(ctx context.Context) iter.Seq2[wire.Wallet, error] {
	return pages(func(p Page) (wire.List[wire.Wallet], error) { return c.ListWalletsPage(ctx, p) })
}

// ListWalletsPage lists a page of the wallets of the workspace.
func (c *Client) ListWalletsPage(ctx context.Context, p Page, o ...Option) (wire.List[wire.Wallet], error) {
	return listed[wire.Wallet](ctx, c, list(p, "wallets"), o)
}

// PutWallet makes a wallet, or changes whether its balance may be below zero.
func (c *Client) PutWallet(ctx context.Context, id string, in wire.PutWallet, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodPut, in, "wallets", id), o)
}

// GetWallet returns a wallet.
func (c *Client) GetWallet(ctx context.Context, id string, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodGet, nil, "wallets", id), o)
}

// CreditWallet adds points to a wallet, once for a reference.
func (c *Client) CreditWallet(ctx context.Context, id string, in wire.Credit, o ...Option) (wire.Wallet, error) {
	return do[wire.Wallet](ctx, c, newRequest(http.MethodPost, in, "wallets", id, "credit"), o)
}

// ReadLedger reads the ledger of a wallet.
func (c *Client) ReadLedger(ctx context.Context, id string) iter.Seq2[wire.LedgerEntry, error] {
	return pages(func(p Page) (wire.List[wire.LedgerEntry], error) { return c.ReadLedgerPage(ctx, id, p) })
}

// ReadLedgerPage reads a page of the ledger of a wallet.
func (c *Client) ReadLedgerPage(ctx context.Context, id string, p Page, o ...Option) (wire.List[wire.LedgerEntry], error) {
	return listed[wire.LedgerEntry](ctx, c, list(p, "wallets", id, "ledger"), o)
}

// AuditWallet adds up the ledger of a wallet, or of all ("*").
func (c *Client) AuditWallet(ctx context.Context, id string, o ...Option) (wire.Audit, error) {
	return do[wire.Audit](ctx, c, newRequest(http.MethodGet, nil, "wallets", id, "audit"), o)
}

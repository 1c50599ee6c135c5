package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/wallets"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) walletRoutes() {
	add(a, route{Method: http.MethodGet, Path: "wallets", ID: "listWallets", Tag: "wallets", Summary: "List the workspace's wallets.", Roles: readers}, listWallets)
	add(a, route{Method: http.MethodPut, Path: "wallets/{id}", ID: "putWallet", Tag: "wallets", Summary: "Create a wallet, or change it.", Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage},
		More: "Only allowNegative can be changed."}, putWallet)
	add(a, route{Method: http.MethodGet, Path: "wallets/{id}", ID: "getWallet", Tag: "wallets", Summary: "Show a wallet.", Roles: readers}, getWallet)
	add(a, route{Method: http.MethodPost, Path: "wallets/{id}/credit", ID: "creditWallet", Tag: "wallets", Summary: "Credit points to a wallet. Crediting again with the same reference adds nothing.", Roles: operators, Idempotency: table.InTx, Adds: []quota.Kind{quota.Storage}}, creditWallet)
	add(a, route{Method: http.MethodGet, Path: "wallets/{id}/ledger", ID: "readLedger", Tag: "wallets", Summary: "Read a wallet's ledger, forward or backward.", Roles: readers, Filter: "LedgerRange"}, readLedger)
	add(a, route{Method: http.MethodGet, Path: "wallets/{id}/audit", ID: "auditWallet", Tag: "wallets", Summary: "Audit a wallet's ledger (* for all wallets).", Roles: readers}, auditWallet)
}

func walletOf(w batch.Wallet) wire.Wallet {
	return wire.Wallet{ID: w.ID, Balance: w.Balance, AllowNegative: w.AllowNegative}
}

func listWallets(c *call, in *paged) (wire.List[wire.Wallet], error) {
	return list(c, *in, func(ctx context.Context, after string, limit int) ([]wallets.Wallet, error) {
		return wallets.List(ctx, c.doer(), after, limit)
	}, func(w wallets.Wallet) wire.Wallet {
		return wire.Wallet{ID: w.ID, Balance: w.Balance, AllowNegative: w.AllowNegative}
	}, func(w wallets.Wallet) string { return w.ID })
}

type walletIn struct {
	ID string `path:"id"`
}

type putWalletIn struct {
	ID   string `path:"id"`
	Body wire.PutWallet
}

func putWallet(c *call, in *putWalletIn) (wire.Wallet, error) {
	var o []batch.WalletOption
	if in.Body.AllowNegative {
		o = append(o, batch.AllowNegative())
	}
	w, err := batch.PutWallet(c.ctx(), c.doer(), in.ID, o...)
	return walletOf(w), err
}

func getWallet(c *call, in *walletIn) (wire.Wallet, error) {
	w, err := batch.GetWallet(c.ctx(), c.doer(), in.ID)
	return walletOf(w), err
}

type creditIn struct {
	ID   string `path:"id"`
	Body wire.Credit
}

func creditWallet(c *call, in *creditIn) (wire.Wallet, error) {
	w, err := batch.Credit(c.ctx(), c.doer(), in.ID, in.Body.Points, in.Body.Reference)
	return walletOf(w), err
}

type ledgerIn struct {
	ID       string `path:"id"`
	Backward bool   `query:"backward" doc:"Read from the newest row to the oldest."`
	paged
}

func readLedger(c *call, in *ledgerIn) (wire.List[wire.LedgerEntry], error) {
	if in.Cursor == "" {
		if _, err := wallets.Get(c.ctx(), c.doer(), in.ID); err != nil {
			return wire.List[wire.LedgerEntry]{}, err
		}
	}
	return list(c, in.paged, func(ctx context.Context, after string, limit int) ([]wallets.Entry, error) {
		n, err := numberOf(after)
		if err != nil {
			return nil, err
		}
		if in.Backward {
			return wallets.LedgerBackward(ctx, c.doer(), in.ID, n, limit)
		}
		return wallets.Ledger(ctx, c.doer(), in.ID, n, limit)
	}, func(e wallets.Entry) wire.LedgerEntry {
		return wire.LedgerEntry{ID: e.N, Delta: e.Delta, Balance: e.Balance, Reason: e.Reason, Reference: e.Reference, At: shapes.At(e.At)}
	}, func(e wallets.Entry) string {
		if in.Backward && e.N == 1 { // the first row
			return ""
		}
		return strconv.FormatInt(e.N, 10)
	})
}

func auditWallet(c *call, in *walletIn) (wire.Audit, error) {
	audit := batch.AuditWallet
	if in.ID == every {
		audit = func(ctx context.Context, d holdfast.Doer, _ string) (batch.Audit, error) {
			return batch.AuditWallets(ctx, d)
		}
	}
	found, err := audit(c.ctx(), c.doer(), in.ID)
	out := wire.Audit{Wallets: found.Wallets, Entries: found.Entries, Wrong: []wire.Discrepancy{}}
	for _, w := range found.Discrepancies {
		out.Wrong = append(out.Wrong, wire.Discrepancy{Wallet: w.Wallet, ID: w.Number, Message: w.Message})
	}
	return out, err
}

package batch

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

// Wallet is the state of a wallet at the time of the read. Its balance is a whole number of points.
// A charge can make it negative only if AllowNegative is set.
type Wallet struct {
	ID            string
	Balance       int64
	AllowNegative bool
}

// Entry is a row of a wallet's ledger. Rows are numbered from 1 and never changed. Balance is the
// wallet's balance after this entry.
type Entry struct {
	Number    int64
	Delta     int64
	Balance   int64
	Reason    string // "credit", "charge", "return" (the item failed) or "refund" (the item was cancelled)
	Reference string
	At        time.Time
}

// WalletOption is an option of [PutWallet].
type WalletOption struct{ allowNegative bool }

// AllowNegative allows the balance of a wallet to become negative.
func AllowNegative() WalletOption { return WalletOption{allowNegative: true} }

// PutWallet creates a wallet, or changes whether the balance of an existing one may be negative. With [AllowNegative] it
// may; without it, it may not, and an existing wallet loses the permission. While the balance of a wallet without the
// permission is negative, it can only rise. Allowing a negative balance resumes batches that were paused for
// lack of funds.
func PutWallet(ctx context.Context, d holdfast.Doer, id string, o ...WalletOption) (Wallet, error) {
	if err := reservedWallet(id); err != nil {
		return Wallet{}, err
	}
	allowNegative := false
	for _, option := range o {
		allowNegative = option.allowNegative
	}
	w, err := wallets.Put(ctx, store.DoerOf(d), id, allowNegative)
	if err == nil && allowNegative {
		err = batchengine.Resume(ctx, store.DoerOf(d), id)
	}
	return public(w), err
}

// reservedWallet refuses the wallet of bulks.
func reservedWallet(id string) error {
	if id == batchengine.Bulk {
		return fault.New(fault.Validation, "the wallet %s is reserved for bulks: choose another id", id)
	}
	return nil
}

// GetWallet returns a wallet, or [holdfast.ErrNotFound].
func GetWallet(ctx context.Context, d holdfast.Doer, id string) (Wallet, error) {
	w, err := wallets.Get(ctx, store.DoerOf(d), id)
	return public(w), err
}

// ListWallets iterates over the wallets of the workspace, ordered by id.
func ListWallets(ctx context.Context, d holdfast.Doer) iter.Seq2[Wallet, error] {
	return store.Seq(func(last wallets.Wallet, limit int) ([]wallets.Wallet, error) {
		return wallets.List(ctx, store.DoerOf(d), last.ID, limit)
	}, public)
}

// Credit adds points to a wallet; points must be positive. The reference identifies the source of the points, such as a
// payment. A second credit with the same reference adds nothing and returns the wallet unchanged; if the number of
// points differs, Credit returns [holdfast.ErrConflict]. Batches that were paused for lack of funds are resumed. Credit
// records no actor.
func Credit(ctx context.Context, d holdfast.Doer, wallet string, points int64, reference string) (Wallet, error) {
	if points <= 0 {
		return Wallet{}, fault.New(fault.Validation, "points must be greater than 0, got %d", points).With("field", "points")
	}
	if err := reservedWallet(wallet); err != nil {
		return Wallet{}, err
	}
	w, err := wallets.Post(ctx, store.DoerOf(d), wallets.PostArgs{Wallet: wallet, Delta: points, Reason: "credit", Reference: reference})
	if err == nil {
		err = batchengine.Resume(ctx, store.DoerOf(d), wallet)
	}
	return public(w), err
}

// ReadLedger iterates over the rows of a wallet's ledger, in order, starting at row number from. If the wallet
// does not exist, the error is [holdfast.ErrNotFound].
func ReadLedger(ctx context.Context, d holdfast.Doer, wallet string, from int64) iter.Seq2[Entry, error] {
	return store.SeqIn(func() error {
		_, err := wallets.Get(ctx, store.DoerOf(d), wallet)
		return err
	}, func(last wallets.Entry, limit int) ([]wallets.Entry, error) {
		return wallets.Ledger(ctx, store.DoerOf(d), wallet, cmp.Or(last.N, max(from-1, 0)), limit)
	}, entryOf)
}

// ReadLedgerBackward iterates over the rows of a wallet's ledger, newest first, starting at row number from; 0 or less
// starts with the last row. If the wallet does not exist, the error is [holdfast.ErrNotFound].
func ReadLedgerBackward(ctx context.Context, d holdfast.Doer, wallet string, from int64) iter.Seq2[Entry, error] {
	return store.SeqIn(func() error {
		_, err := wallets.Get(ctx, store.DoerOf(d), wallet)
		return err
	}, func(last wallets.Entry, limit int) ([]wallets.Entry, error) {
		if last.N == 1 { // the first row
			return nil, nil
		}
		before := last.N
		if before == 0 && from > 0 {
			before = from + 1
		}
		return wallets.LedgerBackward(ctx, store.DoerOf(d), wallet, before, limit)
	}, entryOf)
}

func entryOf(e wallets.Entry) Entry {
	return Entry{e.N, e.Delta, e.Balance, e.Reason, e.Reference, e.At}
}

// Audit is the result of [AuditWallet] and [AuditWallets].
type Audit struct {
	Wallets, Entries int64
	// Discrepancies lists the first wrong row of each wallet whose ledger does not add up.
	Discrepancies []Discrepancy
}

// Discrepancy is a row of a ledger that does not add up.
type Discrepancy struct {
	Wallet  string
	Number  int64 // number of the row; 0 if the rows are consistent but do not match the wallet
	Message string
}

// AuditWallet adds up the ledger of a wallet, and checks every row and the wallet's balance against
// the sum.
func AuditWallet(ctx context.Context, d holdfast.Doer, id string) (Audit, error) {
	if id == "" {
		return Audit{}, fault.New(fault.Validation, "the id of the wallet must not be empty: use AuditWallets for all wallets").With("field", "id")
	}
	return audit(ctx, d, id)
}

// AuditWallets is [AuditWallet] for all wallets in the workspace.
func AuditWallets(ctx context.Context, d holdfast.Doer) (Audit, error) { return audit(ctx, d, "") }

func audit(ctx context.Context, d holdfast.Doer, wallet string) (Audit, error) {
	found, err := wallets.Audit(ctx, store.DoerOf(d), wallet)
	a := Audit{Wallets: found.Wallets, Entries: found.Entries}
	for _, w := range found.Wrong {
		a.Discrepancies = append(a.Discrepancies, Discrepancy{w.Wallet, w.N, w.Message})
	}
	return a, err
}

func public(w wallets.Wallet) Wallet { return Wallet{w.ID, w.Balance, w.AllowNegative} }

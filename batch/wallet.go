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

// Wallet is a wallet as it stands. Its balance is a whole number of points, below zero
// only if that is allowed.
type Wallet struct {
	ID            string
	Balance       int64
	AllowNegative bool
}

// Entry is a row of a wallet's ledger. Rows are numbered from 1, and only added; Balance
// is what the wallet had behind this one.
type Entry struct {
	N         int64
	Delta     int64
	Balance   int64
	Reason    string
	Reference string
	At        time.Time
}

// PutWallet makes a wallet, or changes whether its balance may be below zero. One that is
// below zero already can then only rise.
func PutWallet(ctx context.Context, d holdfast.Doer, id string, allowNegative bool) (Wallet, error) {
	w, err := wallets.Put(ctx, store.DoerOf(d), id, allowNegative)
	if err == nil && allowNegative {
		err = batchengine.Resume(ctx, store.DoerOf(d), id)
	}
	return public(w), err
}

// GetWallet returns a wallet, or [holdfast.ErrNotFound].
func GetWallet(ctx context.Context, d holdfast.Doer, id string) (Wallet, error) {
	w, err := wallets.Get(ctx, store.DoerOf(d), id)
	return public(w), err
}

// Credit adds points to a wallet. The reference names what they are for, such as a
// payment: credited again under the same reference, nothing is added, and the wallet is
// returned as it is. Other points under a reference that is there are
// [holdfast.ErrConflict]. Batches that were paused for want of them go on.
func Credit(ctx context.Context, d holdfast.Doer, wallet string, points int64, reference string) (Wallet, error) {
	if points <= 0 {
		return Wallet{}, fault.New(fault.Validation, "points are more than 0: %d", points).With("field", "points")
	}
	w, err := wallets.Post(ctx, store.DoerOf(d), wallets.PostArgs{Wallet: wallet, Delta: points, Reason: "credit", Reference: reference})
	if err == nil {
		err = batchengine.Resume(ctx, store.DoerOf(d), wallet)
	}
	return public(w), err
}

// Ledger gives the rows of a wallet's ledger in their order, behind one of them.
func Ledger(ctx context.Context, d holdfast.Doer, wallet string, after int64) iter.Seq2[Entry, error] {
	return store.Seq(func(last wallets.Entry, limit int) ([]wallets.Entry, error) {
		return wallets.Ledger(ctx, store.DoerOf(d), wallet, cmp.Or(last.N, after), limit)
	}, func(e wallets.Entry) Entry { return Entry(e) })
}

// Audit is what was added up, and what does not.
type Audit struct {
	Wallets, Entries int64
	// Wrong names, of each wallet that does not add up, the first row that does not,
	// or with N 0 the wallet itself.
	Wrong []Wrong
}

// Wrong is a wallet that does not add up.
type Wrong struct {
	Wallet  string
	N       int64
	Message string
}

// AuditWallets adds up the ledger of a wallet, or of all in the workspace (""), and holds
// every row and the wallet's balance to the sum.
func AuditWallets(ctx context.Context, d holdfast.Doer, wallet string) (Audit, error) {
	found, err := wallets.Audit(ctx, store.DoerOf(d), wallet)
	a := Audit{Wallets: found.Wallets, Entries: found.Entries}
	for _, w := range found.Wrong {
		a.Wrong = append(a.Wrong, Wrong(w))
	}
	return a, err
}

func public(w wallets.Wallet) Wallet { return Wallet{w.ID, w.Balance, w.AllowNegative} }

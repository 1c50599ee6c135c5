// Package wallets stores balances of points, each with an append-only ledger whose
// rows add up to the balance. A post adds points or takes them, and writes one ledger
// row with a reference that identifies the post. A post with a known reference changes
// nothing, so a post whose response was lost can be repeated.
package wallets

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Wallet is the current state of a wallet.
type Wallet struct {
	ID            string
	Balance       int64
	AllowNegative bool
	Version       int64 // the number of its last ledger row
	CreatedAt     time.Time
}

// Entry is a row of a ledger. Balance is the balance after it.
type Entry struct {
	N, Delta, Balance int64
	Reason, Reference string
	At                time.Time
}

// PostArgs are the arguments of [Post]. A negative Delta takes from the wallet.
type PostArgs struct {
	Wallet    string `arg:"wallet"`
	Delta     int64  `arg:"delta"`
	Reason    string `arg:"reason"`
	Reference string `arg:"reference"`
}

type putArgs struct {
	id       string `arg:"wallet"`
	negative bool   `arg:"negative"`
}

type listArgs struct {
	from  string `arg:"from"`
	upto  string `arg:"upto"`
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

type ledgerArgs struct {
	wallet string `arg:"wallet"`
	after  int64  `arg:"after"`
	limit  int    `arg:"limit"`
}

type posted struct {
	applied          bool
	found            string // posted, known, refused, missing
	balance, version int64
	negative         bool
	delta            int64 // the delta that the reference posted before
	moved            int64 // number of updated wallets; selected so that the statement updates them
}

var (
	putVerb = store.VerbOf[putArgs](store.Decl{Name: "wallets.put", Idempotent: true},
		func(a putArgs) []string { return []string{row(a.id)} },
		func(w *Wallet, r store.Row) error {
			return r.Scan(&w.Balance, &w.AllowNegative, &w.Version, &w.CreatedAt)
		})
	postVerb = store.VerbOf[PostArgs](store.Decl{Name: "wallets.post", Group: true, Commutative: true, Idempotent: true},
		func(a PostArgs) []string { return []string{row(a.Wallet)} },
		store.Outcome(func(p *posted) (*bool, []any) {
			return &p.applied, []any{&p.found, &p.balance, &p.version, &p.negative, &p.delta, &p.moved}
		})).Wakes(func(a PostArgs) []string { return []string{Topic(a.Wallet)} })
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "wallets.list", Lane: store.Read}, nil,
		store.Each(func(w *Wallet) []any { return []any{&w.ID, &w.Balance, &w.AllowNegative, &w.Version, &w.CreatedAt} }))
	ledgerVerb     = store.VerbOf[ledgerArgs](store.Decl{Name: "wallets.list_ledger", Lane: store.Read}, nil, scanEntry)
	ledgerBackVerb = store.VerbOf[ledgerArgs](store.Decl{Name: "wallets.list_ledger_backward", Lane: store.Read}, nil, scanEntry)

	scanEntry = store.Each(func(e *Entry) []any { return []any{&e.N, &e.Delta, &e.Balance, &e.Reason, &e.Reference, &e.At} })
)

// row returns the name of a wallet's row, for verbs that lock it.
func row(id string) string { return "wallet/" + id }

// Topic returns the topic that a post to a wallet wakes.
func Topic(id string) string { return "wallet/" + id }

// Put creates a wallet, or changes whether its balance may be negative. A balance
// that is negative already stays, and can only rise.
func Put(ctx context.Context, d store.Doer, id string, allowNegative bool) (Wallet, error) {
	if err := strictjson.Text("wallet", id, events.MaxName); err != nil {
		return Wallet{}, err
	}
	w, err := putVerb.Do(ctx, d, putArgs{id, allowNegative})
	w.ID = id
	return w, err
}

// Get returns a wallet, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, id string) (Wallet, error) {
	if err := strictjson.Text("wallet", id, events.MaxName); err != nil {
		return Wallet{}, err
	}
	all, err := listVerb.Do(ctx, d, listArgs{from: id, upto: id, limit: 1})
	return store.First(all, err, func() error { return missing(id) })
}

func missing(id string) error { return fault.New(fault.NotFound, "wallet %q does not exist", id) }

// List returns wallets ordered by id, after the given id.
func List(ctx context.Context, d store.Doer, after string, limit int) ([]Wallet, error) {
	return listVerb.Do(ctx, d, listArgs{from: after, upto: store.Last, after: after, limit: limit})
}

// Ledger returns the rows of a ledger in order, after the given row.
func Ledger(ctx context.Context, d store.Doer, id string, after int64, limit int) ([]Entry, error) {
	return ledgerVerb.Do(ctx, d, ledgerArgs{id, after, limit})
}

// LedgerBackward returns the rows of a ledger, newest first, before the given row; 0 starts with the last row.
func LedgerBackward(ctx context.Context, d store.Doer, id string, before int64, limit int) ([]Entry, error) {
	return ledgerBackVerb.Do(ctx, d, ledgerArgs{id, cmp.Or(before, math.MaxInt64), limit})
}

// Post adds to a wallet, or takes from it. A known reference posts nothing and
// returns the current wallet; with another delta it returns [fault.Conflict]. A
// balance that is too low returns [fault.InsufficientFunds].
func Post(ctx context.Context, d store.Doer, a PostArgs) (Wallet, error) {
	for _, err := range []error{strictjson.Text("wallet", a.Wallet, events.MaxName), strictjson.Text("reason", a.Reason, events.MaxName),
		strictjson.Text("reference", a.Reference, MaxReference)} {
		if err != nil {
			return Wallet{}, err
		}
	}
	if strings.HasPrefix(a.Reference, "$") {
		return Wallet{}, fault.New(fault.Validation, "a reference must not begin with $, which is reserved for batches, got %q", a.Reference).With("field", "reference")
	}
	if a.Delta == 0 {
		return Wallet{}, fault.New(fault.Validation, "points must not be 0").With("field", "points")
	}
	p, err := postVerb.Do(ctx, d, a)
	w := Wallet{ID: a.Wallet, Balance: p.balance, AllowNegative: p.negative, Version: p.version}
	switch {
	case err != nil || p.applied:
		return w, err
	case p.found == "missing":
		return w, missing(a.Wallet)
	case p.found == "known" && p.delta == a.Delta:
		return w, nil
	case p.found == "known":
		return w, fault.New(fault.Conflict, "reference %q was already used on wallet %q with an amount of %d, not %d: use a new reference", a.Reference, a.Wallet, p.delta, a.Delta).
			With("posted", p.delta)
	case a.Delta > 0:
		return w, fault.New(fault.Validation, "wallet %q has a balance of %d, and adding %d would exceed the maximum balance: add fewer points", a.Wallet, p.balance, a.Delta)
	}
	return w, fault.New(fault.InsufficientFunds, "wallet %q has a balance of %d, but this charge requires %d: add points first", a.Wallet, p.balance, -a.Delta).
		With("balance", p.balance).With("wanted", -a.Delta)
}

// MaxReference is the maximum length of a reference.
const MaxReference = 1024

// Wrong is the first row of a ledger that does not add up or, with N 0, a wallet
// that does not match its ledger.
type Wrong struct {
	Wallet  string
	N       int64
	Message string
}

// Audited is the result of an audit.
type Audited struct {
	Wallets, Entries int64
	Wrong            []Wrong
}

// Audit adds up the ledger of one wallet, or of all (""). It compares each row's
// balance, and at the end the wallet's, with the sum.
func Audit(ctx context.Context, d store.Doer, id string) (a Audited, err error) {
	if id != "" {
		w, err := Get(ctx, d, id)
		if err == nil {
			err = a.audit(ctx, d, w)
		}
		return a, err
	}
	for after := ""; ; {
		page, err := List(ctx, d, after, auditPage)
		if err != nil {
			return a, err
		}
		for _, w := range page {
			if err := a.audit(ctx, d, w); err != nil {
				return a, err
			}
			after = w.ID
		}
		if len(page) < auditPage {
			return a, nil
		}
	}
}

const auditPage = 1000

// audit audits one wallet, up to its last ledger row when it was read.
func (a *Audited) audit(ctx context.Context, d store.Doer, w Wallet) error {
	a.Wallets++
	var n, sum int64
	for n < w.Version {
		page, err := Ledger(ctx, d, w.ID, n, auditPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if e.N > w.Version { // it was posted after the wallet was read
				break
			}
			a.Entries++
			sum += e.Delta
			if e.N != n+1 || e.Balance != sum {
				a.Wrong = append(a.Wrong, Wrong{w.ID, e.N, fmt.Sprintf("row %d (%s) has balance %d, but after row %d the balance should be %d", e.N, e.Reference, e.Balance, n, sum)})
				return nil
			}
			n = e.N
		}
		if page[len(page)-1].N > w.Version {
			break
		}
	}
	if sum != w.Balance || n != w.Version {
		a.Wrong = append(a.Wrong, Wrong{w.ID, 0, fmt.Sprintf("the wallet has balance %d at row %d, but its ledger adds up to %d at row %d", w.Balance, w.Version, sum, n)})
	}
	return nil
}

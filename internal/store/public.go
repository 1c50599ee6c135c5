package store

import "context"

// The public packages expose a database, a transaction and a doer as interfaces whose methods no other module
// can name or implement. The public types embed the interfaces or handles below, and the packages of this
// module unwrap them.

// PublicDoer is the interface behind holdfast.Doer.
type PublicDoer interface{ doer() Doer }

// PublicTx is the interface behind holdfast.Tx. [*Tx] implements it.
type PublicTx interface {
	PublicDoer
	tx() *Tx
}

// PublicDatabase is the interface behind holdfast.Database.
type PublicDatabase interface{ database() Database }

// DoerOf returns the doer behind a public one, which may be the public one itself.
func DoerOf(d PublicDoer) Doer {
	if itself, ok := d.(Doer); ok {
		return itself
	}
	return d.doer()
}

// TxOf returns the transaction behind a public transaction.
func TxOf(t PublicTx) *Tx { return t.tx() }

// DatabaseOf returns the database behind a public database.
func DatabaseOf(d PublicDatabase) Database { return d.database() }

func (t *Tx) doer() Doer { return t }
func (t *Tx) tx() *Tx    { return t }

// DoerHandle makes a type that embeds it a [PublicDoer].
type DoerHandle struct{ is Doer }

// HandleDoer returns a handle of a doer.
func HandleDoer(d Doer) DoerHandle { return DoerHandle{d} }

func (h DoerHandle) doer() Doer { return h.is }

// DatabaseHandle makes a type that embeds it a [PublicDatabase].
type DatabaseHandle struct{ is Database }

// HandleDatabase returns a handle of a database.
func HandleDatabase(d Database) DatabaseHandle { return DatabaseHandle{d} }

func (h DatabaseHandle) database() Database { return h.is }

// Plain returns the database with [Options.Plain] set, for tests that compare general statements with fast ones.
func Plain(d PublicDatabase) DatabaseHandle { return DatabaseHandle{plain{DatabaseOf(d)}} }

type plain struct{ Database }

func (p plain) Open(ctx context.Context, o Options) (Store, error) {
	o.Plain = true
	return p.Database.Open(ctx, o)
}

// TxFunc converts a function on a public transaction, such as holdfast.Tx, to one on a [*Tx]. It returns nil
// for nil.
func TxFunc[T any](f func(context.Context, T) error) func(context.Context, *Tx) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, tx *Tx) error { return f(ctx, any(tx).(T)) }
}

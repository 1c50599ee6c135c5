package store

import "context"

// The public packages show a database, a transaction and what verbs run on as interfaces with methods that nobody
// else can name or implement. The public types embed these, or a handle, and the packages of this module get at what is behind.

// PublicDoer is behind holdfast.Doer.
type PublicDoer interface{ doer() Doer }

// PublicTx is behind holdfast.Tx. A [*Tx] is one.
type PublicTx interface {
	PublicDoer
	tx() *Tx
}

// PublicDatabase is behind holdfast.Database.
type PublicDatabase interface{ database() Database }

// DoerOf returns what a public one runs verbs on: itself, where it can.
func DoerOf(d PublicDoer) Doer {
	if itself, ok := d.(Doer); ok {
		return itself
	}
	return d.doer()
}

// TxOf returns the transaction behind a public one.
func TxOf(t PublicTx) *Tx { return t.tx() }

// DatabaseOf returns the database behind a public one.
func DatabaseOf(d PublicDatabase) Database { return d.database() }

func (t *Tx) doer() Doer { return t }
func (t *Tx) tx() *Tx    { return t }

// DoerHandle makes what embeds it a [PublicDoer].
type DoerHandle struct{ is Doer }

// HandleDoer returns a handle of what verbs run on.
func HandleDoer(d Doer) DoerHandle { return DoerHandle{d} }

func (h DoerHandle) doer() Doer { return h.is }

// DatabaseHandle makes what embeds it a [PublicDatabase].
type DatabaseHandle struct{ is Database }

// HandleDatabase returns a handle of a database.
func HandleDatabase(d Database) DatabaseHandle { return DatabaseHandle{d} }

func (h DatabaseHandle) database() Database { return h.is }

// TxFunc makes a function of a public transaction, such as holdfast.Tx, one of a [*Tx]. Of nil it makes nil.
func TxFunc[T any](f func(context.Context, T) error) func(context.Context, *Tx) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, tx *Tx) error { return f(ctx, any(tx).(T)) }
}

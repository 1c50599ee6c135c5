package baseline

import (
	"context"
	"time"
)

// Batch is a batch to make, open for items.
type Batch struct {
	ID, Wallet, Handler string
	Parallel            int
}

// Item is an item to add to a batch.
type Item struct {
	Key   string
	Cost  int64
	Input string
}

// Held is an item that a caller has leased.
type Held struct {
	Batch, Key string
	Epoch      int64
	Until      time.Time
	Input      []byte
}

// BatchCounts are the counts of a batch, each read from its own rows: those of the batch, its
// items, its wallet, the wallet's ledger and the batch's history.
type BatchCounts struct {
	Items, Next, Running, Succeeded, Charged, Version int64
	Balance                                           int64
	Settled                                           int64 // items that were taken once, paid for, and settled
	Entries, Sum                                      int64 // of the ledger
	Events                                            int64 // of items that were settled
}

// Batcher is a system with batches of items that are paid for, one by one, from a
// wallet. Items never fail here, so nothing polls for retries.
type Batcher interface {
	// CreateBatch makes a batch without items, with its event. If the batch exists, it is refused.
	CreateBatch(context.Context, Batch) error
	// AddItems adds a page of items to a batch, with one event.
	AddItems(ctx context.Context, batch string, items []Item) error
	// TakeItem takes a batch's next item, with its event, its charge and a row of the
	// ledger. It is refused if there is none, or not enough in the wallet.
	TakeItem(ctx context.Context, batch, holder string, lease time.Duration) (Held, error)
	// SettleItem ends an item that is held, with its output and its event. A lease
	// that has run out, or is another's, is refused.
	SettleItem(ctx context.Context, h Held, output string) error
	// CountBatch reads a batch whose wallet no other batch has.
	CountBatch(ctx context.Context, batch string) (BatchCounts, error)
}

// ManyItems is a system that takes and settles many items of a batch at once.
type ManyItems interface {
	// TakeItems takes up to limit items, with one event. It may be none.
	TakeItems(ctx context.Context, batch, holder string, lease time.Duration, limit int) ([]Held, error)
	// SettleItems ends items, each with its event. Those whose lease is lost stay as
	// they are and are not counted.
	SettleItems(ctx context.Context, batch string, all []Held, output string) (settled int, err error)
}

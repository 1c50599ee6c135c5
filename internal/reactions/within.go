package reactions

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Enlist creates a reaction in the caller's transaction. Its name must be new. It
// takes effect when the transaction commits; [Sweep] finishes the registration
// after the transactions in flight at that time have ended.
func Enlist(ctx context.Context, tx *store.Tx, d Definition) error {
	if err := d.Check(); err != nil {
		return err
	}
	d.Options.FromNow = d.FromNow
	_, err := put(ctx, tx, d)
	return err
}

// Dismiss removes a reaction in the caller's transaction, and reports whether it
// existed. [Sweep] deletes its positions.
func Dismiss(ctx context.Context, tx *store.Tx, name string) (bool, error) {
	if _, err := store.Raise(ctx, tx); err != nil {
		return false, err
	}
	return removeVerb.Do(ctx, tx, name)
}

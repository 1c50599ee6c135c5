package reactions

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Enlist makes a reaction in a transaction of the caller's, with what else that
// writes, under a name that no reaction had before. It takes effect when the
// transaction commits; what was under way then is looked at again by whoever sweeps.
func Enlist(ctx context.Context, tx *store.Tx, d Definition) error {
	if err := d.Check(); err != nil {
		return err
	}
	d.Options.FromNow = d.FromNow
	_, err := put(ctx, tx, d)
	return err
}

// Dismiss removes a reaction in a transaction of the caller's, and says whether there
// was one. What it leaves is cleared away by whoever sweeps.
func Dismiss(ctx context.Context, tx *store.Tx, name string) (bool, error) {
	if _, err := store.Raise(ctx, tx); err != nil {
		return false, err
	}
	return removeVerb.Do(ctx, tx, name)
}

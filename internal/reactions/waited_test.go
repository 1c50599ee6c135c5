package reactions_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// TestWhatARegistrationWaitsForIsItsOwn verifies that a reaction which was changed while
// a node waited to record the transactions in flight waits under the revision of that
// change: under the revision before, finishing the earlier registration could end the
// later one.
func TestWhatARegistrationWaitsForIsItsOwn(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), holdfasttest.PostgreSQL(t)
	hf := holdfasttest.OpenOn(t, holdfasttest.At(url))
	if err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		return reactions.Enlist(ctx, store.TxOf(tx), define("r", ""))
	}); err != nil {
		t.Fatal(err)
	}
	at, err := engine.Of(hf).Partition(ctx, store.Read)
	if err != nil {
		t.Fatal(err)
	}
	change := `WITH x AS (UPDATE holdfast.registry SET revision = revision + 1) UPDATE holdfast.reaction SET base = base + (1::bigint << 32)`
	if err := errors.Join(storetest.Queue(t, url, change, nil, nil, func() error {
		_, err := reactions.Finish(ctx, engine.Of(hf), at, "r")
		return err
	})...); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var waits, own string
	if err := conn.QueryRow(ctx, `SELECT waits::text, 'r' || (base >> 32) FROM holdfast.reaction`).Scan(&waits, &own); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(waits, `"`+own+`"`) {
		t.Errorf("waits under revision %s, want %s", waits, own)
	}
}

package keys_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// TestCrash verifies that a key that is created, rotated and revoked is so once, wherever a fault
// strikes: there is never a successor without its rotation, nor a change without its event.
func TestCrash(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{Do: createRotateRevoke, Check: checkHistory})
}

func createRotateRevoke(ctx context.Context, hf *holdfast.Engine) error {
	all, err := keys.List(ctx, engine.Of(hf), "", 0)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		k, text, err := keys.Create(ctx, engine.Of(hf), plain)
		if err != nil {
			return err
		}
		if k.Name != plain.Name || k.CreatedAt.IsZero() || text == "" {
			return fmt.Errorf("created API key %+v", k)
		}
		all = append(all, k)
	}
	if k, _, err := keys.Rotate(ctx, engine.Of(hf), all[0].ID, 0, "bob"); err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return err
	} else if err == nil && (k.Name != plain.Name || k.CreatedAt.IsZero()) {
		return fmt.Errorf("rotation returned API key %+v", k)
	}
	k, err := keys.Revoke(ctx, engine.Of(hf), all[0].ID, "cleo")
	if err == nil && (k.ID != all[0].ID || k.RevokedAt == nil) {
		err = fmt.Errorf("revocation returned API key %+v", k)
	}
	return err
}

func checkHistory(ctx context.Context, hf *holdfast.Engine) error {
	all, err := keys.List(ctx, engine.Of(hf), "", 0)
	if err != nil {
		return err
	}
	got := ""
	for _, k := range all {
		recorded, err := events.Read(ctx, engine.Of(hf), events.ReadArgs{Stream: keys.Stream(k.ID)})
		if err != nil {
			return err
		}
		for _, e := range recorded {
			got += fmt.Sprintf("%d %s by %s, ", e.Version, e.Name, e.Actor)
		}
		got += fmt.Sprintf("%v %v; ", k.ExpiresAt != nil, k.RevokedAt != nil)
	}
	if want := "0 created by ann, 1 rotated by bob, 2 revoked by cleo, true true; 0 created by bob, false false; "; got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

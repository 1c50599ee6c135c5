package lifecycleengine

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// TestJudge verifies that only the end of the body's own context counts as a cancellation or a
// timeout: a timeout inside a body is a failure like any other, and counts.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		err, cause error
		want       string
		reported   bool
	}{
		{context.DeadlineExceeded, nil, "failed", true},
		{context.Canceled, nil, "failed", true},
		{context.Canceled, context.Canceled, "cancelled", false},
		{errors.New("x"), lease.ErrTimeout, "timeout", false},
		{holdfast.Invalid("no"), nil, "invalid", true},
	} {
		if got, reported := new(attempt).decide(c.err, c.cause); got != c.want || reported != c.reported {
			t.Errorf("error %v with cause %v: got %s, reported %v", c.err, c.cause, got, reported)
		}
	}
}

// endsLate is a context that ends after its first check.
type endsLate struct {
	context.Context
	checked bool
}

func (e *endsLate) Err() error {
	if e.checked {
		return context.Canceled
	}
	e.checked = true
	return nil
}

// TestACancelledRetryIsNotForgotten verifies that an effect which may have happened is not
// recorded as not done because a later call of it was cancelled: the claim is not reverted (I5).
func TestACancelledRetryIsNotForgotten(t *testing.T) {
	for _, policy := range []holdfast.EffectOption{holdfast.OnUnknownRetry(),
		holdfast.OnUnknownProbe(func(context.Context, string) (int, bool, error) { return 0, false, nil })} {
		l := handling(fxCrashConfig, "action", "Close", func(ctx context.Context, a *Act) error {
			charge := func(ctx context.Context) error {
				_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (int, error) { return 0, errFxCrash }, policy)
				return err
			}
			if err := charge(ctx); !errors.Is(err, errFxCrash) {
				t.Errorf("first call: got error %v", err)
			}
			return charge(&endsLate{Context: ctx})
		}, Declared{Safety: lifecycleconfig.Journaled})
		storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
			if _, err := l.CreateAt(t.Context(), engine.Of(hf), "x", "", []byte(`{}`), ""); err != nil {
				t.Fatal(err)
			}
			e, err := l.Fire(t.Context(), engine.Of(hf), "x", "close", "admin", FireOptions{})
			if err == nil || e.Claimed == nil || e.Claimed.Phase != string(entities.Due) || e.Status != "closing" {
				t.Errorf("got entity %+v, error %v", e, err)
			}
		}, part(l.Start))
	}
}

package lifecycleengine

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
)

// TestJudge verifies that only what ended the body's own context is being told to
// stop, or too long: a timeout inside a body is a failure like any other, and counts.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		err, cause error
		want       string
		told       bool
	}{
		{context.DeadlineExceeded, nil, "failed", true},
		{context.Canceled, nil, "failed", true},
		{context.Canceled, context.Canceled, "cancelled", false},
		{errors.New("x"), lease.ErrTimeout, "timeout", false},
		{holdfast.Invalid("no"), nil, "invalid", true},
	} {
		if got, told := new(attempt).decide(c.err, c.cause); got != c.want || told != c.told {
			t.Errorf("%v, because of %v: %s, %v", c.err, c.cause, got, told)
		}
	}
}

// endsLate is a context that ends after somebody has asked whether it has.
type endsLate struct {
	context.Context
	asked bool
}

func (e *endsLate) Err() error {
	if e.asked {
		return context.Canceled
	}
	e.asked = true
	return nil
}

// TestACancelledRetryIsNotForgotten verifies that an effect which may have happened
// is not taken for one that has not, because a later call of it was not made any
// more: the claim does not go back (I5).
func TestACancelledRetryIsNotForgotten(t *testing.T) {
	for _, policy := range []holdfast.EffectOption{holdfast.OnUnknownRetry(),
		holdfast.OnUnknownProbe(func(context.Context, string) (int, bool, error) { return 0, false, nil })} {
		l := handling(fxCrashConfig, "action", "Close", func(ctx context.Context, a *Act) error {
			charge := func(ctx context.Context) error {
				_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (int, error) { return 0, errFxCrash }, policy)
				return err
			}
			if err := charge(ctx); !errors.Is(err, errFxCrash) {
				t.Errorf("the first call: %v", err)
			}
			return charge(&endsLate{Context: ctx})
		}, Declared{Safety: lifecycleconfig.Journaled})
		holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
			if _, err := l.Create(t.Context(), engine.Of(hf), "x", []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			e, err := l.Fire(t.Context(), engine.Of(hf), "x", "close", "admin", FireOptions{})
			if err == nil || e.Claimed == nil || e.Claimed.Phase != string(entities.Due) || e.Status != "closing" {
				t.Errorf("it is %+v, %v", e, err)
			}
		}, part(l.Start))
	}
}

// Package handlers has five handlers as they are often written first, and each of them repaired. The test lets
// holdfasttest.Crash find the five mistakes.
package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
)

// Bill is what is charged.
type Bill struct {
	Cents int `json:"cents"`
}

// config is a lifecycle with an action, an after-effect, or both.
func config(handlers string) []byte {
	return []byte(`
workflow: bill
owning_module: billing
status_types: [open, closing, closed]
initial_status: open
janitor: standard
steps:
  - step_id: 10
    step_key: close
    status: open
    successful_claim_state: [closing, open]
    successful_state: closed
` + handlers)
}

const (
	charges = "    action: Charge\n"
	mails   = "    success_after_effect: Mail\n"
)

// closing is a scenario that creates a bill and closes it.
func closing(bills *lifecycle.Lifecycle[Bill], then func(ctx context.Context) error, check func(context.Context) error) holdfasttest.Scenario {
	return holdfasttest.Scenario{
		Parts: func() []holdfast.Part { return []holdfast.Part{bills} },
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			if _, err := bills.Create(ctx, hf, "b1", Bill{Cents: 1200}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
				return err
			}
			_, err := bills.Fire(ctx, hf, "b1", "close", "system")
			if err == nil && then != nil {
				err = then(ctx)
			}
			return err
		},
		Accepts: []error{holdfast.ErrInvalidTransition}, // it is closed
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			if b, err := bills.Get(ctx, hf, "b1"); err != nil || b.Status != "closed" {
				return fmt.Errorf("the bill is %q: %w", b.Status, err)
			}
			return check(ctx)
		},
	}
}

// once checks that a gateway that does not know keys was called once.
func once(w *holdfasttest.World, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		if n := w.Count(ctx, name); n != 1 {
			return fmt.Errorf("%s happened %d times, want once", name, n)
		}
		return nil
	}
}

// oneKey checks that a gateway that honors keys acted once.
func oneKey(w *holdfasttest.World, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		if keys := w.Keys(ctx, name); len(keys) != 1 {
			return fmt.Errorf("%s happened %d times, want once: %q", name, len(keys), keys)
		}
		return nil
	}
}

// post charges through a gateway behind HTTP.
func post(ctx context.Context, gateway *http.Client, key string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://gateway.example/charges", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", key)
	response, err := gateway.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// ChargeWithoutEffect charges in the body of an action, where a second attempt charges again.
func ChargeWithoutEffect() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	gateway := w.Client(nil)
	bills := lifecycle.MustParse[Bill](config(charges)).Action("Charge", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		return post(ctx, gateway, "")
	}, lifecycle.Journaled())
	return closing(bills, nil, once(w, "POST /charges"))
}

// ChargeWithEffect charges in an effect, whose key the gateway honors.
func ChargeWithEffect() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	gateway := w.Client(nil)
	bills := lifecycle.MustParse[Bill](config(charges)).Action("Charge", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		_, err := holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (bool, error) {
			return true, post(ctx, gateway, key)
		}, holdfast.OnUnknownRetry())
		return err
	}, lifecycle.Journaled())
	return closing(bills, nil, oneKey(w, "POST /charges"))
}

// TransactionalButActing is declared transactional, so that it is repeated, and charges.
func TransactionalButActing() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	bills := lifecycle.MustParse[Bill](config(charges)).Action("Charge", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		return w.Call(ctx, "charge", "")
	}, lifecycle.Transactional())
	return closing(bills, nil, once(w, "charge"))
}

// JournaledAndProbing asks the gateway, which does not honor keys but knows them, before it charges again.
func JournaledAndProbing() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	bills := lifecycle.MustParse[Bill](config(charges)).Action("Charge", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		_, err := holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (bool, error) {
			return true, w.Call(ctx, "charge", key)
		}, holdfast.OnUnknownProbe(func(ctx context.Context, key string) (charged, happened bool, err error) {
			return true, len(w.Keys(ctx, "charge")) > 0, nil
		}))
		return err
	}, lifecycle.Journaled())
	return closing(bills, nil, once(w, "charge"))
}

// MailAfterFire sends a mail after Fire returned, which nothing repeats.
func MailAfterFire() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	bills := lifecycle.MustParse[Bill](config(""))
	return closing(bills, func(ctx context.Context) error { return w.Call(ctx, "mail", "b1") }, once(w, "mail"))
}

// MailAsAfterEffect sends the mail in an after-effect, under the key of the operation.
func MailAsAfterEffect() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	bills := lifecycle.MustParse[Bill](config(mails)).AfterEffect("Mail", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		return w.Call(ctx, "mail", a.Operation)
	})
	return closing(bills, nil, oneKey(w, "mail"))
}

// AfterEffectWithoutKey charges in an after-effect, which may run more than once, without a key.
func AfterEffectWithoutKey() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	bills := lifecycle.MustParse[Bill](config(mails)).AfterEffect("Mail", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		return w.Call(ctx, "charge", time.Now().String())
	})
	return closing(bills, nil, oneKey(w, "charge"))
}

// AfterEffectWithKey charges under the key of the operation.
func AfterEffectWithKey() holdfasttest.Scenario {
	w := new(holdfasttest.World)
	bills := lifecycle.MustParse[Bill](config(mails)).AfterEffect("Mail", func(ctx context.Context, a *lifecycle.Act[Bill]) error {
		return w.Call(ctx, "charge", a.Operation)
	})
	return closing(bills, nil, oneKey(w, "charge"))
}

// running is a scenario that starts a run whose step charges.
func running(w *holdfasttest.World, key func(run.Info) string) holdfasttest.Scenario {
	charging := run.Define("charging", "1", run.Task("charge", func(ctx context.Context, _ any) (bool, error) {
		info, _ := run.Of(ctx)
		return true, w.Call(ctx, "charge", key(info))
	}, run.Idempotent()))
	start := func(ctx context.Context, hf *holdfast.Engine) (run.Run, error) {
		r, _, err := charging.Start(ctx, hf, Bill{Cents: 1200}, run.Key("b1"))
		return r, err
	}
	return holdfasttest.Scenario{
		Parts: func() []holdfast.Part { return []holdfast.Part{charging} },
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := start(ctx, hf)
			return err
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			if r, err := start(ctx, hf); err != nil || r.Status != run.Completed {
				return fmt.Errorf("the run is %q: %w", r.Status, err)
			}
			return oneKey(w, "charge")(ctx)
		},
	}
}

// KeyOfTheAttempt charges under a key that differs between attempts.
func KeyOfTheAttempt() holdfasttest.Scenario {
	return running(new(holdfasttest.World), func(i run.Info) string { return fmt.Sprint(i.Operation, "-", i.Attempt) })
}

// KeyOfTheOperation charges under the key of the operation, which all attempts share.
func KeyOfTheOperation() holdfasttest.Scenario {
	return running(new(holdfasttest.World), func(i run.Info) string { return i.Operation })
}

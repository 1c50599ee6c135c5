//lint:file-ignore SA4006 the pages show calls without the handling of their errors

package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { os.Exit(holdfasttest.Main(m).Run()) }

var errDown = errors.New("the connection was lost")

// uncertain opens an engine on which the operation of an invoice is uncertain.
func uncertain(t *testing.T) (*holdfast.Engine, *lifecycle.Lifecycle[Invoice]) {
	t.Helper()
	invoices := lifecycle.MustParse[Invoice]([]byte(invoiceConfig)).
		Action("Charge", func(ctx context.Context, _ *lifecycle.Act[Invoice]) error {
			_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (string, error) { return "", errDown })
			return err
		}, lifecycle.Journaled()).
		AfterEffect("MailReceipt", func(context.Context, *lifecycle.Act[Invoice]) error { return nil }, lifecycle.Idempotent())
	hf := holdfasttest.Open(t, invoices)
	if _, err := invoices.Create(t.Context(), hf, "i1", Invoice{Cents: 1200}); err != nil {
		t.Fatal(err)
	}
	if _, err := invoices.Fire(t.Context(), hf, "i1", "pay", "admin"); err == nil {
		t.Fatal("a charge of unknown outcome succeeded")
	}
	if _, err := holdfasttest.Settle(t.Context(), hf); err != nil {
		t.Fatal(err)
	}
	return hf, invoices
}

func TestAnOperatorResolves(t *testing.T) {
	ctx := t.Context()
	hf, invoices := uncertain(t)
	// [resolve]
	waiting, err := holdfast.Collect(lifecycle.ListOperations(ctx, hf, lifecycle.OperationFilter{Phase: lifecycle.Uncertain}))
	for _, op := range waiting { // with their effects
		_, err = lifecycle.Resolve(ctx, hf, op.ID, []holdfast.Resolution{
			{Name: "charge", State: holdfast.EffectDone, Result: []byte(`"ch_17"`)}, // the payment API says that it has charged
		}, lifecycle.By("mia"))
	}
	// [/resolve]
	if err != nil || len(waiting) != 1 {
		t.Fatal(len(waiting), err)
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		t.Fatal(err)
	}
	if i, err := invoices.Get(ctx, hf, "i1"); err != nil || i.Status != "paid" {
		t.Error(i.Status, err)
	}
}

func TestRepairs(t *testing.T) {
	ctx := t.Context()
	mail := stream.React("mail", stream.Select{Events: []string{"paid"}, Pattern: "^order-"}, func(context.Context, *stream.Delivery) error {
		return holdfast.NonRetryable(errDown)
	}, stream.Options{})
	hf := holdfasttest.Open(t, mail)
	for _, order := range []string{"order-7", "order-8"} {
		if _, err := stream.Append(ctx, hf, order, stream.None, stream.Event{Name: "paid"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		t.Fatal(err)
	}
	// [repairs]
	blocked, err := holdfast.Collect(stream.ListPositions(ctx, hf, stream.PositionFilter{Blocked: new(true)}))
	done, err := stream.Unblock(ctx, hf, "*", stream.PositionFilter{Pattern: "^order-"})          // continue where it stopped
	done, err = stream.Skip(ctx, hf, "mail", stream.PositionFilter{Streams: []string{"order-7"}}) // continue after the event that failed
	done, err = stream.Reset(ctx, hf, "mail", stream.PositionFilter{})                            // start again at the first stored event
	// [/repairs]
	if len(blocked) != 2 || len(done.Repaired) != 2 || err != nil {
		t.Error(len(blocked), done, err)
	}
	after(t)
}

// after repairs an after-effect.
func after(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	hf, _ := uncertain(t)
	// [after]
	blocked, err := holdfast.Collect(stream.ListPositions(ctx, hf, stream.PositionFilter{Blocked: new(true)}))
	_, err = stream.Unblock(ctx, hf, "$after:invoice:MailReceipt", stream.PositionFilter{})            // deliver it again, under the same operation
	_, err = stream.Skip(ctx, hf, "*", stream.PositionFilter{Streams: []string{"$entity/invoice/i1"}}) // never deliver it; continue with the next one
	_, err = stream.Reset(ctx, hf, "$after:invoice:MailReceipt", stream.PositionFilter{Streams: []string{"$entity/invoice/i1"}})
	// [/after]
	if len(blocked) != 0 || err != nil {
		t.Error(len(blocked), err)
	}
}

type Account struct {
	Cents int `json:"cents"`
}

// [accounts]
var accounts = stream.Fold("account-", func(a Account, e stream.Event) (Account, error) {
	var moved Account
	if err := json.Unmarshal(e.Data, &moved); err != nil {
		return a, err
	}
	switch e.Name {
	case "deposited":
		a.Cents += moved.Cents
	case "withdrawn":
		a.Cents -= moved.Cents
	}
	return a, nil
})

func withdraw(ctx context.Context, hf *holdfast.Engine, id string, cents int) error {
	_, err := accounts.Do(ctx, hf, id, func(a Account) ([]stream.Event, error) {
		if a.Cents < cents {
			return nil, errors.New("not enough")
		}
		return []stream.Event{{Name: "withdrawn", Data: fmt.Appendf(nil, `{"cents": %d}`, cents)}}, nil
	})
	return err
}

// [/accounts]

// [mail]
var mail = stream.React("mail", stream.Select{Source: stream.Histories, Pattern: `^\$entity/invoice/`, Events: []string{"settled/pay"}},
	func(_ context.Context, d *stream.Delivery) error {
		d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { // in the transaction of the acknowledgment
			_, err := stream.Append(ctx, tx, "mails", stream.Any, stream.Event{Name: "sent", Causation: d.Operation})
			return err
		})
		return nil
	}, stream.Options{})

// [/mail]

func TestStreams(t *testing.T) {
	ctx := t.Context()
	var hf *holdfast.Engine
	invoices := lifecycle.MustParse[Invoice]([]byte(invoiceConfig)).Action("Charge", charge, lifecycle.Journaled()).
		AfterEffect("MailReceipt", func(context.Context, *lifecycle.Act[Invoice]) error { return nil }, lifecycle.Idempotent())
	hf = holdfasttest.Open(t, invoices, mail, stream.Feed(stream.FeedOptions{}))
	if _, err := invoices.Create(ctx, hf, "i1", Invoice{Cents: 1200}); err != nil {
		t.Fatal(err)
	}
	if _, err := invoices.Fire(ctx, hf, "i1", "pay", "admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Append(ctx, hf, "account-7", stream.None, stream.Event{Name: "deposited", Data: []byte(`{"cents": 1200}`), Correlation: "req-17"}); err != nil {
		t.Fatal(err)
	}
	if err := withdraw(ctx, hf, "7", 900); err != nil {
		t.Fatal(err)
	}
	if err := withdraw(ctx, hf, "7", 900); err == nil {
		t.Fatal("the account was overdrawn")
	}
	if _, err := holdfasttest.Settle(ctx, hf); err != nil {
		t.Fatal(err)
	}
	if sent, err := holdfast.Collect(stream.Read(ctx, hf, "mails", 0)); len(sent) != 1 || err != nil {
		t.Error(len(sent), err)
	}

	yesterday, found := time.Now().Add(-24*time.Hour), 0
	// [search]
	for e, err := range stream.Search(ctx, hf, stream.EventFilter{Correlation: "req-17", Since: yesterday, Backward: true}) {
		fmt.Println(e.Stream, e.Version, e.Name, err)
		found++ // [hide]
	}
	// [/search]
	if found != 1 {
		t.Errorf("found %d events", found)
	}

	if err := restart(ctx, hf); err != nil {
		t.Error(err)
	}
	if a, version, err := accounts.Load(ctx, hf, "7"); a.Cents != 300 || err != nil {
		t.Error(a, version, err)
	}
	if err := keepRecent(ctx, hf, 1); err != nil {
		t.Error(err)
	}
}

// [close]
func restart(ctx context.Context, hf *holdfast.Engine) error {
	state, version, err := accounts.Load(ctx, hf, "7") // an aggregate over account-7
	if err != nil {
		return err
	}
	snapshot, err := json.Marshal(state)
	if err != nil {
		return err
	}
	_, err = stream.Close(ctx, hf, "account-7", stream.Restart, stream.ExpectVersion(version), stream.Snapshot(snapshot))
	return err
}

// [/close]

func keepRecent(ctx context.Context, hf *holdfast.Engine, n stream.Version) error {
	_, version, err := accounts.Load(ctx, hf, "7")
	if err != nil {
		return err
	}
	// [truncate]
	err = accounts.Truncate(ctx, hf, "7", version-n+1) // the last n events remain
	// [/truncate]
	return err
}

func TestQuickSteps(t *testing.T) {
	same := func(_ context.Context, s string) (string, error) { return s, nil }
	parse, match, store := same, same, same
	// [behind]
	load := run.Define("import", "1",
		run.Task("parse", parse, run.Idempotent(), run.RecordBehind()),
		run.Task("match", match, run.Idempotent(), run.RecordBehind()),
		run.Task("store", store, run.Idempotent(), run.RecordBehind()),
	)
	// [/behind]
	hf := holdfasttest.Open(t, load)
	r, _, err := load.Start(t.Context(), hf, "file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holdfasttest.Settle(t.Context(), hf); err != nil {
		t.Fatal(err)
	}
	if r, err = run.Get(t.Context(), hf, r.ID); r.Status != run.Completed || err != nil {
		t.Error(r.Status, err)
	}
}

func TestARunIsStartedOnce(t *testing.T) {
	ctx := t.Context()
	invoices := lifecycle.MustParse[Invoice]([]byte(invoiceConfig)).Action("Charge", charge, lifecycle.Journaled())
	// [start]
	invoices.AfterEffect("MailReceipt", func(_ context.Context, a *lifecycle.Act[Invoice]) error {
		a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
			_, _, err := chase.Start(ctx, tx, Bill{ID: a.Entity.ID, Cents: a.Entity.Data.Cents}, run.Key("chase-"+a.Operation))
			if errors.Is(err, holdfast.ErrKeyExpired) { // it was started long ago
				return nil
			}
			return err
		})
		return nil
	}, lifecycle.Transactional())
	// [/start]
	hf := holdfasttest.Open(t, invoices, chase)
	if _, err := invoices.Create(ctx, hf, "i1", Invoice{Cents: 1200}); err != nil {
		t.Fatal(err)
	}
	if _, err := invoices.Fire(ctx, hf, "i1", "pay", "admin"); err != nil {
		t.Fatal(err)
	}
	waiting, err := holdfasttest.Settle(ctx, hf)
	if len(waiting) != 1 || waiting[0].Kind != "waitingSignal" || err != nil {
		t.Error(waiting, err)
	}
}

func TestErrors(t *testing.T) {
	ctx := t.Context()
	invoices := lifecycle.MustParse[Invoice]([]byte(invoiceConfig)).Action("Charge", charge, lifecycle.Journaled()).
		AfterEffect("MailReceipt", func(context.Context, *lifecycle.Act[Invoice]) error { return nil }, lifecycle.Idempotent())
	hf := holdfasttest.Open(t, invoices)
	if _, err := invoices.Create(ctx, hf, "i1", Invoice{}); err != nil {
		t.Fatal(err)
	}
	if _, err := invoices.Fire(ctx, hf, "i1", "pay", "admin"); err != nil {
		t.Fatal(err)
	}
	said := ""
	say := func(text string) { said = text }
	// [errors]
	_, err := invoices.Fire(ctx, hf, "i1", "pay", "admin")
	switch {
	case errors.Is(err, holdfast.ErrClaimFailed):
		say("another request is paying it") // do not retry at once
	case errors.Is(err, holdfast.ErrInvalidTransition):
		say("it is paid already")
	case errors.Is(err, holdfast.ErrOutcomeUnknown):
		say("read the invoice before you retry")
	}
	// [/errors]
	if said != "it is paid already" {
		t.Error(said, err)
	}
}

func TestKinds(t *testing.T) {
	ctx, db := t.Context(), holdfasttest.At(holdfasttest.SQLite(t))
	// [kinds]
	hf, err := holdfast.Open(ctx, db, holdfast.Config{},
		scope.Kinds(scope.Kind{Name: "cart", TTL: 48 * time.Hour, MaxAttempts: 11, Budget: 5 * time.Second}))
	// [/kinds]
	if err != nil {
		t.Fatal(err)
	}
	if err := hf.Close(); err != nil {
		t.Error(err)
	}
}

package docs_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/sqlite"
)

const invoiceConfig = `
workflow: invoice
owning_module: billing
status_types: [sent, paying, paid]
initial_status: sent
janitor: standard # recovers the claim of a process that crashed
steps:
  - step_id: 10
    step_key: pay
    status: sent
    successful_claim_state: {admin: [paying, sent]} # "paying" while the step runs; a failure reverts to "sent"
    successful_state: {admin: paid}
    action: {admin: Charge}
    success_after_effect: {admin: MailReceipt}
`

type Invoice struct {
	Cents   int    `json:"cents"`
	Receipt string `json:"receipt"`
}

// The page docs/lifecycles.md shows this program.
func Example_lifecycles() {
	defer tempFolder()() // [hide]
	ctx, stop := context.WithCancel(context.Background())
	mailed := make(chan bool, 1)
	invoices := lifecycle.MustParse[Invoice]([]byte(invoiceConfig)).
		Action("Charge", charge, lifecycle.Journaled()).
		AfterEffect("MailReceipt", func(_ context.Context, a *lifecycle.Act[Invoice]) error {
			fmt.Println("mail: receipt", a.Entity.Data.Receipt)
			mailed <- true
			return nil
		}, lifecycle.Idempotent())

	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, invoices)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { _ = hf.Run(ctx) }) // delivers after-effects, recovers from crashes
	defer background.Wait()
	defer stop()

	if _, err := invoices.Create(ctx, hf, "i1", Invoice{Cents: 1200}); err != nil {
		log.Fatal(err)
	}
	invoice, err := invoices.Fire(ctx, hf, "i1", "pay", "admin")
	fmt.Println(invoice.Status, err)
	<-mailed
	// Unordered output:
	// charging 1200 cents
	// paid <nil>
	// mail: receipt R-17
}

// charge is the action of the step "pay". Effect commits the intent before the call, and the result after it. If the step
// is resumed after a crash, a stored result is returned without another call.
func charge(ctx context.Context, a *lifecycle.Act[Invoice]) error {
	receipt, err := holdfast.Effect(ctx, "charge", func(ctx context.Context, key string) (string, error) {
		fmt.Println("charging", a.Entity.Data.Cents, "cents")
		return "R-17", nil // call your payment API here, with key as the idempotency key
	}, holdfast.OnUnknownRetry()) // if the outcome is unknown, call again with the same key; default: wait for an operator
	if err != nil {
		return err
	}
	return a.Set(Invoice{Cents: a.Entity.Data.Cents, Receipt: receipt})
}

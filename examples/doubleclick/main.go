package main

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/sqlite"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	clicks := make(chan error)
	invoices := lifecycle.MustParse[any]([]byte(`{"workflow": "invoice", "owning_module": "billing", "janitor": "standard",
		"status_types": ["sent", "paying", "paid"], "initial_status": "sent", "steps": [{"step_id": 10, "step_key": "pay",
		"status": "sent", "successful_claim_state": ["paying", "sent"], "successful_state": "paid", "action": "Charge"}]}`))
	invoices.Action("Charge", func(_ context.Context, a *lifecycle.Act[any]) error {
		fmt.Println("charging the card of", a.Entity.ID) // call your payment API here
		return nil
	}, lifecycle.Idempotent())
	hf, _ := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, invoices) // handle the errors
	defer func() { stop(); hf.Close() }()
	go hf.Run(ctx) // finishes what a crash interrupted
	_, _ = invoices.Create(ctx, hf, "i-1", map[string]int{"cents": 1200})
	click := func() { _, err := invoices.Fire(ctx, hf, "i-1", "pay", "customer"); clicks <- err }
	go click()
	go click() // a double-click
	fmt.Printf("click: %v\nclick: %v\n", <-clicks, <-clicks)
}

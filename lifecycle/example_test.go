package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/sqlite"
)

// A bill is closed once: a second call finds no step "close" at the status "closed".
func ExampleLifecycle_Fire() {
	type Bill struct {
		Cents int `json:"cents"`
	}
	bills := lifecycle.MustParse[Bill]([]byte(`
workflow: bill
owning_module: billing
status_types: [open, closing, closed]
initial_status: open
janitor: standard
steps:
  - step_id: 10
    step_key: close
    status: open
    successful_claim_state: {admin: [closing, open]}
    successful_state: {admin: closed}
    action: {admin: Print}
`)).Action("Print", func(_ context.Context, a *lifecycle.Act[Bill]) error {
		fmt.Println("printing", a.Entity.ID, a.Entity.Data.Cents, a.Entity.Status)
		return nil
	}, lifecycle.Idempotent())

	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{}, bills)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()

	if _, err := bills.Create(ctx, hf, "b1", Bill{Cents: 1200}); err != nil {
		log.Fatal(err)
	}
	bill, err := bills.Fire(ctx, hf, "b1", "close", "admin")
	fmt.Println(bill.Status, err)
	_, err = bills.Fire(ctx, hf, "b1", "close", "admin")
	fmt.Println(errors.Is(err, holdfast.ErrInvalidTransition))
	// Output:
	// printing b1 1200 closing
	// closed <nil>
	// true
}

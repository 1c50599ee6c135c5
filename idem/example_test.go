package idem_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/idem"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/sqlite"
)

// A handler that charges an invoice. A request that is repeated with its key gets the same response, and the invoice is
// charged once.
func ExampleMiddleware() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	invoices := lifecycle.MustParse[struct{}]([]byte(`
workflow: invoice
owning_module: billing
status_types: [open, paying, paid]
initial_status: open
janitor: standard
steps:
- {step_id: 10, step_key: pay, status: open, successful_claim_state: [paying, open], successful_state: paid, action: Pay}
`)).Action("Pay", func(context.Context, *lifecycle.Act[struct{}]) error {
		fmt.Println("charged")
		return nil
	}, lifecycle.Transactional())
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(dir, "app.db")), holdfast.Config{}, invoices)
	if err != nil {
		panic(err)
	}
	defer hf.Close()
	if _, err := invoices.Create(ctx, hf, "i1", struct{}{}); err != nil {
		panic(err)
	}

	userID := func(r *http.Request) string { return r.Header.Get("X-User") } // in a program, the account that is signed in
	// [middleware]
	once := idem.Middleware(hf, idem.Options{User: userID})
	mux := http.NewServeMux()
	mux.Handle("POST /invoices/{id}/pay", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		invoice, err := invoices.Fire(r.Context(), hf, r.PathValue("id"), "pay", "customer")
		if err != nil {
			http.Error(w, err.Error(), fault.CodeOf(err).Status())
			return
		}
		fmt.Fprint(w, invoice.Status)
	})))
	// [/middleware]
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/invoices/i1/pay", nil)
		r.Header.Set("Idempotency-Key", "7f3a")
		r.Header.Set("X-User", "u17")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%d %s, replayed: %t\n", w.Code, w.Body, w.Header().Get("Idempotency-Replayed") == "true")
	}
	// Output:
	// charged
	// 200 paid, replayed: false
	// 200 paid, replayed: true
}

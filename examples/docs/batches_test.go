package docs_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/sqlite"
)

type Page struct {
	URL string `json:"url"`
}

// scan calls an API that charges for each page. All attempts of an item have the same operation: pass it to the API as the
// idempotency key.
var scan = batch.Define("scan", func(_ context.Context, i *batch.Item[Page]) (string, error) {
	return "text of " + i.Input.URL, nil
}, batch.Options{MaxConcurrency: 8})

// The page docs/batches.md shows this program.
func Example_batches() {
	defer tempFolder()() // [hide]
	ctx, stop := context.WithCancel(context.Background())
	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, scan)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { _ = hf.Run(ctx) }) // processes the items
	defer background.Wait()
	defer stop()

	// The balance of a wallet must not become negative: batch.AllowNegative() allows it.
	if _, err := batch.PutWallet(ctx, hf, "acme"); err != nil {
		log.Fatal(err)
	}
	if _, err := batch.Credit(ctx, hf, "acme", 500, "payment-17"); err != nil { // repeating the reference credits nothing
		log.Fatal(err)
	}
	pages := []batch.NewItem[Page]{
		{Key: "p1", Cost: 10, Input: Page{URL: "https://example.com/1"}},
		{Key: "p2", Cost: 10, Input: Page{URL: "https://example.com/2"}},
	}
	b, err := scan.Create(ctx, hf, "acme", slices.Values(pages), batch.ID("doc-9"))
	for range time.Tick(10 * time.Millisecond) {
		if b, err = batch.Get(ctx, hf, b.ID); err != nil || b.Over() {
			break
		}
	}
	wallet, _ := batch.GetWallet(ctx, hf, "acme")
	fmt.Println(b.Status, wallet.Balance, err)
	// Output:
	// COMPLETED 480 <nil>
}

package batch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/sqlite"
)

// The items of a batch are paid for when they are taken. An item that is given up gets its cost back.
func ExampleDefine() {
	labels := batch.Define("label", func(_ context.Context, i *batch.Item[string]) (string, error) {
		if i.Input == "nowhere" {
			return "", holdfast.NonRetryable(fmt.Errorf("no such address"))
		}
		return "label for " + i.Input, nil
	}, batch.Options{})

	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx, stop := context.WithCancel(context.Background())
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{}, labels)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { _ = hf.Run(ctx) })
	defer background.Wait()
	defer stop()

	if _, err := batch.PutWallet(ctx, hf, "shop"); err != nil {
		log.Fatal(err)
	}
	if _, err := batch.Credit(ctx, hf, "shop", 100, "invoice-1"); err != nil {
		log.Fatal(err)
	}
	b, err := labels.Create(ctx, hf, "shop", slices.Values([]batch.NewItem[string]{
		{Key: "1", Cost: 10, Input: "Main Street 1"}, {Key: "2", Cost: 10, Input: "nowhere"},
	}))
	if err != nil {
		log.Fatal(err)
	}
	for range time.Tick(10 * time.Millisecond) {
		if b, err = batch.Get(ctx, hf, b.ID); err != nil || b.Status == batch.Completed {
			break
		}
	}
	for item, err := range batch.ListItems(ctx, hf, b.ID, batch.ItemFilter{}) {
		fmt.Println(item.Key, item.Status, string(item.Output), item.Error, err)
	}
	wallet, err := batch.GetWallet(ctx, hf, "shop")
	fmt.Println(wallet.Balance, err)
	// Output:
	// 1 succeeded "label for Main Street 1"  <nil>
	// 2 failed  no such address <nil>
	// 90 <nil>
}

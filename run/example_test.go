package run_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
)

// A run executes the steps of its definition. The same key starts it once.
func ExampleDefine() {
	type Order struct {
		Cents int `json:"cents"`
	}
	checkout := run.Define("checkout", "1",
		run.Task("charge", func(_ context.Context, o Order) (string, error) {
			return fmt.Sprintf("charged %d", o.Cents), nil
		}, run.Idempotent()),
		run.Task("ship", func(ctx context.Context, o Order) (string, error) {
			info, _ := run.Of(ctx)
			return "shipped " + info.Key, nil
		}, run.Idempotent()))

	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx, stop := context.WithCancel(context.Background())
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{}, checkout)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { _ = hf.Run(ctx) })
	defer background.Wait()
	defer stop()

	first, created, err := checkout.Start(ctx, hf, Order{Cents: 1200}, run.Key("order-7"))
	fmt.Println(created, err)
	again, created, err := checkout.Start(ctx, hf, Order{Cents: 1200}, run.Key("order-7"))
	fmt.Println(again.ID == first.ID, created, err)

	done, err := run.Await(ctx, hf, first.ID)
	fmt.Println(done.Status, string(done.Output), err)
	for visit, err := range run.ListSteps(ctx, hf, first.ID) {
		fmt.Println(visit.Name, visit.Status, string(visit.Output), err)
	}
	// Output:
	// true <nil>
	// true false <nil>
	// COMPLETED "shipped order-7" <nil>
	// charge COMPLETED "charged 1200" <nil>
	// ship COMPLETED "shipped order-7" <nil>
}

package stream_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// A reaction handles each event of its streams, in order. What it writes with WriteTx is committed together
// with the acknowledgement of the event, once.
func ExampleReact() {
	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx, stop := context.WithCancel(context.Background())
	handled := make(chan string)
	invoice := stream.React("invoice", stream.Select{Events: []string{"shipped"}, Pattern: "^order-"},
		func(_ context.Context, d *stream.Delivery) error {
			d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, "invoices", stream.Any, stream.Event{Name: "issued", Data: d.Data, Causation: d.Operation})
				return err
			})
			handled <- d.Stream
			return nil
		}, stream.Options{Retry: holdfast.RetryPolicy{MaxAttempts: 10}})
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{}, invoice)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { _ = hf.Run(ctx) })
	defer background.Wait()
	defer stop()

	_, err = stream.Append(ctx, hf, "order-7", stream.None, stream.Event{Name: "placed"}, stream.Event{Name: "shipped", Data: []byte(`{"cents": 100}`)})
	fmt.Println("handled", <-handled, err)
	// Output:
	// handled order-7 <nil>
}

package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// Two writers have both seen version 0. One of them wins. The other gets the current version of the stream, and writes
// nothing.
func ExampleAppend() {
	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()

	fmt.Println(stream.Append(ctx, hf, "account-7", stream.None, stream.Event{Name: "opened"}))
	fmt.Println(stream.Append(ctx, hf, "account-7", 0, stream.Event{Name: "withdrawn", Data: []byte(`{"cents": 1200}`)}))
	_, err = stream.Append(ctx, hf, "account-7", 0, stream.Event{Name: "withdrawn", Data: []byte(`{"cents": 900}`)})
	fmt.Println(errors.Is(err, holdfast.ErrConcurrency), err)
	// Output:
	// 0 <nil>
	// 1 <nil>
	// true CONCURRENCY_ERROR: stream account-7 is at version 1, expected 0: read it again and retry
}

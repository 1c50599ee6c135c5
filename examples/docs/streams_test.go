package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// The page docs/streams.md shows this program.
func Example_streams() {
	defer tempFolder()() // [hide]
	ctx := context.Background()
	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()

	last, err := stream.Append(ctx, hf, "account-7", stream.None, stream.Event{Name: "opened"})
	fmt.Println("version", last, err)
	last, err = stream.Append(ctx, hf, "account-7", last, stream.Event{Name: "deposited", Data: []byte(`{"cents": 1200}`)})
	fmt.Println("version", last, err)

	// Another writer still expects version 0: nothing is written.
	_, err = stream.Append(ctx, hf, "account-7", 0, stream.Event{Name: "withdrawn", Data: []byte(`{"cents": 900}`)})
	if errors.Is(err, holdfast.ErrConcurrency) {
		fmt.Println(err)
	}
	for e, err := range stream.Read(ctx, hf, "account-7", 0) {
		fmt.Println(e.Version, e.Name, string(e.Data), err)
	}
	// Output:
	// version 0 <nil>
	// version 1 <nil>
	// CONCURRENCY_ERROR: stream account-7 is at version 1, expected 0: read it again and retry
	// 0 opened {} <nil>
	// 1 deposited {"cents": 1200} <nil>
}

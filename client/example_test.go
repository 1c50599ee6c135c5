package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/wire"
)

// The same call under the same key takes effect once, and a refusal has its code.
func Example() {
	server, stop := startServer()
	defer stop()
	c, err := client.New(server, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx, none := context.Background(), int64(-1)
	placed := wire.Append{ExpectedVersion: &none, Events: []wire.NewEvent{{Name: "placed", Data: []byte(`{"cents": 100}`)}}}
	for range 2 {
		done, err := c.AppendEvents(ctx, "order-7", placed, client.Key("place-order-7"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("at version", done.LastVersion)
	}
	_, err = c.AppendEvents(ctx, "order-7", placed)
	fmt.Println("somebody was first:", errors.Is(err, fault.Of(fault.Concurrency)))
	for e, err := range c.ReadStream(ctx, "order-7", client.StreamRange{}) {
		fmt.Println(e.Version, e.Name, err)
	}
	// Output:
	// at version 0
	// at version 0
	// somebody was first: true
	// 0 placed <nil>
}

// startServer starts a server in this process, on a new database.
func startServer() (url string, stop func()) {
	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	api := httpapi.New(httpapi.Options{NoKeys: true})
	engine, err := holdfast.Open(context.Background(), sqlite.File(filepath.Join(folder, "holdfast.db")), holdfast.Config{}, api)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(api)
	return server.URL, func() {
		server.Close()
		_ = engine.Close()
		_ = os.RemoveAll(folder)
	}
}

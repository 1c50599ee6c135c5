package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// Counters are incremented in place. A change that depends on a read names the version that was
// read.
func ExampleClient_PatchScope() {
	server, stop := startServer()
	defer stop()
	c, err := client.New(server, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx := context.Background()
	seen, err := c.PatchScope(ctx, "session", "s-17", json.RawMessage(`{"total": 0}`), client.Absent())
	if err != nil {
		log.Fatal(err)
	}
	now, err := c.IncScope(ctx, "session", "s-17", wire.IncScope{Field: "total"}, client.Key("order-7"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.Version, string(now.State))
	_, err = c.PatchScope(ctx, "session", "s-17", json.RawMessage(`{"total": 9}`), client.ExpectVersion(seen.Version))
	fmt.Println(fault.CodeOf(err))
	// Output:
	// 1 {"total":1}
	// PRECONDITION_FAILED
}

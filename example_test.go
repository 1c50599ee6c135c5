package holdfast_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// An update runs several verbs in one transaction: all of them are committed, or none.
func ExampleEngine_Update() {
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

	err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := stream.Append(ctx, tx, "account-7", stream.None, stream.Event{Name: "opened"}); err != nil {
			return err
		}
		_, err := scope.In[map[string]int](tx, scope.Org, "totals").Inc(ctx, "accounts", 1)
		return err
	})
	fmt.Println(err)

	totals, err := scope.In[map[string]int](hf, scope.Org, "totals").Get(ctx)
	fmt.Println(totals.State["accounts"], err)
	// Output:
	// <nil>
	// 1 <nil>
}

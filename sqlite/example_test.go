package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// A row of your own table and an event are committed together.
func ExampleJoin() {
	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx := context.Background()
	path := filepath.Join(folder, "app.db")
	hf, err := holdfast.Open(ctx, sqlite.File(path), holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE payments (id TEXT PRIMARY KEY, cents INTEGER)`); err != nil {
		log.Fatal(err)
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	joined, err := sqlite.Join(hf, tx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO payments VALUES ('p1', 1200)`)
	fmt.Println(err)
	fmt.Println(stream.Append(ctx, joined, "account-7", stream.Any, stream.Event{Name: "paid"}))
	fmt.Println(tx.Commit())

	all, err := holdfast.Collect(stream.Read(ctx, hf, "account-7", 0))
	fmt.Println(len(all), err)
	// Output:
	// <nil>
	// 0 <nil>
	// <nil>
	// 1 <nil>
}

package postgres_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// Join makes Holdfast's writes part of a transaction of your own: both are committed, or neither.
func ExampleJoin() {
	defer exampleDatabase()()
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	hf, err := holdfast.Open(ctx, postgres.Pool(pool), holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	if _, err := pool.Exec(ctx, `CREATE TABLE orders (id text PRIMARY KEY)`); err != nil {
		log.Fatal(err)
	}

	own, err := pool.Begin(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer own.Rollback(ctx)
	tx, err := postgres.Join(hf, own)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := own.Exec(ctx, `INSERT INTO orders VALUES ('7')`); err != nil {
		log.Fatal(err)
	}
	if _, err := stream.Append(ctx, tx, "order-7", stream.None, stream.Event{Name: "placed"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("commit:", own.Commit(ctx))
	for e, err := range stream.Read(ctx, hf, "order-7", 0) {
		fmt.Println(e.Version, e.Name, err)
	}
	// Output:
	// commit: <nil>
	// 0 placed <nil>
}

// Any number of nodes can open the same database.
func ExampleURL() {
	defer exampleDatabase()()
	ctx := context.Background()
	for _, node := range []string{"a", "b"} {
		hf, err := holdfast.Open(ctx, postgres.URL(os.Getenv("DATABASE_URL")), holdfast.Config{Node: node})
		if err != nil {
			log.Fatal(err)
		}
		defer hf.Close()
		last, err := stream.Append(ctx, hf, "order-7", stream.Any, stream.Event{Name: "seen"})
		fmt.Println("node", node, "appended version", last, err)
	}
	// Output:
	// node a appended version 0 <nil>
	// node b appended version 1 <nil>
}

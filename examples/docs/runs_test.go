package docs_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
)

type Bill struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

type Payment struct {
	Cents int `json:"cents"`
}

// A run reminds a customer until the bill is paid. After 14 days without a payment, a manager decides.
var chase = run.Define("chase", "1",
	run.Task("remind", remind, run.Idempotent()),
	run.Signal("paid", "payment", run.Timeout(14*24*time.Hour), run.OnTimeout("ask")),
	run.If("enough", "steps.paid.output.cents >= input.cents", "end", "remind"),
	run.Approval("ask", "=\"Write off \" + input.id + \"?\"", run.For("manager")),
)

func remind(_ context.Context, b Bill) (string, error) {
	fmt.Println("remind the customer of", b.ID)
	return "sent", nil
}

// The page docs/runs.md shows this program.
func Example_runs() {
	defer tempFolder()() // [hide]
	ctx, stop := context.WithCancel(context.Background())
	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{}, chase)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { _ = hf.Run(ctx) }) // executes the steps
	defer background.Wait()
	defer stop()

	r, _, err := chase.Start(ctx, hf, Bill{ID: "b1", Cents: 900}, run.Key("chase-b1")) // hf, or your own transaction
	if err != nil {
		log.Fatal(err)
	}
	err = run.Send(ctx, hf, r.ID, "payment", Payment{Cents: 900}, run.SignalID("bank-17")) // repeating the id sends nothing new
	if err != nil {
		log.Fatal(err)
	}
	r, err = run.Await(ctx, hf, r.ID)
	fmt.Println(r.Status, err)

	again, created, err := chase.Start(ctx, hf, Bill{ID: "b1", Cents: 900}, run.Key("chase-b1"))
	fmt.Println(again.ID == r.ID, created, err) // the same run
	// Output:
	// remind the customer of b1
	// COMPLETED <nil>
	// true false <nil>
}

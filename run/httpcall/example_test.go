package httpcall_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/run/httpcall"
	"github.com/holdfast-go/holdfast/sqlite"
)

// A call sends the same Idempotency-Key with every attempt, and its response is the output of the step.
func ExampleWith() {
	rates := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("has a key:", r.Header.Get("Idempotency-Key") != "")
		fmt.Fprint(w, `{"rate": 1.25}`)
	}))
	defer rates.Close()
	convert := run.Define("convert", "1", run.Call("rate", "POST", rates.URL, run.Body(map[string]string{"from": "EUR"})))

	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	ctx, stop := context.WithCancel(context.Background())
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{},
		convert, run.Calls(httpcall.With(&http.Client{Timeout: 10 * time.Second})))
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { _ = hf.Run(ctx) })
	defer background.Wait()
	defer stop()

	r, _, err := convert.Start(ctx, hf, nil)
	if err != nil {
		log.Fatal(err)
	}
	done, err := run.Await(ctx, hf, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	for visit, err := range run.ListSteps(ctx, hf, done.ID) {
		fmt.Println(visit.Name, visit.Status, err)
	}
	// Output:
	// has a key: true
	// rate COMPLETED <nil>
}

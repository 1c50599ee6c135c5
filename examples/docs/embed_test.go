package docs_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// The page docs/how-to/embed.md shows this program.
func Example_embed() {
	defer tempFolder()()                // [hide]
	defer setenv("LISTEN", "nowhere")() // [hide]
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	// What the service has already: a database and a server.
	db, err := sql.Open("sqlite", "file:app.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	mux := http.NewServeMux()

	// New: an engine on the same database, its background work, and its health.
	hf, err := holdfast.Open(ctx, sqlite.DB(db), holdfast.Config{HistoryRetention: 90 * 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() {
		defer stop()
		if err := hf.Run(ctx); err != nil { // the database was restored from a backup: end, and be restarted
			log.Print(err)
		}
	})
	defer background.Wait()
	defer stop()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if _, err := hf.Status(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, err := stream.Append(r.Context(), hf, "order-"+r.PathValue("id"), stream.None, stream.Event{Name: "placed"})
		if errors.Is(err, holdfast.ErrConcurrency) {
			http.Error(w, "the order exists already", http.StatusConflict)
		} else if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})

	visit(mux) // [hide]
	server := http.Server{Addr: os.Getenv("LISTEN"), Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	fmt.Println(server.ListenAndServe())
	// [hide]
	// Output:
	// POST /orders/7 200
	// POST /orders/7 409
	// GET /readyz 200
	// listen tcp: address nowhere: missing port in address
	// [/hide]
}

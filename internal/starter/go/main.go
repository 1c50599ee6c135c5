// This program takes orders. However often an order is paid, it is charged once.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/sqlite"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	file := flag.String("db", "app.db", "database file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *listen, *file); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, listen, file string) error {
	db, err := openTables(ctx, file)
	if err != nil {
		return err
	}
	defer db.Close()
	orders := newOrders()
	hf, err := holdfast.Open(ctx, sqlite.File(file), holdfast.Config{}, orders)
	if err != nil {
		return err
	}
	defer hf.Close()
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes(hf, orders)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(ln) }()
	fmt.Printf("listening on http://%s\n", ln.Addr())
	return hf.Run(ctx) // finishes what a crash interrupted, until Ctrl-C
}

func routes(hf *holdfast.Engine, orders *lifecycle.Lifecycle[Order]) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(r *http.Request, id string) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			result, err := f(r, r.PathValue("id"))
			if err != nil {
				http.Error(w, err.Error(), fault.CodeOf(err).Status())
				return
			}
			_ = json.NewEncoder(w).Encode(result)
		})
	}
	handle("POST /orders/{id}", func(r *http.Request, id string) (any, error) {
		var o Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			return nil, fault.New(fault.Validation, "the body must be an order such as {\"cents\": 1200}")
		}
		return orders.Create(r.Context(), hf, id, o)
	})
	handle("POST /orders/{id}/pay", func(r *http.Request, id string) (any, error) {
		return orders.Fire(r.Context(), hf, id, "pay", "customer")
	})
	return mux
}

// Command shop sells: an order is paid once, and refunded after an approval.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := createTables(ctx, "shop.db"); err != nil {
		log.Fatal(err)
	}
	shop := newShop(paper{file: "gateway.txt", pause: 3 * time.Second})
	hf, err := holdfast.Open(ctx, sqlite.File("shop.db"), holdfast.Config{}, shop.parts()...)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	var background sync.WaitGroup
	background.Go(func() { // after-effects and recovery; later also the projection and the runs
		defer stop()
		if err := hf.Run(ctx); err != nil { // for example, after a restore from a backup: the program must be started again
			log.Print(err)
		}
	})
	defer background.Wait()

	server := http.Server{Addr: "127.0.0.1:8080", Handler: shop.routes(hf)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Println("the shop is open on http://127.0.0.1:8080")
	fmt.Println(server.ListenAndServe())
	stop() // also if the port is in use: the background work ends
}

func (s *Shop) routes(hf *holdfast.Engine) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(ctx context.Context, id string, r *http.Request) (string, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			text, err := f(r.Context(), r.PathValue("id"), r)
			if err != nil {
				http.Error(w, err.Error(), fault.CodeOf(err).Status())
				return
			}
			fmt.Fprintln(w, text)
		})
	}
	handle("POST /orders/{id}", func(ctx context.Context, id string, r *http.Request) (string, error) {
		cents, err := strconv.ParseInt(r.FormValue("cents"), 10, 64)
		if err != nil {
			return "", fault.New(fault.Validation, "cents must be a number")
		}
		return "placed", s.place(ctx, hf, id, r.FormValue("customer"), cents)
	})
	handle("POST /orders/{id}/pay", func(ctx context.Context, id string, _ *http.Request) (string, error) {
		return "paid", s.pay(ctx, hf, id)
	})
	// [hide]
	// [sales-route]
	handle("GET /sales/{id}", func(ctx context.Context, customer string, _ *http.Request) (string, error) {
		cents, err := salesOf(ctx, hf, customer)
		return fmt.Sprint(cents), err
	})
	// [/sales-route]
	// [refund-route]
	handle("POST /orders/{id}/refund", func(ctx context.Context, id string, _ *http.Request) (string, error) {
		return "a manager will decide", s.askRefund(ctx, hf, id)
	})
	// [/refund-route]
	// [/hide]
	return mux
}

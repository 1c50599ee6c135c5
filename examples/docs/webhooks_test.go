package docs_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/holdfast-go/holdfast/webhook"
)

// receive verifies a message before it parses it. A redelivered message has the same Webhook-Id.
func receive(verifier *webhook.Verifier) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := verifier.Verify(r.Header, body); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		fmt.Printf("received %s: %s\n", r.Header.Get("Webhook-Id"), body) // store the id and the work, and do the work afterwards
	}
}

// The page docs/webhooks.md shows this program.
func Example_webhooks() {
	defer setenv("WEBHOOK_SECRET", webhook.NewSecret())() // [hide]
	defer setenv("LISTEN", "nowhere")()                   // [hide]
	verifier, err := webhook.NewVerifier(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("POST /hooks", receive(verifier))
	deliver(http.DefaultServeMux) // [hide]
	fmt.Println(http.ListenAndServe(os.Getenv("LISTEN"), nil))
	// [hide]
	// Output:
	// 401
	// received msg_1: {"type":"paid"}
	// 200
	// listen tcp: address nowhere: missing port in address
	// [/hide]
}

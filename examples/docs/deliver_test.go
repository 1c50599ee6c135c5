package docs_test

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/webhook"
)

// deliver sends a message to the receiver twice: without a signature, and with one.
func deliver(receiver http.Handler) {
	body := []byte(`{"type":"paid"}`)
	for _, signed := range []bool{false, true} {
		r := httptest.NewRequest(http.MethodPost, "/hooks", bytes.NewReader(body))
		if signed {
			if err := webhook.Sign(r.Header, "msg_1", time.Now(), body, os.Getenv("WEBHOOK_SECRET")); err != nil {
				log.Fatal(err)
			}
		}
		w := httptest.NewRecorder()
		receiver.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
}

// setenv sets a variable. The returned function restores it.
func setenv(name, value string) (restore func()) {
	was := os.Getenv(name)
	if err := os.Setenv(name, value); err != nil {
		log.Fatal(err)
	}
	return func() { _ = os.Setenv(name, was) }
}

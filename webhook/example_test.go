package webhook_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/webhook"
)

// A receiver verifies the signature over the raw body before it parses it.
func ExampleVerifier_Verify() {
	secret := webhook.NewSecret()
	verifier, err := webhook.NewVerifier(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	headers, body := http.Header{}, []byte(`{"name":"paid"}`)
	if err := webhook.Sign(headers, "msg_1", time.Now(), body, secret); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(verifier.Verify(headers, body))
	fmt.Println(verifier.Verify(headers, []byte(`{"name":"refunded"}`)) != nil)
	// Output:
	// <nil>
	// true
}

package webhook

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/holdfast-go/holdfast/fault"
)

// The public Standard Webhooks library accepts our signatures, and we accept its signatures.
func TestThePublicLibraryAgrees(t *testing.T) {
	secret, body := NewSecret(), []byte(`{"type":"invoice.closed","data":{"id":"i1"}}`)
	theirs, err := standard.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	if err := Sign(h, "msg_1", time.Now(), body, NewSecret(), secret); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Verify(body, h); err != nil {
		t.Errorf("the public library refuses our signature: %v", err)
	}
	if err := theirs.Verify(append(body, ' '), h); err == nil {
		t.Error("the public library accepts a changed body")
	}
	ours, err := NewVerifier(NewSecret(), secret)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	signature, err := theirs.Sign("msg_2", at, body)
	if err != nil {
		t.Fatal(err)
	}
	h = http.Header{}
	h.Set("webhook-id", "msg_2")
	h.Set("webhook-timestamp", itoa(at.Unix()))
	h.Set("webhook-signature", "v2,whatever "+signature)
	if err := ours.Verify(h, body); err != nil {
		t.Errorf("our verifier refuses the public library's signature: %v", err)
	}
}

func itoa(n int64) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append([]byte{byte('0' + n%10)}, b...)
	}
	return string(b)
}

func TestARepeatedOrStaleMessageIsRefused(t *testing.T) {
	secret, body := NewSecret(), []byte(`{}`)
	v, err := NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	v.now = func() time.Time { return now }
	h := http.Header{}
	if err := Sign(h, "msg_1", now, body, secret); err != nil {
		t.Fatal(err)
	}
	if err := v.VerifyOnce(h, body); err != nil {
		t.Fatal(err)
	}
	if err := v.VerifyOnce(h, body); !errors.Is(err, fault.Of(fault.Conflict)) {
		t.Errorf("second delivery: got %v, want CONFLICT", err)
	}
	for _, later := range []time.Duration{Tolerance + time.Second, -Tolerance - time.Second} {
		v.now = func() time.Time { return now.Add(later) }
		if err := v.Verify(h, body); !errors.Is(err, fault.Of(fault.Auth)) {
			t.Errorf("after %s: got %v, want an auth error", later, err)
		}
	}
	v.now = func() time.Time { return now }
	for name, change := range map[string]func(http.Header){
		"no id":            func(h http.Header) { h.Del(HeaderID) },
		"two ids":          func(h http.Header) { h.Add(HeaderID, "msg_2") },
		"another id":       func(h http.Header) { h.Set(HeaderID, "msg_2") },
		"another time":     func(h http.Header) { h.Set(HeaderTimestamp, itoa(now.Unix()+1)) },
		"no time":          func(h http.Header) { h.Set(HeaderTimestamp, "soon") },
		"no signature":     func(h http.Header) { h.Del(HeaderSignature) },
		"half a signature": func(h http.Header) { h.Set(HeaderSignature, strings.TrimPrefix(h.Get(HeaderSignature), "v1,")) },
	} {
		other := h.Clone()
		change(other)
		if err := v.Verify(other, body); !errors.Is(err, fault.Of(fault.Auth)) {
			t.Errorf("%s: got %v, want an auth error", name, err)
		}
	}
}

func TestBadSecretsAndIds(t *testing.T) {
	for _, secret := range []string{"", "whsec_", "whsec_%%%", "whsec_c2hvcnQ=", strings.Repeat("A", 200)} {
		if _, err := NewVerifier(secret); !errors.Is(err, fault.Of(fault.Validation)) {
			t.Errorf("secret %q: got %v, want a validation error", secret, err)
		}
	}
	for _, id := range []string{"", "a.b", "a b", "a\nb"} {
		if err := Sign(http.Header{}, id, time.Now(), nil, NewSecret()); !errors.Is(err, fault.Of(fault.Validation)) {
			t.Errorf("id %q: got %v, want a validation error", id, err)
		}
	}
}

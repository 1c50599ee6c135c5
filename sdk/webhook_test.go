package sdk

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/webhook"
)

// message is a case of the programs "webhook".
type message struct {
	Name    string            `json:"name"`
	Secrets []string          `json:"secrets"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

// TestWebhooks verifies that the SDKs accept the signatures of package webhook, and refuse others.
func TestWebhooks(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	secret, other := webhook.NewSecret(), webhook.NewSecret()
	body := []byte(`{"type":"paid","data":{"name":"ä"}}`)
	signed := func(name string, at time.Time, secrets []string, change func(m *message), by ...string) message {
		h := http.Header{}
		if err := webhook.Sign(h, "msg_1", at, body, by...); err != nil {
			t.Fatal(err)
		}
		m := message{name, secrets, make(map[string]string), body}
		for header := range h {
			m.Headers[strings.ToLower(header)] = h.Get(header)
		}
		if change != nil {
			change(&m)
		}
		return m
	}
	now, one := time.Now(), []string{secret}
	messages := []message{
		signed("valid", now, one, nil, secret),
		signed("rotated by the sender", now, one, nil, other, secret),
		signed("rotated by the receiver", now, []string{other, secret}, nil, secret),
		signed("another version", now, one, func(m *message) { m.Headers["webhook-signature"] = "v2,ä " + m.Headers["webhook-signature"] }, secret),
		signed("a bit old", now.Add(-4*time.Minute), one, nil, secret),
		signed("another secret", now, one, nil, other),
		signed("another body", now, one, func(m *message) { m.Body = append(m.Body, ' ') }, secret),
		signed("another id", now, one, func(m *message) { m.Headers["webhook-id"] = "msg_2" }, secret),
		signed("no id", now, one, func(m *message) { delete(m.Headers, "webhook-id") }, secret),
		signed("no signature", now, one, func(m *message) { delete(m.Headers, "webhook-signature") }, secret),
		signed("no time", now, one, func(m *message) { m.Headers["webhook-timestamp"] = "now" }, secret),
		signed("old", now.Add(-6*time.Minute), one, nil, secret),
		signed("from the future", now.Add(6*time.Minute), one, nil, secret),
		signed("a bad secret", now, []string{"whsec_c2hvcnQ="}, nil, secret),
		signed("no secret", now, []string{}, nil, secret),
	}
	const want = `valid: paid
rotated by the sender: paid
rotated by the receiver: paid
another version: paid
a bit old: paid
another secret: AUTH_ERROR
another body: AUTH_ERROR
another id: AUTH_ERROR
no id: AUTH_ERROR
no signature: AUTH_ERROR
no time: AUTH_ERROR
old: AUTH_ERROR
from the future: AUTH_ERROR
a bad secret: VALIDATION_ERROR
no secret: VALIDATION_ERROR
`
	raw, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "messages.json")
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, l language) {
		if got := printed(t, l.command(t, "webhook", nil, "MESSAGES="+file)); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}

package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// networks parses networks.
func networks(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// from requests a path from an address, and returns the status.
func (d *testAPI) from(addr, method, path, key string, forwarded ...string) int {
	d.t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = addr
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	r.Header.Set("X-Real-Ip", "10.9.9.9")
	r.Header.Set("Forwarded", "for=10.9.9.9")
	for _, text := range forwarded {
		r.Header.Add("X-Forwarded-For", text)
	}
	w := httptest.NewRecorder()
	d.api.ServeHTTP(w, r)
	return w.Code
}

// TestNetworksOfAServer verifies that a server refuses other networks on every path but /healthz and /readyz, with and without a key, and
// that it logs and counts that.
func TestNetworksOfAServer(t *testing.T) {
	var log lockedBuffer
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{AllowFrom: networks("10.0.0.0/8", "2001:db8::/32"), SecretKeys: sealing, Log: slog.New(slog.NewTextHandler(&log, nil))})
	_, key := d.newKey("default", keys.Read, 0)
	paths := []string{"/", "/docs", "/assets/app.js", "/metrics", "/api/v1/openapi.json", "/api/v1/nothing", "/nothing"}
	for _, r := range d.api.Routes() {
		paths = append(paths, "/api/v1/"+pathOf(r, unknownIDs(r)))
	}
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			if status := d.from("192.168.0.1:5", method, path, key); status != 403 {
				t.Errorf("%s %s from another network: got status %d", method, path, status)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status := d.from("192.168.0.1:5", "GET", path, ""); status == 403 {
			t.Errorf("%s from another network is refused", path)
		}
	}
	for addr, status := range map[string]int{"10.1.2.3:5": 200, "[::ffff:10.1.2.3]:5": 200, "[2001:db8::7]:5": 200, "[::ffff:192.168.0.1]:5": 403, "": 403, "@": 403} {
		if got := d.from(addr, "GET", "/api/v1/session", key, "10.1.2.3"); got != status {
			t.Errorf("from %q: got status %d, want %d", addr, got, status)
		}
	}
	if got := d.from("10.1.2.3:5", "GET", "/api/v1/session", ""); got != 401 {
		t.Errorf("without a key: got status %d", got)
	}
	if text := log.String(); !strings.Contains(text, "address refused") || !strings.Contains(text, "address=192.168.0.1") || strings.Count(text, "address refused") > 100 {
		t.Errorf("logged:\n%s", text)
	}
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.RemoteAddr = "10.1.2.3:5"
	r.Header.Set("X-Api-Key", key)
	w := httptest.NewRecorder()
	d.api.ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), `holdfast_http_address_refusals_total{list="server"}`) {
		t.Error("the refusals are not counted")
	}
}

// TestTrustedProxies verifies which address counts behind proxies, for the networks of a server and of a key.
func TestTrustedProxies(t *testing.T) {
	hf := holdfasttest.Open(t)
	proxies := networks("172.16.0.0/12", "fd00::/8")
	server := newTestAPI(t, hf, httpapi.Options{AllowFrom: networks("10.0.0.0/8"), TrustedProxies: proxies})
	byKey := newTestAPI(t, hf, httpapi.Options{TrustedProxies: proxies})
	_, key := server.newKey("default", keys.Read, 0)
	limited := byKey.restricted(keys.Read, keys.Restrictions{From: networks("10.0.0.0/8")}).key
	for _, x := range []struct {
		addr      string
		forwarded []string
		status    int
	}{
		{"172.16.0.1:5", []string{"10.0.0.1"}, 200},
		{"[::ffff:172.16.0.1]:5", []string{"::ffff:10.0.0.1"}, 200},
		{"[fd00::1]:5", []string{"10.0.0.1:4711"}, 200},
		{"172.16.0.1:5", []string{"10.0.0.1, 172.16.0.2"}, 200},
		{"172.16.0.1:5", []string{"192.168.0.1", "10.0.0.1"}, 200},
		{"172.16.0.1:5", []string{"nonsense, 10.0.0.1"}, 200},
		{"172.16.0.1:5", []string{"192.168.0.1"}, 403},
		{"172.16.0.1:5", []string{"10.0.0.1, 192.168.0.1"}, 403}, // what the client says, and the client
		{"172.16.0.1:5", []string{"10.0.0.1", "192.168.0.1, 172.16.0.2"}, 403},
		{"172.16.0.1:5", []string{"10.0.0.1, nonsense"}, 403},
		{"172.16.0.1:5", []string{"10.0.0.1,"}, 403},
		{"172.16.0.1:5", nil, 403},
		{"10.0.0.1:5", []string{"192.168.0.1"}, 200}, // not a proxy
		{"192.168.0.1:5", []string{"10.0.0.1"}, 403},
	} {
		for what, got := range map[string]int{
			"the server": server.from(x.addr, "GET", "/api/v1/session", key, x.forwarded...),
			"the key":    byKey.from(x.addr, "GET", "/api/v1/session", limited, x.forwarded...),
		} {
			if got != x.status {
				t.Errorf("the networks of %s, from %s with %q: got status %d, want %d", what, x.addr, x.forwarded, got, x.status)
			}
		}
	}
}

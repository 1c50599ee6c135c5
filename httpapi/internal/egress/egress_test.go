package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
)

// hostile are URLs that must not be called, whatever they resolve to.
var hostile = []string{
	"http://127.0.0.1/", "https://127.0.0.1/", "https://127.1/", "https://127.0.0.1.:443/", "https://2130706433/", "https://0177.0.0.1/", "https://0x7f000001/",
	"https://0x7f.0.0.1/", "https://017700000001/", "https://127.0.0.1:22/", "https://localhost/", "https://LOCALHOST./", "https://[::1]/", "https://[::]/",
	"https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::127.0.0.1]/", "https://[64:ff9b::7f00:1]/", "https://[2002:7f00:1::]/",
	"https://[fe80::1]/", "https://[fe80::1%25eth0]/", "https://[fd00:ec2::254]/", "https://[fc00::1]/", "https://[ff02::1]/", "https://[fec0::1]/",
	"https://0.0.0.0/", "https://0/", "https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/latest/meta-data/",
	"https://[::ffff:169.254.169.254]/", "https://100.64.0.1/", "https://198.18.0.1/", "https://192.0.2.1/", "https://224.0.0.1/", "https://255.255.255.255/",
	"https://240.0.0.1/", "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_INFO", "http://example.com/", "https://user:pass@example.com/",
	"https:///path", "https://example.com:0/", "//example.com/", "https://%31%32%37.0.0.1/", "javascript:alert(1)", "https://" + strings.Repeat("a", 3000) + ".com/",
}

// TestHostileURLsAreRefused verifies that a hostile URL is refused by CheckURL or, if its text is
// inconspicuous, when it is called.
func TestHostileURLsAreRefused(t *testing.T) {
	if len(hostile) < 40 {
		t.Fatalf("only %d hostile URLs", len(hostile))
	}
	client := Policy{}.Client()
	for _, text := range hostile {
		if _, err := (Policy{}).CheckURL(text); err != nil {
			if !errors.Is(err, fault.Of(fault.Forbidden)) {
				t.Errorf("%s: got %v, want FORBIDDEN", text, err)
			}
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, text, strings.NewReader("{}"))
		if err != nil {
			continue
		}
		if a, err := Do(client, r, 1000); !errors.Is(err, fault.Of(fault.Forbidden)) {
			t.Errorf("%s was called: got status %d, %v", text, a.Status, err)
		}
	}
}

func TestPublicAddresses(t *testing.T) {
	for _, text := range []string{"93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"} {
		if !Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is not classified as public", text)
		}
	}
	for _, text := range []string{"https://example.com/hook?x=1", "https://example.com:8443/", "https://1.1.1.1/"} {
		if _, err := (Policy{}).CheckURL(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// loopback allows calls to the tests' own servers.
func loopback() Policy { return Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}} }

// TestRedirectsAreJudged verifies that each redirect is checked: a redirect to a forbidden address
// is not followed, although the first address is allowed.
func TestRedirectsAreJudged(t *testing.T) {
	var to atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			fmt.Fprint(w, "end")
			return
		}
		http.Redirect(w, r, to.Load().(string), http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	client := loopback().Client()
	call := func() (Answer, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		return Do(client, r, 1000)
	}
	for _, text := range []string{"http://169.254.169.254/", "https://169.254.169.254/", "https://[::ffff:169.254.169.254]/", "http://10.0.0.1/", "file:///etc/passwd", "https://2852039166/"} {
		to.Store(text)
		if a, err := call(); !errors.Is(err, fault.Of(fault.Forbidden)) || !a.Sent {
			t.Errorf("redirect to %s: got %+v, %v, want FORBIDDEN after the call was sent", text, a, err)
		}
	}
	to.Store(srv.URL + "/end")
	if a, err := call(); err != nil || string(a.Body) != "end" {
		t.Errorf("allowed redirect: got %s, %v", a.Body, err)
	}
	to.Store(srv.URL + "/again")
	if _, err := call(); !errors.Is(err, fault.Of(fault.Forbidden)) {
		t.Errorf("endless redirects: got %v, want FORBIDDEN", err)
	}
}

// TestARefusedRedirectMayHaveHappened verifies that the guarded client says that nothing happened if it refuses the first
// address of a call, and does not say so if a receiver has redirected the call.
func TestARefusedRedirectMayHaveHappened(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://rebinding.example/", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	client := loopback().Guarded()
	transport := client.Transport.(guard).next.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, strings.Replace(address, "rebinding.example", "10.0.0.1", 1)) // what the name resolves to
	}
	for url, want := range map[string]bool{"https://rebinding.example/": true, srv.URL: false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = client.Do(r); !errors.Is(err, fault.Of(fault.Forbidden)) || effects.DidNotHappen(err) != want { //nolint:bodyclose // there is no response
			t.Errorf("%s: got %v, did not happen: %t, want %t", url, err, effects.DidNotHappen(err), want)
		}
	}
}

// TestANameThatChangesItsMeaning verifies that the address is checked when it is dialled: a name
// that resolves to a public address first and to a private one later is not reached the second
// time.
func TestANameThatChangesItsMeaning(t *testing.T) {
	reached := new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer srv.Close()
	client := Policy{}.Client()
	transport := client.Transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial(ctx, network, srv.Listener.Addr().String()) // what the name resolves to now
	}
	u, err := (Policy{}).CheckURL("https://rebinding.example/")
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := Do(client, r, 1000); !errors.Is(err, fault.Of(fault.Forbidden)) || reached.Load() > 0 || a.Sent {
		t.Errorf("the address was called: %+v, %v", a, err)
	}
}

// TestAGetFollowsRedirects verifies that a GET follows a redirect of each kind, and that a POST
// does not follow one that would turn it into a GET.
func TestAGetFollowsRedirects(t *testing.T) {
	var status atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			fmt.Fprint(w, r.Method)
			return
		}
		http.Redirect(w, r, "/end", int(status.Load()))
	}))
	defer srv.Close()
	client := loopback().Client()
	for _, code := range []int{301, 302, 303, 307, 308} {
		status.Store(int64(code))
		for _, body := range []io.Reader{nil, http.NoBody, strings.NewReader("")} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			if a, err := Do(client, r, 1000); err != nil || string(a.Body) != "GET" {
				t.Errorf("status %d after GET: got %s, %v", code, a.Body, err)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		a, err := Do(client, r, 1000)
		if code >= 307 && (err != nil || string(a.Body) != "POST") || code < 307 && !errors.Is(err, fault.Of(fault.Forbidden)) {
			t.Errorf("status %d after POST: got %s, %v", code, a.Body, err)
		}
	}
}

// TestPlainHTTPGoesToAllowedNetworksAlone verifies that an allowed network does not permit plain
// HTTP to the public internet, whatever the host name is.
func TestPlainHTTPGoesToAllowedNetworksAlone(t *testing.T) {
	for _, address := range []string{"1.1.1.1:80", "[2606:4700:4700::1111]:80", "10.0.0.1:80"} {
		if conn, err := loopback().transport("http").DialContext(t.Context(), "tcp", address); !errors.Is(err, errRefused) {
			t.Errorf("%s: got %v, %v, want it refused", address, conn, err)
		}
	}
}

func TestAnAnswerThatIsTooLarge(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 5000)) }))
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := Do(loopback().Client(), r, 1000); !errors.Is(err, fault.Of(fault.PayloadTooLarge)) || len(a.Body) != 1000 {
		t.Errorf("got %d bytes and %v, want 1000 and PAYLOAD_TOO_LARGE", len(a.Body), err)
	}
}

// TestACallIsNotSentAgain verifies that a call whose connection breaks is sent once, although
// net/http would resend it.
func TestACallIsNotSentAgain(t *testing.T) {
	calls := new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer srv.Close()
	client := loopback().Client()
	for i := range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		if _, err := Do(client, r, 1000); (err == nil) != (i == 0) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("two calls were sent %d times, want 2", n)
	}
}

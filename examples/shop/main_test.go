package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/holdfasttest"
)

// TestTheTutorial sends the requests of docs/tutorial.md, and verifies the responses that the page shows.
func TestTheTutorial(t *testing.T) {
	path := holdfasttest.SQLite(t)
	if err := createTables(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	shop := newShop(paper{file: filepath.Join(t.TempDir(), "gateway.txt"), pause: 300 * time.Millisecond})
	hf := holdfasttest.OpenOn(t, holdfasttest.At(path), shop.parts()...)
	server := httptest.NewServer(shop.routes(hf))
	defer server.Close()
	request := func(method, path, form string) string {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return strings.TrimSpace(string(body))
	}
	settle := func() {
		t.Helper()
		if err := holdfasttest.SettleWith(t.Context(), hf, approve); err != nil {
			t.Fatal(err)
		}
	}

	form := url.Values{"customer": {"ada"}, "cents": {"1200"}}.Encode()
	if got := request("POST", "/orders/o1", form); got != "placed" {
		t.Errorf("got %q", got)
	}
	var clicks sync.WaitGroup
	got := make([]string, 2)
	for i := range got {
		clicks.Go(func() { got[i] = request("POST", "/orders/o1/pay", "") })
	}
	clicks.Wait()
	if slices.Sort(got); got[1] != "paid" || !strings.HasPrefix(got[0], `CLAIM_FAILED: another operation is already in progress: step "pay" of order "o1", since 20`) {
		t.Errorf("got %q", got)
	}
	settle()
	if got := request("GET", "/sales/ada", ""); got != "1200" {
		t.Errorf("sales are %s", got)
	}
	if got := request("POST", "/orders/o1/refund", ""); got != "a manager will decide" {
		t.Errorf("got %q", got)
	}
	settle()
	if got := request("GET", "/sales/ada", ""); got != "0" {
		t.Errorf("sales are %s", got)
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/postgres"
)

// statement matches a statement of the shop.
var statement = regexp.MustCompile("`((?:INSERT|UPDATE|DELETE|SELECT)[^`]*)`")

// TestStatementsOnPostgreSQL verifies that the shop's SQL is also that of PostgreSQL, as docs/tutorial.md says.
func TestStatementsOnPostgreSQL(t *testing.T) {
	hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t)))
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := postgres.Raw(tx).Exec(ctx, schema); err != nil {
			return err
		}
		n := 0
		for _, file := range []string{"shop.go", "sales.go"} {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			for _, m := range statement.FindAllStringSubmatch(string(text), -1) {
				n++
				if _, err := postgres.Raw(tx).Exec(ctx, fmt.Sprintf("PREPARE shop_%d AS %s", n, m[1])); err != nil {
					return fmt.Errorf("%s: %w", m[1], err)
				}
			}
		}
		if n < 5 {
			return fmt.Errorf("only %d statements were found", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

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

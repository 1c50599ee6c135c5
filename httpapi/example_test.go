package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/sqlite"
)

// An API is an http.Handler. Without NoKeys, every request needs an API key.
func ExampleNew() {
	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	api := httpapi.New(httpapi.Options{NoKeys: true})
	hf, err := holdfast.Open(context.Background(), sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{}, api)
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()
	server := httptest.NewServer(api)
	defer server.Close()

	post := func(body string) {
		resp, err := server.Client().Post(server.URL+"/api/v1/streams/order-7/events", "application/json", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusCreated {
			fmt.Println(resp.Status)
			return
		}
		problem, _ := io.ReadAll(resp.Body)
		fmt.Println(resp.Status, strings.Contains(string(problem), `"code":"CONCURRENCY_ERROR"`))
	}
	post(`{"expectedVersion": -1, "events": [{"name": "placed", "data": {"cents": 100}}]}`)
	post(`{"expectedVersion": -1, "events": [{"name": "placed", "data": {"cents": 100}}]}`)
	// Output:
	// 201 Created
	// 409 Conflict true
}

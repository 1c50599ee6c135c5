package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httpapi/internal/room"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/clock"
)

func TestAnAnswerThatIsWrittenWaitsForNoRoom(t *testing.T) {
	api, _, _ := newAPI(t)
	put := httptest.NewRequest("PATCH", "http://127.0.0.1/api/v1/scopes/k/s", strings.NewReader(`{"text":"`+strings.Repeat("x", 2*room.SmallBytes)+`"}`))
	put.Header.Set("Content-Type", table.MergePatch)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, put)
	etag := w.Header().Get("ETag")
	if w.Code >= 300 {
		t.Fatalf("put: %d %s", w.Code, w.Body)
	}
	if etag == "" {
		etag = ask(api, "GET", "/api/v1/scopes/k/s").Header().Get("ETag")
	}
	all := api.room.Share(httptest.NewRecorder())
	all.Workspace = "other"
	if !all.Try(room.Bytes) {
		t.Fatal("the room has less than room.Bytes")
	}
	defer all.End()
	begun := clock.Now()
	if got := ask(api, "GET", "/api/v1/scopes/k/s", "If-None-Match", etag); got.Code != http.StatusNotModified || clock.Since(begun) >= room.LongestInLine {
		t.Errorf("got status %d after %s, want 304 without waiting", got.Code, clock.Since(begun))
	}
}

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// reads fails unless the stream has exactly these events.
func (d *testAPI) reads(want string) {
	d.t.Helper()
	var got wire.List[wire.Event]
	d.want(d.ask("GET", "streams/s/events", nil, &got), 200, "")
	var all []string
	for _, e := range got.Items {
		all = append(all, fmt.Sprintf("%d:%s", e.Version, e.Name))
	}
	if strings.Join(all, " ") != want {
		d.t.Errorf("stream has events %q, want %q", all, want)
	}
}

// TestACloseCoversAVersion verifies that a close that covers less than the stream is refused with
// the stream's version; that repeating a close returns the same response, whatever was appended
// since; and that it is refused once the stream was closed again.
func TestACloseCoversAVersion(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		d := newTestAPI(t, hf, httpapi.Options{NoKeys: true})
		refused := func(body string, code fault.Code, last int) {
			t.Helper()
			p := d.want(d.ask("POST", "streams/s/close", body, nil), 409, code)
			if fmt.Sprint(p.Fields["lastVersion"]) != fmt.Sprint(last) {
				t.Errorf("got problem %+v", p)
			}
		}
		closes := func(body string, last int64) {
			t.Helper()
			for range 2 {
				var done wire.ClosedStream
				d.want(d.ask("POST", "streams/s/close", body, &done), 200, "")
				if done.LastVersion != last {
					t.Errorf("got %+v, want last version %d", done, last)
				}
			}
		}
		d.append("s", 3)
		d.append("s", 1) // after it was read
		refused(`{"mode":"restart","expectedVersion":2,"snapshot":{"n":3}}`, fault.Concurrency, 3)
		refused(`{"mode":"archive","expectedVersion":2}`, fault.Concurrency, 3)
		refused(`{"mode":"tombstone","expectedVersion":4}`, fault.Concurrency, 3)
		d.reads("0:n 1:n 2:n 3:n")

		const first = `{"mode":"restart","expectedVersion":3,"snapshot":{"n":4}}`
		closes(first, 4)
		d.append("s", 1)
		closes(first, 4)
		d.reads("4:$snapshot 5:n")
		refused(`{"mode":"restart","expectedVersion":3,"snapshot":{"n":5}}`, fault.Concurrency, 5)

		closes(`{"mode":"restart","expectedVersion":5,"snapshot":{"n":5}}`, 6)
		d.append("s", 1)
		refused(first, fault.Concurrency, 7)
		d.reads("6:$snapshot 7:n")

		closes(`{"mode":"archive","expectedVersion":7}`, 7)
		refused(`{"mode":"archive","expectedVersion":6}`, fault.Conflict, 7)
		refused(first, fault.Conflict, 7)
		d.reads("6:$snapshot 7:n")
	})
}

// TestACloseOfADeadOwnersKeyIsRepeated verifies that a close whose server crashed before it stored
// the response is the same close when it is repeated, although events were appended since.
func TestACloseOfADeadOwnersKeyIsRepeated(t *testing.T) {
	const body = `{"expectedVersion":2,"mode":"restart","snapshot":{"n":3}}`
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		d := newTestAPI(t, hf, httpapi.Options{NoKeys: true})
		d.append("s", 3)
		d.holdKey("closeStream", "k", "POST", "streams/s/close", body)
		d.want(d.ask("POST", "streams/s/close", body, nil), 200, "") // done by the crashed server
		d.append("s", 1)
		d.want(d.ask("POST", "streams/s/close", body, nil, keyHeader, "k"), 409, fault.KeyInFlight)
		holdfasttest.Advance(t, d.engine, 2*time.Minute)
		for i := range 2 {
			var done wire.ClosedStream
			resp := d.ask("POST", "streams/s/close", body, &done, keyHeader, "k")
			d.want(resp, 200, "")
			if done.LastVersion != 3 || (resp.Header.Get(replayedHeader) == "true") != (i == 1) {
				t.Errorf("request %d: got %+v, want last version 3 and a replay only the second time", i, done)
			}
		}
		d.reads("3:$snapshot 4:n")
	})
}

// V, at every point and for every fault, that a close under a key that is repeated until it gets a
// response loses no acknowledged event, before or after it.
func TestCrashOfAKeyedClose(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{Do: restartUnderAKey, Check: func(ctx context.Context, hf *holdfast.Engine) error {
		all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0))
		if err != nil || len(all) != 2 || all[0].Name != "$snapshot" || all[1].Name != "d" {
			return fmt.Errorf("stream has %+v, want a snapshot and d: %w", all, err)
		}
		return nil
	}})
}

// restartUnderAKey appends three events, restarts their stream, appends one more, and restarts it
// as before under another key.
func restartUnderAKey(ctx context.Context, hf *holdfast.Engine) error {
	api := httpapi.On(hf, httpapi.Options{NoKeys: true, Log: slog.New(slog.DiscardHandler)})
	defer api.Stop()
	send := func(path, body, key string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/api/v1/streams/s/"+path, strings.NewReader(body)).WithContext(ctx)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Holdfast-Workspace", store.WorkspaceOf(ctx))
		r.Header.Set(keyHeader, key)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, step := range [][3]string{
		{"events", `{"expectedVersion":-1,"events":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, "first"},
		{"close", `{"mode":"restart","expectedVersion":2,"snapshot":{"n":3}}`, "close"},
		{"events", `{"events":[{"name":"d"}]}`, "second"},
		{"close", `{"mode":"restart","expectedVersion":2,"snapshot":{"n":3}}`, "another"},
	} {
		code, text := send(step[0], step[1], step[2])
		if code == http.StatusConflict && strings.Contains(text, string(fault.KeyInFlight)) { // it waits, as the response asks
			return errors.Join(errors.New("request in flight"), store.Shift(ctx, engine.Of(hf), time.Minute))
		}
		if code > http.StatusCreated || step[0] == "close" && !strings.Contains(text, `"lastVersion":3`) {
			return fmt.Errorf("%s returned status %d %s", step, code, text)
		}
	}
	return nil
}

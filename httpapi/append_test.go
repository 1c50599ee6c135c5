package httpapi_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

// Verifies that the response to an append, which is made from the request, has what a read returns: for a new stream
// and an existing one, with and without an expected version, in the fast and in the general form, and under a key,
// also when the request is repeated.
func TestAnAppendReturnsWhatIsStored(t *testing.T) {
	const body = `{"events": [{"name": "a", "data": {"z": 1, "a": [1.50, 123456789012345678901234567890, "é\n"]}, "actor": "ann", "correlation": "c1", "causation": "c2"}, {"name": "b"}]}`
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var got []wire.Event
		for i, headers := range [][]string{nil, nil, {"Idempotency-Key", "k"}, {"Idempotency-Key", "k"}} {
			var done wire.Appended
			d.want(d.ask("POST", "streams/s/events", body, &done, headers...), 201, "")
			if last := int64(2*min(i+1, 3) - 1); done.LastVersion != last || len(done.Events) != 2 {
				t.Fatalf("append %d returned %+v, want the last version %d", i, done, last)
			}
			if i < 3 {
				got = append(got, done.Events...)
			}
		}
		var stored wire.List[wire.Event]
		d.want(d.ask("GET", "streams/s/events", nil, &stored), 200, "")
		for i := range stored.Items {
			stored.Items[i].Position = nil // assigned later
		}
		if g, w := text(t, got), text(t, stored.Items); g != w {
			t.Errorf("got  %s\nread %s", g, w)
		}
		d.want(d.ask("POST", "streams/s/events", `{"events": [{"name": "a", "data": {"$sealed":"x"}}]}`, nil), 400, fault.Validation)
	})
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

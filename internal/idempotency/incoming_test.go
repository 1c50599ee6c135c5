package idempotency_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/testkit"
)

// incoming is a request whose fingerprint the tests compare with others.
func incoming() idempotency.Incoming {
	return idempotency.Incoming{Owner: "a", Method: "POST", Target: "/x?y=1", Conditions: [][]string{{`"1"`}, nil}, Body: []byte(`{"a": 1, "b": [2]}`), JSON: true}
}

// TestFingerprint verifies what is part of a request's identity, and that whitespace and member
// order are not, only in JSON.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	same := incoming()
	same.Body = []byte(` {"b":[2],"a":1}`)
	if same.Fingerprint() != incoming().Fingerprint() {
		t.Error("the fingerprint depends on the order of JSON members")
	}
	same.Body = []byte(`{"a": 1.0, "b": [20e-1]}`)
	if same.Fingerprint() != incoming().Fingerprint() {
		t.Error("the fingerprint depends on how a number is written")
	}
	seen := map[string]string{incoming().Fingerprint(): "the first"}
	for name, change := range map[string]func(*idempotency.Incoming){
		"owner":          func(a *idempotency.Incoming) { a.Owner = "b" },
		"method":         func(a *idempotency.Incoming) { a.Method = "PUT" },
		"path":           func(a *idempotency.Incoming) { a.Target = "/z?y=1" },
		"query":          func(a *idempotency.Incoming) { a.Target = "/x?y=2" },
		"condition":      func(a *idempotency.Incoming) { a.Conditions = [][]string{{`"2"`}, nil} },
		"its header":     func(a *idempotency.Incoming) { a.Conditions = [][]string{nil, {`"1"`}} },
		"no condition":   func(a *idempotency.Incoming) { a.Conditions = nil },
		"body":           func(a *idempotency.Incoming) { a.Body = []byte(`{"a": 1, "b": [3]}`) },
		"number":         func(a *idempotency.Incoming) { a.Body = []byte(`{"a": 1.01, "b": [2]}`) },
		"text":           func(a *idempotency.Incoming) { a.Body = []byte(`{"a": "1", "b": [2]}`) },
		"a member twice": func(a *idempotency.Incoming) { a.Body = []byte(`{"a": 1, "a": 1, "b": [2]}`) },
		"kind":           func(a *idempotency.Incoming) { a.JSON = false },
		"plain bytes":    func(a *idempotency.Incoming) { a.JSON, a.Body = false, same.Body },
		"no body":        func(a *idempotency.Incoming) { a.Body = nil },
	} {
		other := incoming()
		change(&other)
		print := other.Fingerprint()
		if was, twice := seen[print]; twice {
			t.Errorf("%s: same fingerprint as %s", name, was)
		}
		seen[print] = name
	}
}

// TestReplay verifies the responses under a known key: another request is refused, also one of
// another owner, and a repetition is refused while the first is in flight, with the remaining time
// in whole seconds.
func TestReplay(t *testing.T) {
	t.Parallel()
	f := &idempotency.Flight{Name: "my key", Fingerprint: incoming().Fingerprint()}
	body, owner := incoming(), incoming()
	body.Body, owner.Owner = nil, "b"
	both := body
	both.Owner = "b"
	for name, c := range map[string]struct {
		q     idempotency.Request
		want  fault.Code
		after int
	}{
		"done":             {q: idempotency.Request{State: idempotency.Done, Status: 200}},
		"answer is lost":   {q: idempotency.Request{State: idempotency.Done}},
		"answer will come": {idempotency.Request{State: idempotency.Done, RetryAfter: time.Millisecond}, fault.KeyInFlight, 1},
		"held":             {idempotency.Request{State: idempotency.Held, RetryAfter: 2*time.Second + time.Millisecond}, fault.KeyInFlight, 3},
		"whole seconds":    {idempotency.Request{State: idempotency.Held, RetryAfter: 2 * time.Second}, fault.KeyInFlight, 2},
		"run out":          {idempotency.Request{State: idempotency.Held}, fault.KeyInFlight, 1},
		"an operation":     {idempotency.Request{State: idempotency.Operation}, fault.KeyInFlight, 1},
		"another":          {q: idempotency.Request{State: idempotency.Held, Fingerprint: body.Fingerprint()}, want: fault.KeyMismatch},
		"another's":        {q: idempotency.Request{State: idempotency.Done, Status: 200, Fingerprint: owner.Fingerprint()}, want: fault.Conflict},
		"another's other":  {q: idempotency.Request{State: idempotency.Done, Status: 200, Fingerprint: both.Fingerprint()}, want: fault.Conflict},
	} {
		if c.q.Fingerprint == "" {
			c.q.Fingerprint = f.Fingerprint
		}
		err := f.CheckReplay(c.q)
		if fault.CodeOf(err) != c.want {
			t.Errorf("%s: got error %v", name, err)
			continue
		}
		if c.want == fault.KeyInFlight && err.(*fault.Error).Fields["retryAfter"] != c.after {
			t.Errorf("%s: got retryAfter %v, want %d", name, err.(*fault.Error).Fields["retryAfter"], c.after)
		}
		if c.want != "" && c.want != fault.KeyInFlight && !strings.Contains(err.Error(), `"my key"`) {
			t.Errorf("%s: error %v does not contain the idempotency key", name, err)
		}
	}
}

// TestKeyOf verifies that a request has one key or none.
func TestKeyOf(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]string{"": nil, "k": {"k"}} {
		if key, err := idempotency.KeyOf(values); err != nil || key != want {
			t.Errorf("%q: got key %q, error %v", values, key, err)
		}
	}
	for _, values := range [][]string{{""}, {"k", "k"}, {" k"}} {
		_, err := idempotency.KeyOf(values)
		testkit.WantCode(t, err, fault.Validation)
	}
}

package httpcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/run/httpcall"
)

// shop answers each call as configured, and records the keys.
type shop struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int // 0 hangs up
	keys    []string
	bodies  []string
}

func newShop(t *testing.T) *shop {
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		status := 200
		if len(s.answers) > 0 {
			status, s.answers = s.answers[0], s.answers[1:]
		}
		s.keys, s.bodies = append(s.keys, r.Header.Get("Idempotency-Key")), append(s.bodies, r.Header.Get("X-Order")+" "+string(body))
		s.mu.Unlock()
		if status == 0 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"ref": 12345678901234567890}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shop) will(answers ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.keys, s.bodies = answers, nil, nil
}

func (s *shop) heard() (keys, bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys, s.bodies
}

func def(version, method, url string, o ...run.StepOption) *run.Definition {
	o = append(slices.Clip(o), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Millisecond}))
	return run.Define("shop", version, run.Call("buy", method, url, o...))
}

// Verifies what becomes of a call: its answer is the output; what is refused fails, what may
// be tried again is, under the same key; and where nobody knows whether a call that is not
// idempotent has been heard, the step is uncertain, and is not made again.
func TestCalls(t *testing.T) {
	post := []run.StepOption{run.Body(map[string]string{"id": "=input.id"}), run.Header("X-Order", "=input.id")}
	cases := []struct {
		name, method string
		answers      []int
		o            []run.StepOption
		status       string // of the run; "uncertain" waits for a person
		calls        int
	}{
		{"get", "GET", nil, nil, "COMPLETED", 1},
		{"get again", "GET", []int{500, 200}, nil, "COMPLETED", 2},
		{"get in vain", "GET", []int{500, 500}, nil, "FAILED", 2},
		{"refused", "POST", []int{404}, post, "FAILED", 1},
		{"busy", "POST", []int{503, 200}, post, "COMPLETED", 2},
		{"post", "POST", nil, post, "COMPLETED", 1},
		{"post unheard", "POST", []int{0}, post, "uncertain", 1},
		{"post unheard, without a body", "POST", []int{0}, nil, "uncertain", 1},
		{"post failed", "POST", []int{500}, post, "uncertain", 1},
		{"post that may be repeated", "POST", []int{0, 200}, append(post, run.Idempotent()), "COMPLETED", 2},
	}
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		shop := newShop(t)
		ctx := t.Context()
		testkit.Run(t, e)
		for i, c := range cases {
			shop.will(c.answers...)
			d := def(fmt.Sprint(i), c.method, shop.URL+"/buy", c.o...)
			r, _, err := d.Start(ctx, e, map[string]string{"id": "o1"})
			if err != nil {
				t.Fatal(c.name, err)
			}
			step := ended(t, e, r.ID)
			r, err = run.Get(ctx, e, r.ID)
			if err != nil {
				t.Fatal(err)
			}
			status := r.Status
			if step.Uncertain {
				status = "uncertain"
			}
			keys, bodies := shop.heard()
			if string(status) != c.status || len(keys) != c.calls {
				t.Errorf("%s: got %s after %d calls (%s), want %s after %d", c.name, status, len(keys), step.Error, c.status, c.calls)
			}
			for j, key := range keys {
				if key != r.ID+"/buy/1" || c.o != nil && bodies[j] != `o1 {"id":"o1"}` {
					t.Errorf("%s: call %d had key %q and body %q", c.name, j, key, bodies[j])
				}
			}
			var out run.CallResponse
			if c.status == "COMPLETED" && (json.Unmarshal(r.Output, &out) != nil || out.Status != 200 || string(out.Body) != `{"ref":12345678901234567890}` && string(out.Body) != `{"ref": 12345678901234567890}`) {
				t.Errorf("%s: got output %s", c.name, r.Output)
			}
		}
	}, run.Maintenance(), run.Calls(httpcall.With(&http.Client{Timeout: 10 * time.Second})))
}

// broken is a caller that always returns the same error.
type broken struct{ err error }

func (b broken) Call(context.Context, run.CallRequest) (run.CallResponse, error) {
	return run.CallResponse{}, b.err
}

// Verifies that only NotDone says that nothing was sent: an error that is merely not retryable leaves the outcome of a call
// unknown.
func TestAnErrorOfACaller(t *testing.T) {
	bad := errors.New("bad response")
	for name, c := range map[string]struct {
		err    error
		status string
	}{
		"not retryable":              {holdfast.NonRetryable(bad), "uncertain"},
		"not sent":                   {holdfast.NotDone(holdfast.NonRetryable(bad)), "FAILED"},
		"not sent, in another order": {holdfast.NonRetryable(holdfast.NotDone(bad)), "FAILED"},
		"not sent, twice":            {holdfast.NotDone(bad), "FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
				testkit.Run(t, e)
				r, _, err := def("1", "POST", "http://shop.invalid/buy").Start(t.Context(), e, nil)
				if err != nil {
					t.Fatal(err)
				}
				step := ended(t, e, r.ID)
				status := string(step.Status)
				if step.Uncertain {
					status = "uncertain"
				}
				if status != c.status {
					t.Errorf("got %s (%s), want %s", status, step.Error, c.status)
				}
			}, run.Maintenance(), run.Calls(broken{c.err}))
		})
	}
}

// ended waits until the only step of a run is at an end, or uncertain.
func ended(t *testing.T, e *holdfast.Engine, id string) run.Visit {
	t.Helper()
	for {
		steps, err := holdfast.Collect(run.ListSteps(t.Context(), e, id))
		if err != nil {
			t.Fatal(err)
		}
		if s := steps[0]; s.Uncertain || s.Status == "COMPLETED" || s.Status == "FAILED" {
			return s
		}
		if clock.Wait(t.Context(), 5*time.Millisecond) != nil {
			t.Fatalf("the run did not finish: %+v", steps)
		}
	}
}

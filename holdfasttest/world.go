package holdfasttest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/store"
)

// World stands for what is outside of a case of [Crash]: the payment gateway, the mail server, whatever handlers call.
// Every call to it is a point at which faults strike, and it counts the calls that arrived, by name and key, for each
// case by itself. A call knows its case from its context, so handlers must pass on the context that they are given.
//
// The zero value is ready to use. It is safe for concurrent use.
type World struct {
	mu    sync.Mutex
	calls map[worldCall][]string // keys, in order of arrival
}

// worldCall is what is called, in the workspace of a case.
type worldCall struct{ workspace, name string }

// Call makes a call: name is what is called, such as "charge", and key is the idempotency key that the call carries, or
// "". An error means that the caller got no response, and does not tell whether the call arrived. A handler of a process
// that has crashed reaches nobody.
//
// A gateway that honors keys acts once for each key, so what it did is [World.Keys]; what a gateway without keys did is
// [World.Count].
func (w *World) Call(ctx context.Context, name, key string) error {
	return w.call(ctx, name, key, func() {})
}

// call makes a call; then is what the other side does when it arrives.
func (w *World) call(ctx context.Context, name, key string, then func()) error {
	return crash.Call(ctx, name, key, func() {
		w.mu.Lock()
		if w.calls == nil {
			w.calls = make(map[worldCall][]string)
		}
		at := worldCall{store.WorkspaceOf(ctx), name}
		w.calls[at] = append(w.calls[at], key)
		w.mu.Unlock()
		then()
	})
}

// Count returns how many calls of a name arrived in the context's case.
func (w *World) Count(ctx context.Context, name string) int { return len(w.arrived(ctx, name)) }

// Keys returns the different keys of the calls of a name that arrived in the context's case, in the order in which they
// arrived first.
func (w *World) Keys(ctx context.Context, name string) (keys []string) {
	seen := make(map[string]bool)
	for _, key := range w.arrived(ctx, name) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

func (w *World) arrived(ctx context.Context, name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[worldCall{store.WorkspaceOf(ctx), name}]
}

// Client returns an HTTP client whose requests are calls to the world, without a network: the name is the method and the
// path ("POST /charges"), and the key is the header Idempotency-Key. h responds to the requests that arrive; nil responds
// with 200 and an empty object. The request needs the context of the handler ([http.NewRequestWithContext]).
func (w *World) Client(h http.Handler) *http.Client {
	return &http.Client{Transport: &worldTransport{w, h}}
}

type worldTransport struct {
	world *World
	h     http.Handler
}

// RoundTrip serves one request in the process.
func (t *worldTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	response := httptest.NewRecorder()
	err := t.world.call(r.Context(), r.Method+" "+r.URL.Path, r.Header.Get("Idempotency-Key"), func() {
		if t.h == nil {
			_, _ = response.WriteString("{}") // a recorder accepts every write
			return
		}
		in := r.Clone(r.Context())
		if in.Body == nil {
			in.Body = http.NoBody
		}
		t.h.ServeHTTP(response, in)
	})
	if err == nil {
		err = context.Cause(r.Context()) // it ended while h responded, such as by a timeout of the client
	}
	if err != nil {
		return nil, err
	}
	result := response.Result()
	result.Request = r
	return result, nil
}

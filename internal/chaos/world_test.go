package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// charge is an external call by a worker.
type charge struct {
	Subject string    `json:"subject"` // in the form of operations
	Key     string    `json:"key"`     // key of the effect
	Call    string    `json:"call"`    // unique id of this call
	Worker  string    `json:"worker"`
	Honors  bool      `json:"honors"` // the service honors keys: a repeated key has no effect
	At      time.Time `json:"at"`
}

// delivery is an event, or another idempotent task, that reached a worker.
type delivery struct {
	To      string `json:"to"` // the reaction or handler
	Stream  string `json:"stream"`
	Version int64  `json:"version"`
}

// world simulates the external service of the workers, and records all effects.
type world struct {
	mu         sync.Mutex
	calls      map[string]charge // accepted calls, by call id
	byKey      map[string][]charge
	bySubject  map[string][]charge
	void       map[string]bool // calls that were queried before they arrived: they are refused
	repeated   int             // calls with a key that was charged before
	deliveries map[delivery]int
	order      map[string][]int64 // versions by reaction and stream, in the order of their first delivery
	unordered  []string
	recovered  map[string]bool // workers that have read their ledger, by name and start
}

func newWorld() *world {
	return &world{calls: make(map[string]charge), byKey: make(map[string][]charge), bySubject: make(map[string][]charge), void: make(map[string]bool),
		deliveries: make(map[delivery]int), order: make(map[string][]int64), recovered: make(map[string]bool)}
}

// answer is the response of the world to a worker.
type answer struct {
	Ref string `json:"ref"` // of the charge; "" if there is none
}

var errVoid = errors.New("the call was abandoned")

func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var a answer
	var err error
	switch r.URL.Path {
	case "/charge":
		var c charge
		if err = json.NewDecoder(r.Body).Decode(&c); err == nil {
			a.Ref, err = w.charge(c)
		}
	case "/happened": // for probes
		if all := w.byKey[r.FormValue("key")]; len(all) > 0 {
			a.Ref = all[0].Call
		}
	case "/called": // for restarted workers: a call that has not arrived yet is refused later
		call := r.FormValue("call")
		if _, ok := w.calls[call]; ok {
			a.Ref = call
		} else {
			w.void[call] = true
		}
	case "/deliver":
		var d delivery
		if err = json.NewDecoder(r.Body).Decode(&d); err == nil {
			w.deliver(d)
		}
	case "/recovered":
		w.recovered[r.FormValue("worker")] = true
	}
	if err != nil {
		http.Error(out, err.Error(), http.StatusGone)
		return
	}
	_ = json.NewEncoder(out).Encode(a)
}

func (w *world) charge(c charge) (string, error) {
	if w.void[c.Call] {
		return "", errVoid
	}
	if before := w.byKey[c.Key]; c.Honors && len(before) > 0 {
		w.repeated++
		w.calls[c.Call] = before[0]
		return before[0].Call, nil
	}
	c.At = time.Now()
	w.calls[c.Call] = c
	w.byKey[c.Key] = append(w.byKey[c.Key], c)
	w.bySubject[c.Subject] = append(w.bySubject[c.Subject], c)
	return c.Call, nil
}

func (w *world) deliver(d delivery) {
	if w.deliveries[d]++; w.deliveries[d] > 1 {
		return
	}
	at := d.To + " " + d.Stream
	if seen := w.order[at]; len(seen) > 0 && seen[len(seen)-1] > d.Version {
		w.unordered = append(w.unordered, fmt.Sprintf("%s: version %d came after %d", at, d.Version, seen[len(seen)-1]))
	}
	w.order[at] = append(w.order[at], d.Version)
}

// charged returns the charges with a key.
func (w *world) charged(key string) []charge {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byKey[key]
}

func (w *world) paid(subject string) []charge {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bySubject[subject]
}

func (w *world) delivered(d delivery) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deliveries[d]
}

// effects returns the number of charges and deliveries.
func (w *world) effects() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls) + len(w.deliveries)
}

func (w *world) calledBy(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.Worker == worker {
			return true
		}
	}
	return false
}

func (w *world) hasRecovered(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.recovered[worker]
}

// worldClient is the client of the world in a worker.
type worldClient struct {
	url  string
	http http.Client
}

func (o *worldClient) post(path string, in any) (a answer, err error) {
	text, err := json.Marshal(in)
	if err != nil {
		return a, err
	}
	resp, err := o.http.Post(o.url+path, "application/json", bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusGone {
		return a, errVoid
	}
	return a, json.NewDecoder(resp.Body).Decode(&a)
}

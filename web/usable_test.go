package web_test

import (
	"cmp"
	"flag"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/web"
)

var loads = flag.Int("loads", 1, "how often TestThePageIsUsableAtOnce loads the page at a quarter of the speed")

// visit opens an empty tab of a browser that has nothing of the dashboard in its cache. Another tab has shown a page of
// another site: a person opens the dashboard in a browser that runs, so the start of its processes is not part of a visit.
func (w *world) visit(t *testing.T) (p *browser.Page, open func()) {
	p, _ = browser.Open(t)
	p.Tab().Navigate(strings.Replace(w.url, "127.0.0.1", "localhost", 1) + "/requests-in-flight") // other connections, another cache
	return p, func() {
		p.Navigate(w.url)
		p.Wait(blocked, time.Minute)
	}
}

// TestThePageIsUsableAtOnce verifies that the first visit takes at most a quarter of a second of CPU time until the inbox
// shows its entries with their buttons. TestTheInboxTakesTwoRoundTrips verifies the rest of what takes time. The test prints
// how long it took with a CPU at a quarter of its speed, but requires nothing of that: a machine that does something else
// would decide it. For a distribution, on a machine that does nothing else:
//
//	go run ./internal/pgtest/pgrun -- env HOLDFAST_TEST_LEVEL=crash go test -count=1 -run ThePageIsUsableAtOnce -v ./web -loads 20
func TestThePageIsUsableAtOnce(t *testing.T) {
	testlevel.Long(t)
	eachDemo(t, func(t *testing.T, w *world) {
		first, ok := browser.Open(t) // starts the browser
		if !ok {
			return
		}
		first.Navigate(w.url)
		first.Wait(blocked, time.Minute)
		first.Navigate("about:blank") // a page that follows the demo would be drawn meanwhile
		p, open := w.visit(t)
		_, busy := p.Busy(open)
		if busy > 250*time.Millisecond {
			t.Errorf("the page was usable after %v of CPU time, want at most 250 ms", busy)
		}
		p.Navigate("about:blank")
		var took []time.Duration
		var steps [][]float64
		for range *loads {
			p, open := w.visit(t)
			p.ThrottleCPU(4)
			begin := time.Now()
			open()
			took = append(took, time.Since(begin))
			var at []float64
			p.Eval(milestones, &at)
			steps = append(steps, at)
			p.ThrottleCPU(1) // a slow page keeps a CPU busy, also when it does nothing
			p.Navigate("about:blank")
		}
		slices.Sort(took)
		t.Logf("usable after %v of CPU time; at a quarter of the speed after %v", busy, took)
		t.Logf("median %v, 95 %% within %v; medians in ms since the begin of the visit: HTML %.0f, last of its files %.0f, code has run %.0f, inbox %.0f", took[len(took)/2], took[(len(took)*95-1)/100], median(steps, 0), median(steps, 1), median(steps, 2), median(steps, 3))
	})
}

// milestones are when the HTML was here, the styles and the code, when the code had run, and when the inbox was here.
const milestones = `(() => {
	const [nav] = performance.getEntriesByType("navigation"), all = performance.getEntriesByType("resource")
	const end = part => Math.max(...all.filter(r => r.name.includes(part) && r.startTime < nav.domContentLoadedEventEnd).map(r => r.responseEnd), 0)
	return [nav.responseEnd, Math.max(end(".js"), end(".css")), nav.domContentLoadedEventEnd, all.find(r => r.name.includes("/inbox?")).responseEnd]
})()`

func median(all [][]float64, i int) float64 {
	slices.SortFunc(all, func(a, b []float64) int { return cmp.Compare(a[i], b[i]) })
	return all[len(all)/2][i]
}

// firstBytes limits what a browser reads before the inbox can be used: HTML, styles and code, with brotli.
const firstBytes = 36 << 10

var linked = regexp.MustCompile(`(?:href|src)="([^"]+)"`)

// TestTheInboxTakesTwoRoundTrips verifies that nothing on the way to the inbox waits for anything but the HTML: the page can
// be used if the server answers the requests of the HTML only after all of them have arrived, and no others. It also
// verifies that they are few enough for the six connections that browsers open over HTTP/1.1, and small.
func TestTheInboxTakesTwoRoundTrips(t *testing.T) {
	testlevel.Long(t)
	eachDemo(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		needed := w.firstRequests(t)
		if len(needed) > 6 {
			t.Errorf("the HTML asks for %q, want at most six requests at once", needed)
		}
		b := &barrier{needed: needed, open: make(chan struct{}), done: make(chan struct{}), next: http.HandlerFunc(w.serve)}
		srv := httptest.NewServer(b)
		t.Cleanup(srv.Close)
		t.Cleanup(func() { close(b.done) })
		testkit.Eventually(t, "blocked stream", func() bool { // the inbox is read once: the live stream gets no response
			for i, err := range w.ListInbox(t.Context(), client.InboxFilter{}) {
				if err == nil && i.Kind == "blockedStream" {
					return true
				}
			}
			return false
		})
		p.Start(srv.URL)
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if t.Failed() {
				t.Logf("of the requests of the HTML, %q have not arrived; requests that the inbox must not wait for: %q", b.needed, b.others)
			}
		}()
		p.Wait(blocked, 30*time.Second)
	})
}

// firstRequests returns the requests that the HTML of the inbox asks for, and verifies how large they are.
func (w *world) firstRequests(t *testing.T) (paths []string) {
	t.Helper()
	read := func(path string) (text string, size int) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		plain := httptest.NewRecorder()
		web.Handler().ServeHTTP(plain, r)
		r.Header.Set("Accept-Encoding", "br")
		packed := httptest.NewRecorder()
		web.Handler().ServeHTTP(packed, r)
		return plain.Body.String(), packed.Body.Len()
	}
	page, total := read("/")
	for _, found := range linked.FindAllStringSubmatch(page, -1) {
		path := found[1]
		if path == "/icon.svg" { // browsers ask for it when the page has loaded
			continue
		}
		paths = append(paths, path)
		if strings.HasSuffix(path, ".js") || strings.HasSuffix(path, ".css") {
			_, size := read(path)
			total += size
		}
	}
	t.Logf("before the inbox can be used, a browser reads %d bytes of HTML, styles and code, with %d requests at once", total, len(paths))
	if total > firstBytes {
		t.Errorf("before the inbox can be used, a browser reads %d bytes of HTML, styles and code, want at most %d", total, firstBytes)
	}
	return paths
}

// barrier answers the needed requests, each once, when all of them have arrived. Others get nothing, and end when done is closed.
type barrier struct {
	next       http.Handler
	open, done chan struct{}

	mu             sync.Mutex
	needed, others []string // needed are those that have not arrived
}

func (b *barrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RequestURI()
	if path != "/" {
		wait := b.done
		b.mu.Lock()
		if i := slices.Index(b.needed, path); i >= 0 {
			wait = b.open
			if b.needed = slices.Delete(b.needed, i, i+1); len(b.needed) == 0 {
				close(b.open)
			}
		} else {
			b.others = append(b.others, path)
		}
		b.mu.Unlock()
		select {
		case <-wait:
		case <-b.done:
		}
		if wait == b.done {
			return // also for the stream, which would not end with the test
		}
	}
	b.next.ServeHTTP(w, r)
}

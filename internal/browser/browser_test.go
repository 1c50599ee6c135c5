package browser

import (
	"bytes"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main(m)) }

const limit = 10 * time.Second

// page opens a page of a server that serves the HTML, with a strict content security policy, at every path.
func page(t *testing.T, html string) (p *Page, url string, ok bool) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, script)
		case "/worker.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `fetch("/from-the-worker").then(() => postMessage("done"))`)
		default:
			w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data: http://allowed.example")
			fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><title>%s</title><link rel="icon" href="data:,"><body>%s<script src="/script.js"></script>`, r.URL.Path, html)
		}
	}))
	t.Cleanup(srv.Close)
	if p, ok = Open(t); ok {
		p.Navigate(srv.URL + "/page")
	}
	return p, srv.URL, ok
}

// script records the events of the keyboard and of the mouse.
const script = `
window.seen = []
for (const type of ["keydown", "keyup"]) addEventListener(type, e =>
	seen.push(type + " " + (e.ctrlKey ? "ctrl " : "") + (e.metaKey ? "meta " : "") + (e.shiftKey ? "shift " : "") + e.key + " " + e.code))
addEventListener("click", e => seen.push("click " + e.target.id + " " + e.isTrusted))
`

func want[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%q", any(got)), fmt.Sprintf("%q", any(want)); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

func value[T any](p *Page, js string) (v T) {
	p.t.Helper()
	p.Eval(js, &v)
	return v
}

// contains verifies that one of the texts has the part.
func contains(t *testing.T, what string, texts []string, part string) {
	t.Helper()
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) }) {
		t.Errorf("%s: got %q, want one with %q", what, texts, part)
	}
}

func TestClickScrollsToTheElement(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, _, ok := page(t, `<div id="tall"></div><button id="far">Far</button>`)
	if !ok {
		return
	}
	p.Eval(`document.getElementById("tall").style.height = "5000px"`, nil)
	p.Click("#far")
	want(t, "events", value[[]string](p, "seen"), []string{"click far true"})
	want(t, "problems", p.Problems(), nil)
}

func TestClickWaitsForTheElement(t *testing.T) {
	t.Parallel()
	p, _, ok := page(t, `<div id="cover"></div>`)
	if !ok {
		return
	}
	p.Eval(`(() => {
		const cover = document.getElementById("cover")
		cover.style = "position: fixed; inset: 0"
		setTimeout(() => {
			cover.insertAdjacentHTML("beforebegin", "<button id=late>Late</button>")
			setTimeout(() => cover.remove(), 100)
		}, 100)
	})()`, nil)
	p.Click("#late")
	want(t, "events", value[[]string](p, "seen"), []string{"click late true"})
}

func TestTypeAndPress(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, _, ok := page(t, `<textarea id="text" aria-label="Text"></textarea>`)
	if !ok {
		return
	}
	p.Press("j")
	p.Press("?")
	p.Press("Escape")
	p.Press("Meta+k")
	p.Press("Control++")
	want(t, "events", value[[]string](p, "seen"), []string{
		"keydown j KeyJ", "keyup j KeyJ", "keydown shift ? ", "keyup shift ? ", "keydown Escape Escape", "keyup Escape Escape",
		"keydown meta Meta MetaLeft", "keydown meta k KeyK", "keyup meta k KeyK", "keyup Meta MetaLeft",
		"keydown ctrl Control ControlLeft", "keydown ctrl shift + ", "keyup ctrl shift + ", "keyup Control ControlLeft",
	})
	p.Click("#text")
	p.Type("Zwölf 12+€\nab")
	p.Press("Backspace")
	p.Press("ArrowLeft")
	p.Press("Delete")
	p.Type("!")
	want(t, "text", value[string](p, `document.getElementById("text").value`), "Zwölf 12+€\n!")
	p.Press("Shift+Tab")
	want(t, "focus", value[string](p, "document.activeElement.tagName"), "BODY")
}

func TestWait(t *testing.T) {
	t.Parallel()
	p, url, ok := page(t, `<p id="text">old</p>`)
	if !ok {
		return
	}
	p.Eval(`void setTimeout(() => document.getElementById("text").textContent = "new", 50)`, nil)
	p.Wait(`document.getElementById("text").textContent === "new"`, limit)
	p.Wait(`fetch("/other").then(r => r.ok)`, limit)
	p.Eval(`void setTimeout(() => location.href = "/next", 50)`, nil)
	p.Wait(`document.title === "/next"`, limit) // in another document
	want(t, "URL", value[string](p, "location.href"), url+"/next")
}

func TestExceptionsAreErrors(t *testing.T) {
	t.Parallel()
	p, _, ok := page(t, "")
	if !ok {
		return
	}
	for js, says := range map[string]string{
		`nothing.at.all`:                    "ReferenceError: nothing is not defined",
		`}`:                                 "SyntaxError",
		`Promise.reject(new Error("late"))`: "Error: late",
		`Promise.reject("a text")`:          "a text",
	} {
		if err := p.Try(js, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got error %v, want one with %q", js, err, says)
		}
	}
	want(t, "problems", p.Problems(), nil)
	p.Eval(`void setTimeout(() => { setTimeout(() => window.thrown = true); throw new Error("of the page") })`, nil)
	p.Wait("thrown", limit)
	contains(t, "problems", p.Problems(), "of the page")
}

// failing records the failure of a test instead of failing it.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFailures(t *testing.T) {
	t.Parallel()
	p, _, ok := page(t, "")
	if !ok {
		return
	}
	p.Eval(`console.error("a hint")`, nil)
	for says, do := range map[string]func(){
		"waited 1ms for document.title === 1: Error: the last value was false": func() { p.Wait("document.title === 1", time.Millisecond) },
		"console.error a hint":                      func() { p.Wait("false", time.Millisecond) },
		"the last value was ReferenceError: absent": func() { p.Wait("absent", time.Millisecond) },
		"ERR_NAME_NOT_RESOLVED":                     func() { p.Navigate("http://example.com") },
		"absent: ReferenceError":                    func() { p.Eval("absent", nil) },
		"the value is undefined":                    func() { p.Eval("undefined", new(string)) },
		`no key "Entre"`:                            func() { p.Press("Entre") },
		"Network.setCookie":                         func() { p.SetCookie("no URL", "a", "b") },
	} {
		failed := &failing{TB: t}
		p.t = failed
		done := make(chan struct{})
		go func() {
			defer close(done)
			do()
		}()
		<-done
		p.t = t
		if !strings.Contains(failed.text, says) {
			t.Errorf("got failure %q, want one with %q", failed.text, says)
		}
	}
}

func TestProblemsOfThePage(t *testing.T) {
	t.Parallel()
	p, url, ok := page(t, "")
	if !ok {
		return
	}
	p.Eval(`document.body.insertAdjacentHTML("beforeend", "<p style='color: red'>")`, nil)
	contains(t, "problems", p.Problems(), "Content Security Policy")
	p.Eval(`fetch("/missing").then(() => {})`, nil)
	p.Wait("performance.getEntriesByName(location.origin + '/missing').length", limit)
	contains(t, "problems", p.Problems(), url+"/missing")
	p.Eval(`console.error("broken", {a: 1}, 2)`, nil)
	contains(t, "problems", p.Problems(), "console.error broken Object 2")
	want(t, "confirm", value[bool](p, `confirm("sure?")`), false)
	contains(t, "problems", p.Problems(), "sure?")
}

func TestRequestsBeyondTheOrigin(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, url, ok := page(t, `<img alt="" src="http://allowed.example/pixel"><img alt="" src="http://refused.example/pixel"><img alt="" src="data:,">`)
	if !ok {
		return
	}
	p.Eval(`new Promise(resolve => new Worker("/worker.js").onmessage = resolve)`, nil)
	got := p.Requests()
	slices.Sort(got)
	want(t, "requests", got, []string{
		url + "/from-the-worker", url + "/page", url + "/script.js", url + "/worker.js", "http://allowed.example/pixel", "http://refused.example/pixel",
	})
}

func TestLongTasks(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, url, ok := page(t, `<button id="busy">Busy</button>`)
	if !ok {
		return
	}
	p.Eval(`document.getElementById("busy").onclick = () => { for (const end = performance.now() + 200; performance.now() < end;); }`, nil)
	p.Click("#busy")
	long := func(d time.Duration) bool { return d >= 200*time.Millisecond }
	if got := p.LongTasks(); !slices.ContainsFunc(got, long) {
		t.Errorf("got long tasks %v, want one of 200 ms", got)
	}
	p.Navigate(url + "/next")
	if got := p.LongTasks(); !slices.ContainsFunc(got, long) {
		t.Errorf("got long tasks %v in another document, want one of 200 ms", got)
	}
}

// TestBusy verifies that the longest task is measured, and that waiting is no part of it.
func TestBusy(t *testing.T) {
	testlevel.Long(t)
	testlevel.OneGoroutine(t)
	t.Parallel()
	p, _, ok := page(t, "")
	if !ok {
		return
	}
	const work = `(() => { let x = 0; for (let i = 0; i < %d; i++) x += Math.sqrt(i); return x > 0 })()`
	longest := func(n int) time.Duration {
		got, all := p.Busy(func() { p.Eval(fmt.Sprintf(work, n), nil) })
		if all < got {
			t.Errorf("the longest task took %v of CPU time, and all %v", got, all)
		}
		return got
	}
	const n = 1_000_000
	longest(n) // compiles the loop
	if little, much := longest(n), longest(100*n); much < 10*little {
		t.Errorf("the longest task took %v of CPU time, and %v with a hundred times the work", little, much)
	}
	if got, _ := p.Busy(func() { p.Eval(`new Promise(resolve => setTimeout(resolve, 300))`, nil) }); got >= 300*time.Millisecond {
		t.Errorf("the longest task took %v of CPU time while the page waited for 300 ms", got)
	}
}

func TestThrottledCPU(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, _, ok := page(t, "")
	if !ok {
		return
	}
	const work = `(() => {
		const times = []
		for (let n = 0; n < 5; n++) {
			const start = performance.now()
			for (let i = 0, x = 0; i < 1e6; i++) x += Math.sqrt(i)
			times.push(performance.now() - start)
		}
		return times
	})()`
	fast := slices.Min(value[[]float64](p, work))
	p.ThrottleCPU(20)
	if slow := slices.Max(value[[]float64](p, work)); slow < 3*fast {
		t.Errorf("the work took %.1f ms, and %.1f ms at a twentieth of the speed", fast, slow)
	}
}

func TestPagesShareCookiesWithTheirTabsOnly(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, url, ok := page(t, "")
	if !ok {
		return
	}
	p.SetCookie(url, "key", "secret")
	tab := p.Tab()
	tab.Navigate(url)
	other, _ := Open(t)
	other.Navigate(url)
	want(t, "cookies of the tab", value[string](tab, "document.cookie"), "key=secret")
	want(t, "cookies of another page", value[string](other, "document.cookie"), "")
	p.ClearCookies()
	want(t, "cookies after they were cleared", value[string](tab, "document.cookie"), "")
	for _, each := range []*Page{p, tab, other} {
		each.Wait(`new Promise(requestAnimationFrame)`, limit) // all of them draw frames
		want(t, "focus", value[bool](each, "document.hasFocus() && !document.hidden"), true)
		each.Press("j")
		want(t, "keys", value[int](each, "seen.length"), 2)
	}
}

func TestScreenshot(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, _, ok := page(t, "")
	if !ok {
		return
	}
	p.Eval(`matchMedia("(prefers-color-scheme: dark)").onchange = e => document.body.style.background = e.matches ? "#000" : "#fff"`, nil)
	for _, dark := range []bool{true, false} {
		shot, err := png.Decode(bytes.NewReader(p.Screenshot(View{Width: 300, Height: 200, Dark: dark, ReducedMotion: dark})))
		if err != nil {
			t.Fatal(err)
		}
		if size := shot.Bounds().Size(); size.X != 300 || size.Y != 200 {
			t.Errorf("the screenshot has the size %v", size)
		}
		if red, _, _, _ := shot.At(150, 100).RGBA(); (red == 0) != dark {
			t.Errorf("dark: %t: the screenshot has the red value %d", dark, red)
		}
		want(t, "reduced motion", value[bool](p, `matchMedia("(prefers-reduced-motion: reduce)").matches`), dark)
	}
}

// TestAxe verifies that axe-core reports an image without a text, in spite of the content security policy.
func TestAxe(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	p, _, ok := page(t, `<main><img src="data:,"></main>`)
	if !ok {
		return
	}
	if _, err := axeSource(); err == nil {
		contains(t, "violations", p.Axe(), "image-alt (critical)")
	}
	p.Eval(`document.querySelector("img").alt = "a text"`, nil)
	want(t, "violations", p.Axe(), nil)
}

// TestProcessEnds verifies that a browser that is no longer used leaves no process and no profile behind.
func TestProcessEnds(t *testing.T) {
	path, err := find()
	if err != nil {
		_, _ = Open(t) // reports the note
		return
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	b, err := start(path)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) == 0 {
		t.Errorf("got profiles %v, %v, want one", made, err)
	}
	b.close()
	if err := b.call("", "Browser.getVersion", nil, nil); err == nil {
		t.Error("the browser responds after its end")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the browser left %v, %v", left, err)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	if _, err := start("/does/not/exist"); err == nil || !strings.Contains(err.Error(), "the browser ended") {
		t.Errorf("got error %v", err)
	}
}

package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// loaded is true when a page shows what it has read.
const loaded = `document.querySelector("main h1, main .empty strong, main .failure") && !document.querySelector("main .empty[role=status]")`

// views are the sizes and themes in which pages are looked at.
var views = []browser.View{{Width: 1440, Height: 900}, {Width: 390, Height: 844, Dark: true}}

// TestNothingRuns verifies with a script in every field that a caller can write that no page runs it, that no page needs
// what the content security policy forbids, that no request leaves the origin, that no page is wider than the screen, and
// that axe finds nothing on any page, dark and light.
func TestNothingRuns(t *testing.T) {
	testlevel.Long(t)
	onBoth(t, func(t *testing.T, w *world) {
		w.fill(t.Context(), hostile)
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		check := func(what string) {
			for _, v := range p.Axe() {
				t.Errorf("%s: axe: %s", what, v)
			}
		}
		p.Navigate(w.url)
		p.Wait(`document.querySelector("input[type=password]")`, time.Minute)
		for _, v := range views {
			p.SetView(v)
			check("the login")
		}
		w.logIn(p, w.admin)
		before := len(p.Problems()) // of the first request, which had no session
		p.Navigate(w.url + "/streams")
		p.Wait(loaded, time.Minute)
		for _, v := range views {
			p.SetView(v)
			p.Press("Control+k")
			p.Wait(`document.querySelector("dialog.palette[open] [role=option]")`, time.Minute)
			check("the palette")
			p.Press("Escape")
			p.Wait(`!document.querySelector("dialog[open]")`, time.Minute)
			p.Press("?")
			p.Wait(`document.querySelector("dialog[open] kbd")`, time.Minute)
			check("the keys")
			p.Press("Enter")
			p.Wait(`!document.querySelector("dialog[open]")`, time.Minute)
			p.Eval(`[...document.querySelectorAll("main button")].find(b => b.textContent === "Append").click()`, nil)
			p.Wait(`document.querySelector("dialog[open] input")`, time.Minute)
			check("a dialog")
			p.Press("Escape")
			p.Wait(`!document.querySelector("dialog[open]")`, time.Minute)
		}
		half := strings.Count(t.Name(), "postgres") // each page on one of the databases: how it looks does not depend on them
		random := testlevel.Rand(t)
		for i, page := range w.pages {
			if i%2 != half {
				continue
			}
			n := random.IntN(2)
			for _, v := range testlevel.Pick(views[n:n+1], views[n:n+1], views) {
				p.SetView(v)
				p.Navigate(w.url + page)
				p.Wait(loaded, time.Minute)
				what := fmt.Sprintf("%s at %d px", page, v.Width)
				var ran, wide bool
				var failure string
				if p.Eval(`document.querySelector("main .failure")?.textContent ?? ""`, &failure); failure != "" {
					t.Errorf("%s shows %q", what, failure)
				}
				if p.Eval("globalThis.ran === 1", &ran); ran {
					t.Errorf("%s ran the script of a field", what)
				}
				if p.Eval("document.documentElement.scrollWidth > innerWidth", &wide); wide {
					t.Errorf("%s scrolls sideways", what)
				}
				check(what)
			}
		}
		for _, r := range p.Requests() {
			if !strings.HasPrefix(r, w.url+"/") {
				t.Errorf("a request went to %s", r)
			}
		}
		if problems := p.Problems()[before:]; len(problems) > 0 {
			t.Errorf("the browser reports %q", problems)
		}
	})
}

// TestScreenshots writes a picture of every page, at two widths, dark and light, empty, full and failing, into the folder that
// HOLDFAST_SCREENSHOTS names ("make screenshots").
func TestScreenshots(t *testing.T) {
	testlevel.OneGoroutine(t)
	folder := os.Getenv("HOLDFAST_SCREENSHOTS")
	if folder == "" {
		return
	}
	onBoth(t, func(t *testing.T, w *world) {
		if !strings.HasSuffix(t.Name(), "sqlite") {
			return
		}
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		shoot := func(kind string, pages []string) {
			for _, page := range pages {
				for _, width := range []int{1440, 390} {
					for _, dark := range []bool{false, true} {
						v := browser.View{Width: width, Height: map[int]int{1440: 900, 390: 844}[width], Dark: dark, ReducedMotion: true}
						p.SetView(v)
						p.Navigate(w.url + page)
						p.Wait(loaded, time.Minute)
						p.Eval(`document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => 1)`, new(int))
						name := strings.NewReplacer("/", "_", "?", "-", "=", "-", "%", "").Replace(strings.TrimPrefix(page, "/"))
						file := fmt.Sprintf("%s.%s.%d.%s.png", name, kind, width, map[bool]string{true: "dark", false: "light"}[dark])
						if name == "" {
							file = "inbox" + file
						}
						if err := os.WriteFile(filepath.Join(folder, file), p.Screenshot(v), 0o644); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
		w.logIn(p, w.admin)
		w.pages = nil
		empty := []string{"/", "/overview", "/lifecycles", "/runs", "/definitions", "/approvals", "/batches", "/wallets", "/streams", "/reactions", "/scopes", "/operations", "/races", "/bulk", "/handlers", "/webhooks", "/nodes", "/keys", "/secrets", "/audit"}
		shoot("empty", empty)
		w.fill(t.Context(), plain)
		shoot("full", w.pages)
		shoot("failing", []string{"/runs/run_missing", "/lifecycles/none", "/runs?status=WRONG"})
	})
}

// TestAFailedReadIsNoEmptyList verifies for each page that a read that fails shows the code, the request id and a button that
// tries again, and never says that there is nothing; and that the page is whole after the button was clicked.
func TestAFailedReadIsNoEmptyList(t *testing.T) {
	testlevel.Long(t)
	onBoth(t, func(t *testing.T, w *world) {
		w.fill(t.Context(), plain)
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		w.logIn(p, w.admin)
		half := strings.Count(t.Name(), "postgres") // each page on one of the databases, as in TestNothingRuns
		for i, page := range append(w.pages, "/runs?status=WRONG") {
			if i%2 != half {
				continue
			}
			w.broken.Store(page != "/runs?status=WRONG")
			p.Navigate(w.url + page)
			p.Wait(`document.querySelector("main .failure")`, time.Minute)
			var text string
			var empty []string
			p.Eval(`document.querySelector("main .failure").textContent`, &text)
			p.Eval(`[...document.querySelectorAll("main .empty strong")].map(e => e.textContent)`, &empty)
			if !regexp.MustCompile(`Code [A-Z_]+.*request .*Retry`).MatchString(text) || len(empty) > 0 {
				t.Errorf("%s shows %q and %q, want a code, a request and a button, and nothing that is empty", page, text, empty)
			}
			if !w.broken.Swap(false) {
				continue
			}
			p.Wait(`(document.querySelectorAll("main .failure button").forEach(b => b.click()), !document.querySelector("main .failure"))`, time.Minute)
			p.Wait(loaded, time.Minute)
		}
	})
}

// TestAnOlderResponseIsDropped verifies that a page which the stream has told of a change does not go back to what a slower
// response says.
func TestAnOlderResponseIsDropped(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		testkit.Run(t, w.engine)
		w.logIn(p, w.admin)
		free := make(chan struct{})
		release := sync.OnceFunc(func() { close(free) })
		defer release()
		w.late.Store(&free)
		p.Navigate(w.url)
		p.Wait(`document.querySelector("main .empty strong")?.textContent === "All clear"`, time.Minute) // says the stream
		must(w.PutDefinition(t.Context(), raw(map[string]any{"name": "ask", "version": "1", "steps": []any{map[string]any{"name": "ok", "type": "approval", "prompt": "Pay?", "timeoutMs": 3600000}}})))(t)
		must(w.StartRun(t.Context(), wire.StartRun{DefinitionID: "ask@1", Input: raw(map[string]any{})}))(t)
		const entry = `document.querySelector("li[data-kind=pendingApproval]")`
		p.Wait(entry, time.Minute)
		release()
		w.late.Store(nil)
		var shown bool
		p.Eval(`fetch("/healthz").then(() => new Promise(resolve => setTimeout(() => requestAnimationFrame(resolve), 500))).then(() => !!`+entry+`)`, &shown)
		if !shown {
			t.Error("the page shows what it was told before the entry")
		}
	})
}

// TestARevokedKeyIsOut verifies that a session ends with its key: within 5 seconds the page asks for a key.
func TestARevokedKeyIsOut(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		text := w.key("guest", keys.Operate)
		w.logIn(p, text)
		p.Navigate(w.url + "/runs")
		p.Wait(loaded, time.Minute)
		p.Wait(`document.querySelector(".live.tone-ok")`, time.Minute)
		if _, err := w.RevokeKey(t.Context(), strings.Split(text, "_")[1]); err != nil {
			t.Fatal(err)
		}
		p.Wait(`document.querySelector("input[type=password]")`, 5*time.Second)
	})
}

// TestHeaders verifies what a browser is told about the dashboard's files.
func TestHeaders(t *testing.T) {
	testlevel.OneGoroutine(t)
	each(t, func(t *testing.T, w *world) {
		for path, want := range map[string]string{"/": "text/html; charset=utf-8", "/runs/run_1": "text/html; charset=utf-8", "/icon.svg": "image/svg+xml"} {
			resp, err := http.Get(w.url + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			h := resp.Header
			if resp.StatusCode != 200 || h.Get("Content-Type") != want || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s returned status %d and headers %v", path, resp.StatusCode, h)
			}
		}
		resp, err := http.PostForm(w.url+"/", url.Values{})
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 404 {
			t.Errorf("POST / returned status %d, want 404", resp.StatusCode)
		}
	})
}

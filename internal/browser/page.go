package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// params are the parameters of a command.
type params = map[string]any

// A Page is a tab of the browser. Its methods fail the test if the browser refuses, so they are for the goroutine of the
// test.
type Page struct {
	t       testing.TB
	b       *process
	context string // of the browser: cookies and storage
	session string

	mu       sync.Mutex
	requests []string
	problems []string
	tasks    []time.Duration
	trace    []traced
	complete bool          // the trace
	changed  chan struct{} // an event has arrived
}

// Open opens an empty page with cookies and storage of its own, and closes it at the end of the test. If there is no browser
// and none can be installed, it returns false, and reports a note once.
func Open(t testing.TB) (*Page, bool) {
	t.Helper()
	b, err := acquire()
	if errors.Is(err, errMissing) {
		noteMissing.Do(func() { note(t, "Chromium cannot be installed, so no page was tested", err) })
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	var made struct{ BrowserContextID string }
	if err := b.call("", "Target.createBrowserContext", nil, &made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.call("", "Target.disposeBrowserContext", params{"browserContextId": made.BrowserContextID}, nil); err != nil {
			t.Error(err)
		}
	})
	return open(t, b, made.BrowserContextID), true
}

var noteMissing sync.Once

// note notes that a tool cannot be installed: the run continues without it.
func note(t testing.TB, text string, err error) {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	t.Attr(testlevel.NoteAttr, text+": "+reason)
}

// Tab opens another empty page with the same cookies and storage.
func (p *Page) Tab() *Page {
	p.t.Helper()
	return open(p.t, p.b, p.context)
}

// reportTasks calls the function longTasks with the durations of long tasks in milliseconds.
const reportTasks = `(() => {
	const report = list => list.length && longTasks(JSON.stringify(list.map(task => task.duration)))
	const observer = new PerformanceObserver(list => report(list.getEntries()))
	observer.observe({type: "longtask", buffered: true})
	Object.defineProperty(window, "reportLongTasks", {value: () => report(observer.takeRecords())})
})()`

func open(t testing.TB, b *process, context string) *Page {
	t.Helper()
	p := &Page{t: t, b: b, context: context, changed: make(chan struct{}, 1)}
	var target struct{ TargetID string }
	if err := b.call("", "Target.createTarget", params{"url": "about:blank", "browserContextId": context, "newWindow": true}, &target); err != nil {
		t.Fatal(err)
	}
	var attached struct{ SessionID string }
	if err := b.call("", "Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		t.Fatal(err)
	}
	p.session = attached.SessionID
	b.follow(p.session, p)
	t.Cleanup(func() { b.forget(p) })
	p.do("Page.enable", nil)
	p.do("Runtime.addBinding", params{"name": "longTasks"})
	p.do("Page.addScriptToEvaluateOnNewDocument", params{"source": reportTasks})
	p.watch(p.session)
	p.sync()
	return p
}

// do sends a command, which must succeed.
func (p *Page) do(method string, args params) {
	p.t.Helper()
	p.call(method, args, nil)
}

func (p *Page) call(method string, args params, into any) {
	p.t.Helper()
	if err := p.b.call(p.session, method, args, into); err != nil {
		p.t.Fatal(err)
	}
}

// Navigate loads the URL and waits until it has loaded, with its images and scripts.
func (p *Page) Navigate(url string) {
	p.t.Helper()
	p.Start(url)
	p.Wait(`document.readyState === "complete"`, callLimit)
}

// Start begins to load the URL, and does not wait for more than the begin of the response.
func (p *Page) Start(url string) {
	p.t.Helper()
	var got struct{ ErrorText string }
	if p.call("Page.navigate", params{"url": url}, &got); got.ErrorText != "" {
		p.t.Fatalf("navigate to %s: %s", url, got.ErrorText)
	}
}

// exception is what JavaScript has thrown.
type exception struct {
	Text      string
	Exception struct {
		Value       any
		Description string
	}
}

func (e *exception) Error() string {
	switch {
	case e.Exception.Description != "":
		return e.Exception.Description
	case e.Exception.Value != nil:
		return fmt.Sprint(e.Text, ": ", e.Exception.Value)
	}
	return e.Text
}

// Try evaluates a JavaScript expression, waits for its promise, and decodes its value as JSON if into is not nil. An
// exception is an error.
func (p *Page) Try(js string, into any) error { return p.evaluate(js, into, callLimit) }

func (p *Page) evaluate(js string, into any, limit time.Duration) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *exception
	}
	args := params{"expression": js, "awaitPromise": true, "returnByValue": into != nil, "userGesture": true}
	err := p.b.await(p.b.send(p.session, "Runtime.evaluate", args), &got, limit)
	switch {
	case err != nil:
		return err
	case got.ExceptionDetails != nil:
		return got.ExceptionDetails
	case into == nil:
		return nil
	case got.Result.Value == nil:
		return errors.New("the value is undefined")
	}
	return json.Unmarshal(got.Result.Value, into)
}

// Eval is [Page.Try], and fails the test on an error.
func (p *Page) Eval(js string, into any) {
	p.t.Helper()
	if err := p.Try(js, into); err != nil {
		p.t.Fatalf("%s: %v", js, err)
	}
}

// until is an expression whose promise has the first true value of a condition. It evaluates the condition after each frame
// and each change of the document; the timer is for a page that draws no frames.
const until = `(async () => {
	const end = performance.now() + %d
	for (let last;;) {
		try { if (last = await (%s)) return last } catch (e) { last = e }
		if (performance.now() > end) throw new Error("the last value was " + last)
		await new Promise(resolve => {
			const observer = new MutationObserver(wake), timer = setTimeout(wake, 50), frame = requestAnimationFrame(wake)
			observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true})
			function wake() { observer.disconnect(); clearTimeout(timer); cancelAnimationFrame(frame); resolve() }
		})
	}
})()`

// Wait waits until a JavaScript expression, or its promise, is true. An exception counts as false. The page may load another
// document meanwhile.
func (p *Page) Wait(js string, limit time.Duration) {
	p.t.Helper()
	p.wait(js, "(async () => !!(await ("+js+")))()", limit, nil)
}

func (p *Page) wait(what, js string, limit time.Duration, into any) {
	p.t.Helper()
	expired := time.After(limit)
	for {
		err := p.evaluate(fmt.Sprintf(until, limit.Milliseconds(), js), into, limit+callLimit)
		var gone *refusal // the document, and with it the expression
		if err == nil {
			return
		} else if !errors.As(err, &gone) {
			p.t.Fatalf("waited %v for %s: %v; problems of the page: %q", limit, what, err, recorded(p, &p.problems))
		}
		select {
		case <-p.changed:
		case <-expired:
			p.t.Fatalf("waited %v for %s: %v", limit, what, err)
		}
	}
}

// clickable is an expression whose promise has the centre of an element, which must not move or be covered.
const clickable = `(async () => {
	const element = %s
	if (!element) throw new Error("no such element")
	element.scrollIntoView({block: "center", inline: "center", behavior: "instant"})
	const before = element.getBoundingClientRect()
	await new Promise(resolve => { requestAnimationFrame(resolve); setTimeout(resolve, 50) })
	const now = element.getBoundingClientRect(), x = now.x + now.width / 2, y = now.y + now.height / 2
	if (now.x !== before.x || now.y !== before.y) throw new Error("the element moves")
	const top = document.elementFromPoint(x, y)
	if (!top || !element.contains(top)) throw new Error("the element is covered by " + top?.outerHTML.slice(0, 200))
	return {x, y}
})()`

// Click waits until the first element of the selector can be clicked, and clicks in its centre with the mouse.
func (p *Page) Click(selector string) {
	p.t.Helper()
	quoted, err := json.Marshal(selector)
	if err != nil {
		p.t.Fatal(err)
	}
	p.click(selector, fmt.Sprintf("document.querySelector(%s)", quoted))
}

// ClickFound waits until the element that the expression finds can be clicked, and clicks it like Click. The page may draw the
// element again meanwhile.
func (p *Page) ClickFound(expression string) {
	p.t.Helper()
	p.click(expression, expression)
}

func (p *Page) click(name, expression string) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	p.wait("a click on "+name, fmt.Sprintf(clickable, expression), clickLimit, &at)
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		args := params{"type": kind, "x": at.X, "y": at.Y}
		if kind != "mouseMoved" {
			args["button"], args["clickCount"] = "left", 1
		}
		p.do("Input.dispatchMouseEvent", args)
	}
}

// clickLimit limits the wait for an element.
const clickLimit = 10 * time.Second

// Type types the text with the keyboard, into the element that has the focus.
func (p *Page) Type(text string) {
	p.t.Helper()
	for _, c := range text {
		if c == '\n' {
			p.Press("Enter")
		} else {
			p.Press(string(c))
		}
	}
}

// Named keys, and the bits of those that modify others.
var (
	keyCodes = map[string]int{
		"Backspace": 8, "Tab": 9, "Enter": 13, "Shift": 16, "Control": 17, "Alt": 18, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
		"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46, "Meta": 91,
	}
	modifierBits = map[string]int{"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
)

// shifted are the characters that need the key Shift.
const shifted = `ABCDEFGHIJKLMNOPQRSTUVWXYZ~!@#$%^&*()_+{}|:"<>?`

// Press presses and releases a key: a character, or a name as in KeyboardEvent.key, after names of modifiers: "j", "Enter",
// "Control+k", "Shift+Tab".
func (p *Page) Press(combination string) {
	p.t.Helper()
	var held []string
	bits, key := 0, combination
	for name, rest, ok := strings.Cut(key, "+"); ok && modifierBits[name] != 0; name, rest, ok = strings.Cut(key, "+") {
		held, key = append(held, name), rest
		bits |= modifierBits[name]
		p.key("rawKeyDown", name, bits)
	}
	if _, named := keyCodes[key]; !named && len([]rune(key)) != 1 {
		p.t.Fatalf("no key %q", key)
	}
	shift := 0
	if strings.Contains(shifted, key) {
		shift = modifierBits["Shift"]
	}
	p.key("keyDown", key, bits|shift)
	p.key("keyUp", key, bits|shift)
	for _, name := range slices.Backward(held) {
		bits &^= modifierBits[name]
		p.key("keyUp", name, bits)
	}
}

func (p *Page) key(kind, key string, bits int) {
	p.t.Helper()
	number, named := keyCodes[key]
	code, text := key, key
	switch c := strings.ToUpper(key); {
	case key == "Enter":
		text = "\r"
	case modifierBits[key] != 0:
		code += "Left"
		text = ""
	case named:
		text = ""
	case c >= "A" && c <= "Z":
		code, number = "Key"+c, int(c[0])
	case c >= "0" && c <= "9":
		code, number = "Digit"+c, int(c[0])
	case key == " ":
		code, number = "Space", 32
	default:
		code = ""
	}
	args := params{"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": bits}
	if kind == "keyDown" && bits&^modifierBits["Shift"] == 0 {
		args["text"] = text
	}
	p.do("Input.dispatchKeyEvent", args)
}

// View is how a page is shown. The zero View is light, with motion, and 1280 by 800 pixels.
type View struct {
	Width, Height       int
	Dark, ReducedMotion bool
}

// SetView changes the size and the preferences of the page's user.
func (p *Page) SetView(v View) {
	p.t.Helper()
	if v.Width == 0 || v.Height == 0 {
		v.Width, v.Height = 1280, 800
	}
	scheme, motion := "light", "no-preference"
	if v.Dark {
		scheme = "dark"
	}
	if v.ReducedMotion {
		motion = "reduce"
	}
	p.do("Emulation.setDeviceMetricsOverride", params{"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": false})
	p.do("Emulation.setEmulatedMedia", params{"features": []params{
		{"name": "prefers-color-scheme", "value": scheme},
		{"name": "prefers-reduced-motion", "value": motion},
	}})
	p.Eval("new Promise(resolve => { requestAnimationFrame(() => setTimeout(resolve)); setTimeout(resolve, 100) })", nil)
}

// Screenshot calls [Page.SetView] and returns the visible part of the page as PNG.
func (p *Page) Screenshot(v View) []byte {
	p.t.Helper()
	p.SetView(v)
	var got struct{ Data []byte }
	p.call("Page.captureScreenshot", params{"format": "png"}, &got)
	return got.Data
}

// ThrottleCPU makes the page's scripts run slower by the factor rate. 1 is full speed.
func (p *Page) ThrottleCPU(rate float64) {
	p.t.Helper()
	p.do("Emulation.setCPUThrottlingRate", params{"rate": rate})
}

// SetCookie sets a cookie for the URL, for all pages with the same cookies.
func (p *Page) SetCookie(url, name, value string) {
	p.t.Helper()
	p.do("Network.setCookie", params{"url": url, "name": name, "value": value})
}

// ClearCookies deletes all cookies of all pages with the same cookies.
func (p *Page) ClearCookies() {
	p.t.Helper()
	p.do("Network.clearBrowserCookies", nil)
}

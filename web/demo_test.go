package web_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// eachDemo runs a test against the small company of "holdfast dev --demo".
func eachDemo(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	var d *demo.Demo
	eachServer(t, testlevel.OneDatabase(t), httpapi.Options{NoKeys: true}, func() []holdfast.Part {
		d = demo.New(io.Discard, nil)
		return d.Parts()
	}, func(t *testing.T, w *world) {
		testkit.Run(t, w.engine)
		ctx, stop := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { _ = d.Work(ctx) }) // ends with ctx
		t.Cleanup(func() { stop(); working.Wait() })
		f(t, w)
	})
}

// soon is how soon a page of the demo shows what the demo is for.
const soon = 10 * time.Second

// until returns a function with the rest of a time.
func until(limit time.Duration) func() time.Duration {
	end := time.Now().Add(limit)
	return func() time.Duration { return time.Until(end) }
}

const blocked = `document.querySelector("li[data-kind=blockedStream] button.primary")`

// booked waits until the payment that blocked the bookkeeping is booked.
func (w *world) booked() {
	w.t.Helper()
	testkit.Eventually(w.t, "booked payment", func() bool {
		for p, err := range w.ListPositions(w.t.Context(), "bookkeeping", client.PositionFilter{Pattern: "^payments-abroad$"}) {
			if err != nil {
				w.t.Fatal(err)
			}
			return !p.Blocked && p.Watermark == p.Head
		}
		return false
	})
}

// TestTheDemoMoves verifies that within ten seconds of opening a page of the demo tokens move, a claim is won and lost, and
// a blocked reaction is repaired by one click.
func TestTheDemoMoves(t *testing.T) {
	testlevel.Long(t)
	eachDemo(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		lifecycle, races := p.Tab(), p.Tab()
		lifecycle.Navigate(w.url + "/lifecycles/invoice")
		left := until(soon)
		lifecycle.Wait(`document.querySelector(".token")`, left())
		lifecycle.Wait(`document.querySelector(".edge.claim.hot")`, left())
		t.Logf("a claim was seen %v before the end of its time", left())
		races.Navigate(w.url + "/races")
		left = until(soon)
		races.Wait(`document.querySelector("main tbody tr a")`, left())
		races.Click("main tbody tr a")
		races.Click("a[href*='view=race']")
		races.Wait(`document.querySelector("[data-race-winner]") && document.querySelector("[data-race-loser]")`, left())
		t.Logf("a race was seen %v before the end of its time", left())
		p.Navigate(w.url)
		left = until(soon)
		p.Wait(blocked, left())
		p.Click("li[data-kind=blockedStream] button.primary")
		p.Wait(`!document.querySelector("li[data-kind=blockedStream]")`, left())
		t.Logf("the repair was seen %v before the end of its time", left())
		w.booked()
		for _, p := range []*browser.Page{p, lifecycle, races} {
			if problems := p.Problems(); len(problems) > 0 {
				t.Errorf("the browser reports %q", problems)
			}
		}
	})
}

// TestTheDemoWithoutAMouse verifies that the blocked reaction of the demo is repaired with the keyboard alone, and that with
// reduced motion the demo's lifecycle changes without moving.
func TestTheDemoWithoutAMouse(t *testing.T) {
	testlevel.Long(t)
	eachDemo(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		p.SetView(browser.View{ReducedMotion: true})
		p.Navigate(w.url)
		p.Wait(blocked, time.Minute)
		at := false
		for range 20 { // to the button of the entry, past those of entries before it
			if p.Eval(`document.activeElement === `+blocked, &at); at {
				break
			}
			p.Press("j")
		}
		if !at {
			t.Fatal("the key j does not lead to the button")
		}
		p.Press("Enter")
		p.Wait(`!document.querySelector("li[data-kind=blockedStream]")`, time.Minute)
		w.booked()

		p.Press("Control+k")
		p.Wait(`document.activeElement.matches("dialog input")`, time.Minute)
		p.Type("Lifecycles")
		p.Wait(`document.querySelector("[role=option][aria-selected=true]")?.textContent.includes("Lifecycles")`, time.Minute)
		p.Press("Enter")
		p.Wait(`location.pathname === "/lifecycles"`, time.Minute)
		p.Navigate(w.url + "/lifecycles/invoice")
		p.Eval(`(() => {
			globalThis.moved = []
			new MutationObserver(() => { if (document.querySelector(".token")) moved.push("a token") }).observe(document, {subtree: true, childList: true})
			const look = () => { for (const a of document.getAnimations()) if (a.effect.getComputedTiming().duration > 1) moved.push(a.transitionProperty ?? a.animationName); requestAnimationFrame(look) }
			look()
			return true
		})()`, nil)
		for range 3 { // after one edge has cooled down, another is hot
			p.Wait(`document.querySelector(".edge.hot")`, time.Minute)
			p.Wait(`!document.querySelector(".edge.hot")`, time.Minute)
		}
		var moved []string
		if p.Eval("moved", &moved); len(moved) > 0 {
			t.Errorf("with reduced motion, %q moved", moved)
		}
	})
}

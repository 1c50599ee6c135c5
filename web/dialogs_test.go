package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// events returns how many events a stream has.
func (w *world) events(stream string) int64 {
	w.t.Helper()
	return must(w.GetStream(w.t.Context(), stream))(w.t).Events
}

// TestARepeatedClickIsOneAction verifies that a double click, and a second click after the response was lost, send one action.
func TestARepeatedClickIsOneAction(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		must(w.AppendEvents(t.Context(), "order-1", wire.Append{Events: []wire.NewEvent{{Name: "placed"}}}))(t)
		w.logIn(p, w.admin)
		p.Navigate(w.url + "/streams/order-1")
		p.Wait(loaded, time.Minute)
		appending := func() {
			t.Helper()
			p.Wait(`[...document.querySelectorAll(".beside button")].find(b => b.textContent === "Append")`, time.Minute)
			p.Eval(`[...document.querySelectorAll(".beside button")].find(b => b.textContent === "Append").click()`, nil)
			p.Wait(`document.activeElement.matches("dialog[open] input")`, time.Minute)
			p.Type("paid")
		}
		appending()
		p.Eval(`(() => { const b = document.querySelector("dialog[open] button[type=submit]"); b.click(); b.click() })()`, nil)
		p.Wait(`!document.querySelector("dialog[open]")`, time.Minute)
		if n := w.events("order-1"); n != 2 {
			t.Errorf("the stream has %d events after a double click, want 2", n)
		}
		p.Wait(`document.querySelector(".beside").textContent.includes("0 to 1")`, time.Minute) // the dialog expects this version
		appending()
		w.lose.Store(true)
		p.Click("dialog[open] button[type=submit]")
		p.Wait(`document.querySelector("dialog[open] .failure")`, time.Minute)
		p.Click("dialog[open] button[type=submit]")
		p.Wait(`!document.querySelector("dialog[open]")`, time.Minute)
		if n := w.events("order-1"); n != 3 {
			t.Errorf("the stream has %d events after a lost response, want 3", n)
		}
	})
}

// TestManyObjectsNeedTheirNumber verifies that a destructive action on more than ten objects is sent only after their number
// was typed.
func TestManyObjectsNeedTheirNumber(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		testkit.Run(t, w.engine)
		for i := range 12 {
			must(w.AppendEvents(t.Context(), "order-1", wire.Append{Events: []wire.NewEvent{{Name: fmt.Sprint("step-", i)}}}))(t)
		}
		w.logIn(p, w.admin)
		p.Navigate(w.url + "/streams/order-1")
		p.Wait(`[...document.querySelectorAll(".beside button")].find(b => b.textContent === "Close")`, time.Minute)
		p.Eval(`[...document.querySelectorAll(".beside button")].find(b => b.textContent === "Close").click()`, nil)
		p.Wait(`document.querySelector("dialog[open] select")`, time.Minute)
		p.Eval(`(() => { const s = document.querySelector("dialog[open] select"); s.value = "tombstone"; s.dispatchEvent(new Event("change", {bubbles: true})) })()`, nil)
		p.Wait(`document.querySelector("dialog[open]").textContent.includes("Type 12 to confirm")`, time.Minute)
		p.Click("dialog[open] button[type=submit]")
		p.Wait(`document.querySelector("dialog[open] .notice")?.textContent.includes("Type 12 to confirm")`, time.Minute)
		if n := w.events("order-1"); n != 12 {
			t.Fatalf("the stream has %d events before the number was typed", n)
		}
		p.Click("dialog[open] input[inputmode=numeric]")
		p.Type("12")
		p.Click("dialog[open] button[type=submit]")
		p.Wait(`!document.querySelector("dialog[open]")`, time.Minute)
		if n := w.events("order-1"); n != 1 {
			t.Errorf("the stream has %d events after it was closed, want the tombstone", n)
		}
	})
}

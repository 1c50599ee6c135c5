package web_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// TestEightTabs verifies that eight tabs over HTTP/1.1, which allows six connections, all show what changes: they share one
// stream.
func TestEightTabs(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		w.logIn(p, w.admin)
		tabs := []*browser.Page{p}
		for range 7 {
			tabs = append(tabs, p.Tab())
		}
		for _, tab := range tabs {
			tab.Navigate(w.url + "/streams")
			tab.Wait(loaded, time.Minute)
		}
		must(w.AppendEvents(t.Context(), "order-1", wire.Append{Events: []wire.NewEvent{{Name: "paid"}}}))(t)
		for i, tab := range tabs {
			tab.Wait(`document.querySelector("main").textContent.includes("order-1")`, time.Minute)
			var open int
			if tab.Eval(`performance.getEntriesByType("resource").filter(r => r.name.includes("/api/v1/live")).length`, &open); i > 0 && open > 0 {
				t.Errorf("tab %d has opened %d streams of its own, want none", i, open)
			}
		}
	})
}

// TestALongList verifies that a list of many rows keeps few of them in the page, and reaches the last by scrolling.
func TestALongList(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		const rows = 3000
		var all sync.WaitGroup
		for worker := range 10 {
			all.Go(func() {
				for i := worker; i < rows; i += 10 {
					if _, err := w.AppendEvents(t.Context(), fmt.Sprintf("order-%05d", i), wire.Append{Events: []wire.NewEvent{{Name: "paid"}}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		w.logIn(p, w.admin)
		p.Navigate(w.url + "/streams")
		p.Wait(`document.querySelectorAll("tbody tr").length > 10`, time.Minute)
		most := 0
		for found := false; !found; {
			var n int
			p.Eval(`(async () => {
				const s = document.querySelector(".scroller"); s.scrollTop = s.scrollHeight
				await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame)
				return document.querySelectorAll("tbody tr").length })()`, &n)
			most = max(most, n)
			p.Eval(fmt.Sprintf(`document.querySelector("tbody").textContent.includes("order-%05d")`, rows-1), &found)
		}
		if most > 200 {
			t.Errorf("the page had %d rows, want at most 200", most)
		}
		t.Logf("longest task: %s", slices.Max(append(p.LongTasks(), 0)))
	})
}

// TestManyEvents verifies that a page that follows thousands of events a second ends up with what a fresh load shows.
func TestManyEvents(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		w.logIn(p, w.admin)
		p.Navigate(w.url + "/streams/order-1")
		p.Wait(loaded, time.Minute)
		events := make([]wire.NewEvent, 100)
		for i := range events {
			events[i].Name = "paid"
		}
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				for range 50 {
					if _, err := w.AppendEvents(t.Context(), fmt.Sprint("order-", worker), wire.Append{Events: events}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		begin := time.Now()
		all.Wait()
		t.Logf("%.0f events a second; longest task: %s", 20_000/time.Since(begin).Seconds(), slices.Max(append(p.LongTasks(), 0)))
		p.Wait(`document.querySelector("main").textContent.match(/5,?000|4,?999/)`, time.Minute)
	})
}

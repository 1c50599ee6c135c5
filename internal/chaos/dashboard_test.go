package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// logIn opens the dashboard of a server in a browser.
func (r *rig) logIn(p *browser.Page, server int) {
	r.t.Helper()
	p.Navigate(r.urls[server])
	p.Click("input[type=password]")
	p.Type(r.key)
	p.Press("Enter")
	p.Wait(`document.querySelector("nav a[aria-current]")`, time.Minute)
}

// look compares the race view of some entities with what the callers were told: all races of an entity together have one row
// for each loser, with its code.
func (c *contest) look() {
	if testlevel.Current() == testlevel.Test {
		return
	}
	p, ok := browser.Open(c.t)
	if !ok {
		return
	}
	c.logIn(p, 0)
	some := slices.Sorted(maps.Keys(c.told))
	if len(some) > 6 {
		some = append(some[:4], "late", "stopped")
	}
	for _, id := range some {
		want, won := map[string]int{}, 0
		for _, code := range c.told[id] {
			if code == "" {
				won++
			} else {
				want[code]++
			}
		}
		p.Navigate(c.urls[0] + "/lifecycles/bill/" + id + "?view=race")
		p.Wait(`document.querySelector("[data-race-loser], [data-race-late]")`, time.Minute)
		var races []string
		p.Eval(`[...new Set([...document.querySelectorAll("label select option")].filter(o => o.closest("label").textContent.startsWith("Race")).map(o => o.value))]`, &races)
		got := map[string]int{}
		for _, race := range races {
			p.Navigate(c.urls[0] + "/lifecycles/bill/" + id + "?view=race&race=" + race)
			p.Wait(`document.querySelector("[data-race-loser], [data-race-late]")`, time.Minute)
			var rows []struct {
				Code  string
				Count int
			}
			p.Eval(`[...document.querySelectorAll("[data-race-loser], [data-race-late]")].map(r => ({Code: r.dataset.code, Count: Number(r.dataset.count)}))`, &rows)
			for _, x := range rows {
				got[x.Code] += x.Count
			}
			var winners int
			if p.Eval(`document.querySelectorAll("[data-race-winner]").length`, &winners); winners != 1 {
				c.t.Errorf("%s: race %s shows %d winners, want one", id, race, winners)
			}
		}
		if won != 1 || fmt.Sprint(got) != fmt.Sprint(want) {
			c.t.Errorf("%s: the race view shows %v, but the callers counted %v", id, got, want)
		}
	}
}

// TestThePageResumes verifies that a page whose server is killed says how old it is and, when the server is back, shows what a
// fresh page shows.
func TestThePageResumes(t *testing.T) {
	testlevel.Long(t)
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) {
		r := newRig(t, binary, db, 2, "1s")
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		c := (&contest{rig: r}).contestant(1, r.key)
		write := func(ctx context.Context, name string) {
			if _, err := c.AppendEvents(ctx, name, wire.Append{Events: []wire.NewEvent{{Name: "paid"}}}); err != nil {
				t.Fatal(err)
			}
		}
		shows := func(name string) string {
			return fmt.Sprintf(`document.querySelector("main tbody")?.textContent.includes(%q)`, name)
		}
		write(t.Context(), "order-1")
		r.logIn(p, 0)
		p.Navigate(r.urls[0] + "/streams")
		p.Wait(shows("order-1"), time.Minute)
		p.Wait(`document.querySelector(".live.tone-ok")`, time.Minute)
		second := p.Tab() // gets its messages from the first
		second.Navigate(r.urls[0] + "/streams")
		second.Wait(shows("order-1"), time.Minute)
		r.servers[0].kill()
		p.Wait(`document.querySelector(".live.tone-danger")?.textContent.includes("ago")`, time.Minute)
		write(t.Context(), "order-2") // through the other server
		if err := r.servers[0].start(); err != nil {
			t.Fatal(err)
		}
		p.Wait(shows("order-2"), time.Minute)
		second.Wait(shows("order-2"), time.Minute)
		fresh := p.Tab()
		fresh.Navigate(r.urls[0] + "/streams")
		fresh.Wait(shows("order-2"), time.Minute)
		names := `[...document.querySelectorAll("main tbody tr td:first-child")].map(x => x.textContent).sort().join()`
		var resumed, anew string
		p.Eval(names, &resumed)
		fresh.Eval(names, &anew)
		if resumed != anew {
			t.Errorf("the page shows %q, a fresh one %q", resumed, anew)
		}
	})
}

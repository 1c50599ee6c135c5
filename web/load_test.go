package web_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
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

// streamsOf writes streams of one event each: ?1 is the number before the first of them, ?2 how many.
var streamsOf = map[string][]string{
	"postgres": {
		`INSERT INTO holdfast.stream (shard, workspace, name, head) SELECT 0, 'default', 'order-' || lpad(n::text, 7, '0'), 0 FROM generate_series($1::int + 1, $1::int + $2::int) n`,
		`INSERT INTO holdfast.event (shard, id, n, workspace, stream, version, name, data, at)
		 SELECT 0, gen_random_uuid(), 0, 'default', 'order-' || lpad(n::text, 7, '0'), 0, 'paid', '{}', now() FROM generate_series($1::int + 1, $1::int + $2::int) n`,
	},
	"sqlite": {
		`WITH RECURSIVE g(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?1 + ?2)
		 INSERT INTO holdfast_stream (shard, workspace, name, head) SELECT 0, 'default', printf('order-%07d', n), 0 FROM g`,
		`WITH RECURSIVE g(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?1 + ?2)
		 INSERT INTO holdfast_event (shard, id, n, workspace, stream, version, name, data, at) SELECT 0, randomblob(16), 0, 'default', printf('order-%07d', n), 0, 'paid', '{}', 1 FROM g`,
	},
}

// streams writes streams into the database.
func (w *world) streams(name string, n int) {
	w.t.Helper()
	const page = 50_000
	for from := 0; from < n; from += page {
		err := w.engine.Update(w.t.Context(), func(ctx context.Context, tx holdfast.Tx) (err error) {
			for _, text := range streamsOf[name] {
				if name == "postgres" {
					_, err = postgres.Raw(tx).Exec(ctx, text, from, min(page, n-from))
				} else {
					_, err = sqlite.Raw(tx).ExecContext(ctx, text, from, min(page, n-from))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestALongList verifies that a list of a million rows keeps few of them in the page, also while it is scrolled to further
// and further pages and back, and that no task of the page takes long.
func TestALongList(t *testing.T) {
	testlevel.Long(t)
	rows := testlevel.Pick(0, 20_000, 1_000_000)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		_, name, _ := strings.Cut(t.Name(), "/")
		w.streams(name, rows)
		w.logIn(p, w.admin)
		p.Navigate(w.url + "/streams")
		p.Wait(`document.querySelectorAll("tbody tr").length > 10`, time.Minute)
		const read = 5000 // more than the page keeps
		most := 0
		longest, _ := p.Busy(func() {
			p.Eval(fmt.Sprintf(`(async () => {
				const s = document.querySelector(".scroller"), frame = () => new Promise(r => { requestAnimationFrame(() => setTimeout(r)) })
				let most = 0
				const look = async to => { s.scrollTop = to; await frame(); most = Math.max(most, document.querySelectorAll("tbody tr").length) }
				while (!document.querySelector("tbody").textContent.includes("order-%07d")) await look(s.scrollTop + 600)
				for (let n = 0; n < 40; n++) await look(s.scrollTop - 600)
				return most })()`, read), &most)
		})
		if most > 200 {
			t.Errorf("the page had %d rows, want at most 200", most)
		}
		t.Logf("longest task: %v", longest)
		if longest > 50*time.Millisecond {
			t.Errorf("a task took %v of CPU time, want at most 50 ms", longest)
		}
	})
}

// TestManyEvents verifies that a page that follows thousands of events a second has no task that takes long, and ends up with
// what a fresh load shows.
func TestManyEvents(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		testkit.Run(t, w.engine)
		w.logIn(p, w.admin)
		for n, page := range []string{"/streams/order-1", "/streams?view=events"} {
			p.Navigate(w.url + page)
			p.Wait(loaded, time.Minute)
			p.Wait(`document.querySelector(".live.tone-ok")`, time.Minute)
			events := make([]wire.NewEvent, 100)
			for i := range events {
				events[i].Name = "paid"
			}
			var rate float64
			longest, _ := p.Busy(func() {
				begin := time.Now()
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
				all.Wait()
				rate = 20_000 / time.Since(begin).Seconds()
				p.Wait(fmt.Sprintf(`!!document.querySelector("main").textContent.match(/%d,?999/)`, 4+5*n), time.Minute)
			})
			t.Logf("%s: %.0f events a second; longest task: %v", page, rate, longest)
			if longest > 100*time.Millisecond {
				t.Errorf("%s: a task took %v of CPU time, want at most 100 ms", page, longest)
			}
		}
	})
}

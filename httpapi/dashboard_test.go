package httpapi_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// seen opens the dashboard's inbox in a browser, in which the test then looks and acts. At level test it does so for few kinds.
func (d *testAPI) seen(t *testing.T, kind inbox.Kind) {
	t.Helper()
	if testlevel.Current() == testlevel.Test && kind != inbox.BlockedStream {
		return
	}
	if p, ok := browser.Open(t); ok {
		p.Navigate(d.url)
		p.Wait(`document.querySelector("h1")?.textContent === "Inbox"`, time.Minute)
		d.page = p
	}
}

// quote returns a text as JavaScript.
func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// times are those in a reason, which grow.
var times = regexp.MustCompile(`\d+m?s`)

// sees waits until the page shows an entry, with what the API says about it. The page is told within 2 seconds; the limit is
// longer because a busy machine draws late.
func (d *testAPI) sees(x wire.InboxItem) {
	d.t.Helper()
	if d.page == nil {
		return
	}
	entry := fmt.Sprintf(`[...document.querySelectorAll("li[data-kind=%s]")].find(e => e.dataset.id === %s)`, x.Kind, quote(x.ID))
	begin := time.Now()
	d.page.Wait(entry, time.Minute)
	d.t.Logf("the page showed %s after %v", x.Kind, time.Since(begin))
	var text string
	d.page.Eval(entry+".textContent", &text)
	for _, part := range []string{x.Reason, x.Owner, x.Action.Label} {
		if !strings.Contains(times.ReplaceAllString(text, "…"), times.ReplaceAllString(part, "…")) {
			d.t.Errorf("the page shows %q, want %q in it", text, part)
		}
	}
}

// clicks ends an entry by its button, and confirms if the page asks. It reports false if no page is open.
func (d *testAPI) clicks(a wire.InboxAction) bool {
	d.t.Helper()
	if d.page == nil {
		return false
	}
	button := fmt.Sprintf(`[...document.querySelectorAll("li[data-kind] button.primary")].find(b => b.textContent === %s)`, quote(a.Label))
	var found bool
	if d.page.Eval("!!"+button, &found); !found { // an alternative, which is in a menu
		return false
	}
	d.page.ClickFound(button)
	d.page.Wait(`document.querySelector("dialog[open] button[type=submit], .toast")`, time.Minute)
	var asked bool
	if d.page.Eval(`!!document.querySelector("dialog[open] button[type=submit]")`, &asked); asked {
		d.page.Click("dialog[open] button[type=submit]")
	}
	var said string
	d.page.Wait(`document.querySelector(".toast, dialog .failure")`, time.Minute)
	if d.page.Eval(`document.querySelector("dialog .failure, .toast:not(.tone-ok)")?.textContent ?? ""`, &said); said != "" {
		d.t.Errorf("the page says %q after %q was clicked", said, a.Label)
	}
	return true
}

// unseen waits until the page shows no entry of a kind.
func (d *testAPI) unseen(kind inbox.Kind) {
	d.t.Helper()
	if d.page == nil {
		return
	}
	d.page.Wait(fmt.Sprintf(`!document.querySelector("li[data-kind=%s]")`, kind), time.Minute)
	if problems := d.page.Problems(); len(problems) > 0 {
		d.t.Errorf("the browser reports %q", problems)
	}
}

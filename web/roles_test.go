package web_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// changes are the routes that change something, with the roles that may use them, as the route table has them.
type changes map[string]*change

type change struct {
	match *regexp.Regexp
	roles []string
}

var (
	roleLine  = regexp.MustCompile(`(?m)^  "([A-Z]+) (/[^"]*)": \[(.*)\],$`)
	parameter = regexp.MustCompile(`\{[^}]+\}`)
)

func readChanges(t *testing.T) changes {
	t.Helper()
	text, err := os.ReadFile("src/api.gen.ts")
	if err != nil {
		t.Fatal(err)
	}
	all := make(changes)
	for _, m := range roleLine.FindAllStringSubmatch(string(text), -1) {
		all[m[1]+" "+m[2]] = &change{regexp.MustCompile("^" + m[1] + " " + parameter.ReplaceAllString(m[2], "[^/]*") + "$"), strings.Split(strings.ReplaceAll(m[3], `"`, ""), ", ")}
	}
	if len(all) < 40 {
		t.Fatalf("found %d routes", len(all))
	}
	return all
}

// of returns the route of a request such as "POST /keys/k1/rotate".
func (all changes) of(request string) (string, *change) {
	request, _, _ = strings.Cut(request, "?")
	found := ""
	for name, c := range all {
		if c.match.MatchString(request) && (found == "" || strings.Count(name, "{") < strings.Count(found, "{")) {
			found = name
		}
	}
	return found, all[found]
}

// useEverything clicks everything on a page that could begin an action: buttons, entries of menus, and the actions that ⌘K
// finds. It returns the requests of the dialogs that opened, and closes these without sending.
const useEverything = `(async () => {
	const found = new Set(), used = new Set(), home = location.href
	const frame = () => new Promise(resolve => { requestAnimationFrame(() => setTimeout(resolve)); setTimeout(resolve, 50) })
	const until = async (f, limit = 1000) => { for (const end = performance.now() + limit; !f() && performance.now() < end;) await frame(); return f() }
	const form = () => document.querySelector("dialog[open] form[data-request]")
	const settle = async before => {
		await frame(); await frame()
		if (document.querySelector("dialog form[data-request]")) await until(form)
		for (let f; f = form();) { found.add(f.dataset.request); f.closest("dialog").close(); await until(() => form() !== f) }
		for (const d of document.querySelectorAll("dialog[open]")) d.close()
		if (location.pathname !== new URL(home).pathname) { history.pushState(null, "", home); dispatchEvent(new PopStateEvent("popstate")); await quiet() }
		await until(() => !document.querySelector("main .empty[role=status]"), 5000) // it has read what it shows
		await until(() => buttons().length >= before, 2000) // it has drawn again what a click on a link or a busy machine took away
	}
	const quiet = async () => { for (let calm = 0; calm < 2; calm = await (await fetch("/requests-in-flight")).text() === "0" ? calm + 1 : 0) await frame() }
	await quiet()
	const once = (all, name) => { const seen = {}; return all.find(x => { const text = name + x.textContent + (x.ariaLabel ?? ""), n = seen[text] = (seen[text] ?? 0) + 1; if (n > 3 || used.has(text + n)) return false; used.add(text + n); return true }) }
	const copies = x => /^copy/i.test(x.textContent || x.ariaLabel || "")
	const atOnce = b => /^(unblock|retry|pause|resume|run the|close$)/i.test(b.textContent) // these change the page, without a dialog
	const buttons = () => [...document.querySelectorAll("main button")].filter(b => !b.closest("header.top, [popover], .zoom") && b.role !== "tab" && !b.disabled && !copies(b))
		.sort((a, b) => atOnce(a) - atOnce(b))
	for (let b; used.size < 200 && (b = once(buttons(), "button "));) {
		const there = buttons().length
		b.click()
		if (!b.hasAttribute("popovertarget")) { await settle(there); continue }
		const menu = document.getElementById(b.getAttribute("popovertarget")), label = b.ariaLabel
		for (let e; e = once([...menu.querySelectorAll("button")].filter(x => !copies(x)), "entry of " + label + " ");) { menu.hidePopover(); e.click(); await settle(there); if (!menu.isConnected) break }
		if (menu.isConnected) menu.hidePopover()
	}
	for (const box of [...document.querySelectorAll("main tbody input[type=checkbox]")].slice(0, 1)) {
		box.click(); await frame(); await frame()
		for (let b; b = once([...document.querySelectorAll("[role=toolbar] button")], "toolbar ");) { b.click(); await settle(1) }
	}
	const palette = async () => { document.querySelector(".find").click(); await until(() => document.querySelector("dialog.palette[open]")); return [...document.querySelectorAll("dialog.palette [data-group='Actions on this page']")] }
	for (let o; o = once((await palette()).filter(x => !copies(x)), "option ");) { o.click(); await settle(1) }
	document.querySelector("dialog.palette")?.close()
	return [...found]
})()`

// inOtherWays are routes that no button sends: those of workers and of programs, and those of a session.
var inOtherWays = []string{
	"POST /tasks/", "POST /reactions/{name}/claim", "POST /reactions/{name}/ack", "POST /reactions/{name}/renew", "POST /reactions/{name}/fail", "POST /reactions/{name}/snooze", "POST /claims/", "POST /lifecycles/{name}/entities/{id}/claims",
	"PUT /lifecycles/", "POST /workspaces", "POST /scopes/{kind}/{id}/", "PUT /scopes/{kind}/{id}/records", "DELETE /scopes/{kind}/{id}/records", "POST /session", "DELETE /session",
	"POST /bulk/{id}/cancel", // while a bulk is in progress, which a test cannot hold
}

// TestActionsByRole verifies for each role that everything that a page offers is permitted: no button, no entry of a menu and
// no action that ⌘K finds begins a request that the role may not send. All together are offered every action.
func TestActionsByRole(t *testing.T) {
	testlevel.Long(t)
	all := readChanges(t)
	offered := make(map[string]bool)
	onBoth(t, func(t *testing.T, w *world) {
		w.fill(t.Context(), plain)
		random := testlevel.Rand(t)
		half := strings.Count(t.Name(), "postgres") // each page on one of the databases: what is offered does not depend on them
		for _, role := range []keys.Role{keys.Read, keys.Worker, keys.Operate, keys.Admin} {
			w.frozen.Store(false)
			p, ok := browser.Open(t)
			if !ok {
				return
			}
			w.logIn(p, w.key(string(role), role))
			w.takeSent()
			w.frozen.Store(true) // else an action that is sent at once would take others away
			for i, page := range w.pages {
				if i%2 != half || role != keys.Admin && random.IntN(testlevel.Pick(3, 3, 1)) != 0 {
					continue
				}
				p.Navigate(w.url + page)
				p.Wait(loaded, time.Minute)
				var begun []string
				p.Eval(useEverything, &begun)
				for _, request := range append(begun, w.takeSent()...) {
					name, c := all.of(request)
					switch {
					case c == nil:
						t.Errorf("%s begins %s, which is no route", page, request)
					case !slices.Contains(c.roles, string(role)):
						t.Errorf("%s offers %s to the role %s", page, request, role)
					default:
						offered[name] = true
					}
				}
			}
		}
	})
	for name := range all {
		if len(offered) > 0 && !offered[name] && !slices.ContainsFunc(inOtherWays, func(x string) bool { return strings.HasPrefix(name, x) }) {
			t.Errorf("no page offers %s to anyone", name)
		}
	}
}

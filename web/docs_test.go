package web_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/docsite"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

var (
	href        = regexp.MustCompile(`<(?:a|link)\b[^>]*? href="([^"]*)"`)
	idOf        = regexp.MustCompile(` id="([^"]*)"`)
	noRedirects = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
)

// read requests a page as a client without a key, and returns it.
func (w *world) read(path string) (status int, h http.Header, body string) {
	w.t.Helper()
	resp, err := noRedirects.Get(w.url + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(all)
}

func between(text, begin, end string) string {
	_, text, _ = strings.Cut(text, begin)
	text, _, _ = strings.Cut(text, end)
	return text
}

// TestEachLinkOfTheDocumentationLeadsSomewhere follows all links from the first page, without a key. It verifies that
// each page is served and reached, that each anchor exists, and that each file of the repository exists.
func TestEachLinkOfTheDocumentationLeadsSomewhere(t *testing.T) {
	testlevel.OneGoroutine(t)
	each(t, func(t *testing.T, w *world) {
		anchors := make(map[string]map[string]bool)
		var links [][2]string // from, to
		for queue := []string{docsite.Root}; len(queue) > 0; queue = queue[1:] {
			from := queue[0]
			if anchors[from] != nil {
				continue
			}
			status, h, body := w.read(from)
			if status != 200 || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'") || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s returned status %d and headers %v", from, status, h)
			}
			anchors[from] = map[string]bool{"": true}
			if !strings.HasPrefix(h.Get("Content-Type"), "text/html") {
				continue
			}
			for _, m := range idOf.FindAllStringSubmatch(body, -1) {
				anchors[from][m[1]] = true
			}
			for _, m := range href.FindAllStringSubmatch(body, -1) {
				to, err := url.Parse(html.UnescapeString(m[1]))
				if err != nil {
					t.Fatal(err)
				}
				to = (&url.URL{Path: from}).ResolveReference(to)
				file, repository := strings.CutPrefix(to.String(), docsite.Repository+"/blob/main/")
				switch {
				case repository:
					file, _, _ = strings.Cut(file, "#")
					if _, err := os.Stat(path.Join("..", file)); err != nil {
						t.Errorf("%s links to %s: %v", from, m[1], err)
					}
				case to.Host == "" && to.Path != "/":
					queue, links = append(queue, to.Path), append(links, [2]string{from, to.Path + "#" + to.Fragment})
				}
			}
		}
		for _, l := range links {
			if name, anchor, _ := strings.Cut(l[1], "#"); !anchors[name][anchor] {
				t.Errorf("%s links to %s, which does not exist", l[0], l[1])
			}
		}
		site, err := docsite.Load()
		if err != nil {
			t.Fatal(err)
		}
		for address, p := range site.Files {
			if anchors[address] == nil {
				t.Errorf("no link leads to %s", p.Name)
			}
		}
	})
}

// TestSearchFindsThePage verifies that the first result of a search is the section that answers it: that what is a title
// comes before what begins a line, and that before the rest.
func TestSearchFindsThePage(t *testing.T) {
	testlevel.OneGoroutine(t)
	each(t, func(t *testing.T, w *world) {
		for query, want := range map[string]string{
			"backup":                        "/docs/backup",
			"idempotency key":               "/docs/http#idempotency-key",
			"what is a workspace":           "/docs/concepts#workspaces-nodes-and-workers",
			"epoch":                         "/docs/glossary#how-it-works",
			"batches":                       "/docs/batches",
			"CLAIM_FAILED":                  "/docs/errors",
			"outcome_unknown":               "/docs/errors",
			"pgbouncer":                     "/docs/operating#pgbouncer",
			"Postgres":                      "/docs/postgresql",
			"--no-dashboard":                "/docs/configuration",
			"holdfast keys rotate":          "/docs/cli#commands",
			"holdfast_claims_refused_total": "/docs/monitoring#metrics",
			"upgrade":                       "/docs/upgrading",
			"webhook signature":             "/docs/webhooks",
			"delete personal data":          "/docs/how-to/delete-personal-data",
			"how do I test my handlers":     "/docs/testing",
			"blockedStream":                 "/docs/runbooks/blockedStream",
		} {
			_, _, body := w.read("/docs/search?q=" + url.QueryEscape(query))
			first := href.FindStringSubmatch(between(body, `<ol class="results">`, "</article>"))
			if first == nil || first[1] != want {
				t.Errorf("%q found %q first, want %s", query, first, want)
			}
		}
	})
}

// TestTheDocumentationRefuses verifies what is shown for a query that is none, a script, and a page that does not exist, and
// where other addresses of a page lead.
func TestTheDocumentationRefuses(t *testing.T) {
	testlevel.OneGoroutine(t)
	each(t, func(t *testing.T, w *world) {
		const script = `"><script>ran=1</script>&lease<`
		for query, want := range map[string]string{"": "Enter words", "?!": "No section", "zzzzzz": "No section", "completed 480": "&lt;nil&gt;", "\xff\x00": "No section", strings.Repeat("lease ", 5000): "section", script: "lease"} {
			status, _, body := w.read("/docs/search?q=" + url.QueryEscape(query))
			if status != 200 || !strings.Contains(body, want) || strings.Contains(body, script) || strings.Contains(body, "<script>ran") {
				t.Errorf("search for %.40q: status %d, want 200 and %q:\n%s", query, status, want, between(body, "<main>", "</main>"))
			}
		}
		if status, _, body := w.read("/docs/" + url.PathEscape(script)); status != 404 || strings.Contains(body, "ran=1") {
			t.Errorf("a page that does not exist: status %d: %s", status, body)
		}
		for from, to := range map[string]string{"/docs": "/docs/", "/docs/http.md": "/docs/http", "/docs/README.md": "/docs/", "/docs/runbooks": "/docs/runbooks/"} {
			if status, h, _ := w.read(from); status != 301 || h.Get("Location") != to {
				t.Errorf("%s: status %d to %q, want 301 to %s", from, status, h.Get("Location"), to)
			}
		}
	})
}

// TestTheDocumentationInABrowser verifies that axe finds nothing on pages, that none is wider than the screen, dark and
// light, that they have the theme of the dashboard, and that the search works.
func TestTheDocumentationInABrowser(t *testing.T) {
	testlevel.Long(t)
	each(t, func(t *testing.T, w *world) {
		p, ok := browser.Open(t)
		if !ok {
			return
		}
		site, err := docsite.Load()
		if err != nil {
			t.Fatal(err)
		}
		pages := []string{"/docs/search?q=lease", "/docs/none", docsite.Root, "/docs/errors"}
		random := testlevel.Rand(t)
		for range testlevel.Pick(6, 6, len(site.Pages)) {
			pages = append(pages, site.Pages[random.IntN(len(site.Pages))].URL)
		}
		for i, page := range pages {
			v := views[i%2]
			p.SetView(v)
			p.Navigate(w.url + page)
			p.Wait(`document.readyState === "complete"`, time.Minute)
			what := fmt.Sprintf("%s at %d px", page, v.Width)
			for _, violation := range p.Axe() {
				t.Errorf("%s: axe: %s", what, violation)
			}
			var wide bool
			if p.Eval("document.documentElement.scrollWidth > innerWidth", &wide); wide {
				t.Errorf("%s scrolls sideways", what)
			}
		}
		p.Navigate(w.url + docsite.Root)
		p.Eval(`localStorage.setItem("holdfast.theme", "light"), document.querySelector("input[name=q]").value = "PgBouncer", document.querySelector("form").requestSubmit()`, nil)
		p.Wait(`document.querySelector(".results a")`, time.Minute)
		p.Wait(`document.documentElement.dataset.theme === "light"`, time.Minute)
		p.Click(".results a")
		p.Wait(`location.hash === "#pgbouncer" && document.querySelector("#pgbouncer")`, time.Minute)
		for _, r := range p.Requests() {
			if !strings.HasPrefix(r, w.url+"/") {
				t.Errorf("a request went to %s", r)
			}
		}
		if problems := p.Problems(); len(problems) != 1 || !strings.Contains(problems[0], "404") { // of the page that does not exist
			t.Errorf("the browser reports %q", problems)
		}
	})
}

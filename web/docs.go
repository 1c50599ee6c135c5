package web

import (
	"cmp"
	"html"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/docsite"
)

// docsPolicy is policy, but a page may send the form of the search, and read nothing.
var docsPolicy = strings.NewReplacer("connect-src 'self'; ", "", "form-action 'none'", "form-action 'self'").Replace(policy)

var docsKinds = map[string]string{".md": kinds[".html"], ".json": "application/json"}

// docs are the files of the documentation by their paths. They are rendered at the first request.
var docs = sync.OnceValues(func() (map[string]*file, error) {
	site, err := docsite.Load()
	if err != nil {
		return nil, err
	}
	dashboard, err := files()
	if err != nil {
		return nil, err
	}
	all := make(map[string]*file)
	for _, p := range site.Files {
		content := p.Raw
		if content == nil {
			content = []byte(docsPage(dashboard, site, p, p.Title, "", "<article>"+p.HTML+"</article>"))
		}
		all[p.URL] = docsFile(content, docsKinds[path.Ext(p.Name)])
	}
	return all, nil
})

func docsFile(content []byte, kind string) *file {
	return &file{content: func() []byte { return content }, gzip: sync.OnceValue(func() []byte { return zipped(content) }), kind: kind, etag: etag(content), policy: docsPolicy}
}

// longestQuery is how many bytes of a query are searched for and shown.
const longestQuery = 200

var searching sync.Mutex

// serveDocs serves the documentation.
func serveDocs(w http.ResponseWriter, r *http.Request, dashboard map[string]*file) {
	all, err := docs()
	site, _ := docsite.Load()
	if err != nil { // the pages are part of the program
		http.Error(w, "the documentation cannot be read", http.StatusInternalServerError)
		return
	}
	name := r.URL.Path
	switch f := all[name]; {
	case f != nil:
		f.send(w, r, http.StatusOK)
	case name == docsite.Root+"search":
		query := r.URL.Query().Get("q")
		if len(query) > longestQuery {
			query = strings.ToValidUTF8(query[:longestQuery], "")
		}
		searching.Lock() // searches need no key: they use one core at most
		results := found(site, query)
		searching.Unlock()
		page := docsPage(dashboard, site, nil, "Search", query, results)
		docsFile([]byte(page), kinds[".html"]).send(w, r, http.StatusOK)
	case all[plain(name)] != nil:
		http.Redirect(w, r, plain(name), http.StatusMovedPermanently)
	default:
		page := docsPage(dashboard, site, nil, "Not found", "", "<article><h1>This page does not exist</h1>\n<p>Search for it, or choose one from the list of pages.</p></article>")
		docsFile([]byte(page), kinds[".html"]).send(w, r, http.StatusNotFound)
	}
}

// plain returns the address of a page that is named as in the repository, or without the slash at its end.
func plain(name string) string {
	if below, ok := strings.CutPrefix(name, docsite.Root); ok && path.Ext(name) == ".md" {
		return docsite.URL("docs/" + below)
	}
	return name + "/"
}

// docsPage returns a page with its navigation. p is nil for a page that is not in it.
func docsPage(dashboard map[string]*file, site *docsite.Site, p *docsite.Page, title, query, main string) string {
	return strings.NewReplacer("<!--title-->", html.EscapeString(title), "<!--query-->", html.EscapeString(query), "<!--pages-->", navigation(site, p), "<!--main-->", main).
		Replace(string(dashboard["/docs.html"].content()))
}

func navigation(site *docsite.Site, current *docsite.Page) string {
	var out strings.Builder
	for _, g := range site.Groups {
		out.WriteString("<h2>" + html.EscapeString(g.Title) + "</h2>\n<ul>\n")
		for _, p := range g.Pages {
			here := ""
			if p == current {
				here = ` aria-current="page"`
			}
			out.WriteString(`<li><a href="` + p.URL + `"` + here + `>` + html.EscapeString(p.Title) + "</a>")
			if p == current {
				out.WriteString(contents(p))
			}
			out.WriteString("</li>\n")
		}
		out.WriteString("</ul>\n")
	}
	return out.String()
}

// contents returns the list of the main sections of a page.
func contents(p *docsite.Page) string {
	var out strings.Builder
	for _, s := range p.Sections {
		if s.Level == 2 {
			out.WriteString(`<li><a href="#` + s.Anchor + `">` + html.EscapeString(s.Title) + "</a></li>\n")
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return "\n<ul>\n" + out.String() + "</ul>\n"
}

// found returns what a search has found.
func found(site *docsite.Site, query string) string {
	results := site.Search(query)
	var out strings.Builder
	out.WriteString("<article>\n<h1>Search</h1>\n<p class=\"muted\" role=\"status\">")
	switch {
	case strings.TrimSpace(query) == "":
		out.WriteString("Enter words, an error code, a flag or the name of a metric.")
	case len(results) == 0:
		out.WriteString("No section has any of these words.")
	default:
		out.WriteString(strconv.Itoa(len(results)) + map[bool]string{true: " section", false: " sections"}[len(results) == 1])
	}
	out.WriteString("</p>\n<ol class=\"results\">\n")
	for _, r := range results {
		title := html.EscapeString(r.Page.Title)
		if own := html.EscapeString(cmp.Or(r.Section.Title, r.Page.Title)); own != title {
			title += " <span class=\"muted\">›</span> " + own
		}
		out.WriteString(`<li><a href="` + r.URL + `">` + title + "</a><p>" + r.Excerpt + "</p></li>\n")
	}
	return out.String() + "</ol></article>"
}

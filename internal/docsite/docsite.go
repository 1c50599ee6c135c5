// Package docsite has the documentation for users as the program serves it: the pages as HTML, and a search.
package docsite

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/docs"
	"github.com/holdfast-go/holdfast/internal/markdown"
)

const (
	// Root is the path that all pages are below.
	Root = "/docs/"
	// Repository has the files that are not served: sources, pictures, decisions, and what is not below docs.
	Repository = "https://github.com/holdfast-go/holdfast"

	index = "docs/README.md"
)

// Page is a page, or a file that is served as it is.
type Page struct {
	Name     string // in the repository, such as docs/http.md
	URL      string
	Title    string
	Sections []markdown.Section
	HTML     string
	Raw      []byte // of a file that is no page

	lower []lower // of each section
}

// lower is a section in lower case, for the search.
type lower struct{ title, text string }

// Site is the documentation.
type Site struct {
	Files  map[string]*Page // by URL
	Pages  []*Page          // without other files
	Groups []Group
}

// Group is a part of the navigation: the pages that a section of the index links to.
type Group struct {
	Title string
	Pages []*Page
}

// Load returns the documentation. It is read once.
var Load = sync.OnceValues(func() (*Site, error) {
	files := make(map[string][]byte)
	err := fs.WalkDir(docs.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files["docs/"+name], err = docs.Files.ReadFile(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return New(files)
})

// New renders files of the repository.
func New(files map[string][]byte) (*Site, error) {
	s := &Site{Files: make(map[string]*Page)}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		s.Files[URL(name)] = &Page{Name: name, URL: URL(name)}
	}
	for _, name := range names {
		p := s.Files[URL(name)]
		if path.Ext(p.Name) != ".md" {
			p.Raw = files[p.Name]
			continue
		}
		doc, err := markdown.Render(string(files[p.Name]), func(target string) string { return s.resolve(p.Name, target) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if len(doc.Sections) == 0 || doc.Sections[0].Level != 1 {
			return nil, fmt.Errorf("%s: the page does not begin with a title", p.Name)
		}
		p.Title, p.Sections, p.HTML = doc.Sections[0].Title, doc.Sections, doc.HTML
		for i := range p.Sections {
			p.lower = append(p.lower, lower{strings.ToLower(p.Sections[i].Title), strings.ToLower(p.Sections[i].Text)})
		}
		s.Pages = append(s.Pages, p)
	}
	s.navigate()
	return s, nil
}

// URL returns the path of a file: /docs/http for docs/http.md, and /docs/ for docs/README.md.
func URL(name string) string {
	return Root + strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(name, "docs/"), ".md"), "README")
}

// resolve returns the URL of a link from a page.
func (s *Site) resolve(from, target string) string {
	file, anchor, _ := strings.Cut(target, "#")
	if strings.Contains(file, ":") || file == "" {
		return target
	}
	if anchor != "" {
		anchor = "#" + anchor
	}
	name := path.Join(path.Dir(from), file)
	for _, file := range []string{name, name + "/README.md"} {
		if p := s.Files[URL(file)]; p != nil && p.Name == file {
			return p.URL + anchor
		}
	}
	return Repository + "/blob/main/" + name + anchor // GitHub redirects to the tree if it is a folder
}

// navigate makes the groups from the index.
func (s *Site) navigate() {
	seen := make(map[*Page]bool)
	for _, section := range s.Files[URL(index)].Sections {
		g := Group{Title: section.Title}
		for _, l := range section.Links {
			url, _, _ := strings.Cut(l.URL, "#")
			if p := s.Files[url]; section.Level == 2 && p != nil && p.Raw == nil && !seen[p] {
				seen[p] = true
				g.Pages = append(g.Pages, p)
			}
		}
		if len(g.Pages) > 0 {
			s.Groups = append(s.Groups, g)
		}
	}
}

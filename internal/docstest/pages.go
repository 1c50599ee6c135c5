package docstest

import (
	"io/fs"
	"path"
	"strings"
)

// Pages returns the pages for users: README.md, SECURITY.md, the pages in docs without the decisions, and those of the
// examples and the SDKs.
func Pages(fsys fs.FS) ([]Page, error) {
	var all []Page
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "docs/decisions" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != "." || name != "." && !strings.Contains(name, "/") && !forUsers[name]):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md" || name == "CHANGELOG.md":
			return nil
		}
		p, err := Read(fsys, name)
		all = append(all, p)
		return err
	})
	return all, err
}

// forUsers are the folders with pages for users.
var forUsers = map[string]bool{"docs": true, "examples": true, "sdk": true, "deploy": true}

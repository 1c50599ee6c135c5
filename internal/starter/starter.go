// Package starter writes the starter projects of "holdfast init". The projects are the folders next to this file. A file
// that ends with .tmpl has names in double braces, which [Project.values] defines, and gitignore.tmpl becomes .gitignore.
package starter

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed go typescript
var files embed.FS

// Project is a project to write.
type Project struct {
	// Template is go or typescript.
	Template string
	// Dir is the folder of the project, which must be empty or not exist.
	Dir string
	// Version is the version of this program.
	Version string
	// Checkout is a checkout of Holdfast's repository that the project uses instead of a release; "" for a release.
	Checkout string
}

// Released reports whether a version is that of a release.
func Released(version string) bool { return release.MatchString(version) }

var (
	// device matches the names that no file has on Windows, and therefore no element of the path of a module.
	device  = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
	release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[a-z]+(\.\d+)*)?$`)
	unnamed = regexp.MustCompile(`[^a-z0-9]+`)
)

// Write writes the project, or nothing.
func (p Project) Write() (err error) {
	values, err := p.values()
	if err != nil {
		return err
	}
	contents, err := p.render(strings.NewReplacer(values...))
	if err != nil {
		return err
	}
	w := writer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.undo())
		}
	}()
	if err := w.folder(p.Dir); err != nil {
		return err
	}
	present, err := os.ReadDir(p.Dir)
	if err != nil {
		return err
	}
	present = slices.DeleteFunc(present, func(e os.DirEntry) bool { return e.Name() == ".git" })
	if len(present) > 0 {
		return fmt.Errorf("the folder %s is not empty (it has %s): choose another one", p.Dir, present[0].Name())
	}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		if err := w.file(filepath.Join(p.Dir, filepath.FromSlash(name)), contents[name]); err != nil {
			return err
		}
	}
	return nil
}

const module = "github.com/holdfast-go/holdfast"

// values returns pairs of a name in a template and its value.
func (p Project) values() ([]string, error) {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(strings.Trim(unnamed.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-"), "app")
	if device.MatchString(name) {
		name += "-app"
	}
	var require, client, note string
	switch {
	case p.Checkout != "":
		checkout, err := filepath.Abs(p.Checkout)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(checkout, "sdk", "typescript", "package.json")); err != nil {
			return nil, fmt.Errorf("%s is not a checkout of Holdfast's repository: %w", p.Checkout, err)
		}
		checkout = filepath.ToSlash(checkout)
		require = "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + strconv.Quote(checkout) + "\n"
		client = "file:" + checkout + "/sdk/typescript"
	case Released(p.Version):
		require, client = "\nrequire "+module+" "+p.Version+"\n", p.Version[1:]
	default:
		client, note = "latest", notReleased
	}
	return []string{"{{name}}", name, "{{require}}", require, "{{client}}", client, "{{note}}", note}, nil
}

// notReleased is a part of the README of a Go project.
const notReleased = "\nThe program that wrote this project is not a release. To use a clone of its repository instead of the newest release, first run:\n\n" +
	"    go mod edit -require " + module + "@v0.0.0 -replace " + module + "=/path/to/holdfast\n"

// render returns the contents of the project's files by their names.
func (p Project) render(values *strings.Replacer) (map[string][]byte, error) {
	project, err := fs.Sub(files, p.Template)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]byte)
	err = fs.WalkDir(project, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(project, name)
		if err != nil {
			return err
		}
		if to, ok := strings.CutSuffix(name, ".tmpl"); ok {
			name, content = strings.Replace(to, "gitignore", ".gitignore", 1), []byte(values.Replace(string(content)))
		}
		all[name] = content
		return nil
	})
	return all, err
}

// writer remembers what it has written, so that it can be removed.
type writer struct{ written []string }

func (w *writer) folder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := w.folder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	w.written = append(w.written, dir)
	return nil
}

func (w *writer) file(path string, content []byte) error {
	if err := w.folder(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.written = append(w.written, path)
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// undo removes what was written, newest first.
func (w *writer) undo() error {
	var failed error
	for i := len(w.written) - 1; i >= 0; i-- {
		failed = errors.Join(failed, os.Remove(w.written[i]))
	}
	return failed
}

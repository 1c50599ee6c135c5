package docstest

import (
	"flag"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

var update = flag.Bool("update", false, "write the code of the repository into the pages")

// root is the root of the module.
const root = "../.."

// TestCodeIsInTheRepository verifies that each block of Go, and each block that names a source, has the text of its source,
// which is compiled and, if it is an example, run. With -update, it writes that text into the pages.
func TestCodeIsInTheRepository(t *testing.T) {
	testlevel.OneGoroutine(t)
	fsys := os.DirFS(root)
	pages, err := Pages(fsys)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, p := range pages {
		texts := make(map[int]string)
		for i, b := range p.Blocks {
			if test, ok := b.Comments["run by"]; ok && !testExists(t, fsys, test) {
				t.Errorf("%s: there is no test %s", b.At(), test)
			}
			text, found, err := b.Source(fsys)
			switch {
			case err != nil:
				t.Errorf("%s: %v", b.At(), err)
			case !found && b.Lang == "go":
				t.Errorf("%s: the code has no source: put it into a file that is compiled, such as an example, and name that file in a comment <!-- source: FILE#REGION --> before the block", b.At())
			case found:
				shown++
				if text != b.Text {
					texts[i] = text
				}
			}
		}
		if len(texts) == 0 {
			continue
		}
		if !*update {
			for i := range texts {
				t.Errorf("%s differs from %s: run go test ./internal/docstest -update\nthe source:\n%s", p.Blocks[i].At(), p.Blocks[i].Comments["source"], texts[i])
			}
		} else if err := os.WriteFile(path.Join(root, p.Name), []byte(p.Replace(texts)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if shown < 10 {
		t.Errorf("only %d blocks have a source", shown)
	}
}

// testExists reports whether the repository has a test or an example of that name.
func testExists(t *testing.T, fsys fs.FS, name string) (found bool) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || found || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(fsys, file)
		found = strings.Contains(string(src), "\nfunc "+name+"(")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestLinksLeadSomewhere verifies the links to files and headings in all Markdown files of the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	testlevel.OneGoroutine(t)
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Skipf("the files of the repository are not known without git: %v", err)
	}
	fsys := os.DirFS(root)
	found := deadLinks(t, fsys, strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 }))
	for _, f := range found {
		t.Error(f)
	}
}

func deadLinks(t *testing.T, fsys fs.FS, names []string) (found []string) {
	t.Helper()
	anchors := make(map[string][]string)
	pages := make(map[string]Page)
	for _, name := range names {
		if _, err := fs.Stat(fsys, name); err != nil || strings.Contains(name, "testdata/") {
			continue // deleted
		}
		p, err := Read(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		pages[name], anchors[name] = p, p.Anchors()
	}
	for name, p := range pages {
		for _, l := range p.Links() {
			target, anchor, _ := strings.Cut(l.Target, "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			file := name
			if target != "" {
				plain, err := url.PathUnescape(target)
				if err != nil {
					plain = target
				}
				file = path.Join(path.Dir(name), plain)
			}
			switch _, err := fs.Stat(fsys, file); {
			case err != nil:
				found = append(found, sprint(name, l, "there is no such file"))
			case anchor != "" && anchors[file] != nil && !slices.Contains(anchors[file], anchor):
				found = append(found, sprint(name, l, "the page has no such heading"))
			}
		}
	}
	slices.Sort(found)
	return found
}

func sprint(name string, l Link, what string) string {
	return (Block{Page: name, Line: l.Line}).At() + ": " + l.Target + ": " + what
}

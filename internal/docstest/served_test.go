package docstest

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"maps"
	"os"
	"path"
	"testing"

	"github.com/holdfast-go/holdfast/internal/docsite"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

const embedded = "../docsite/pages"

// TestThePagesAreEmbedded verifies that the pages that the program serves are those of the repository, and that it can render
// them. With -update, it writes them.
func TestThePagesAreEmbedded(t *testing.T) {
	testlevel.OneGoroutine(t)
	want := served(t)
	if _, err := docsite.New(want); err != nil {
		t.Fatal(err)
	}
	got, err := docsite.Files()
	if err != nil {
		t.Fatal(err)
	}
	if maps.EqualFunc(got, want, bytes.Equal) {
		return
	}
	if !*update {
		t.Fatal("internal/docsite/pages differs from the pages: run go test ./internal/docstest -update")
	}
	for name := range got {
		if want[name] == nil {
			if err := os.Remove(path.Join(embedded, name+".gz")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			pack(t, path.Join(embedded, name+".gz"), content)
		}
	}
}

// served returns the files that the program serves: the pages for users and contributors, and the schemas.
func served(t *testing.T) map[string][]byte {
	t.Helper()
	fsys := os.DirFS(root)
	pages, err := Pages(fsys)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]byte)
	for _, p := range pages {
		all[p.Name] = []byte(p.Text)
	}
	schemas, err := fs.Glob(fsys, "docs/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range schemas {
		if all[name], err = fs.ReadFile(fsys, name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func pack(t *testing.T, name string, content []byte) {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.MkdirAll(path.Dir(name), 0o755)
	}
	if err == nil {
		err = os.WriteFile(name, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

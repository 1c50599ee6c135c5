package web

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

var writeDist = flag.Bool("write-dist", false, "write the built dashboard into dist")

// build bundles the sources. It returns the files of dist by their paths.
func build(t *testing.T) map[string][]byte {
	t.Helper()
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{"src/main.tsx", "src/docs.ts"}, EntryNames: "assets/[name]-[hash]", AssetNames: "assets/[name]-[hash]", ChunkNames: "assets/[name]-[hash]", Splitting: true,
		AbsWorkingDir: folder, Outdir: "dist", Bundle: true, Format: api.FormatESModule, Target: api.ES2022, Charset: api.CharsetUTF8,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", Loader: map[string]api.Loader{".woff2": api.LoaderFile},
		Alias: map[string]string{
			"preact": "./vendor/preact/preact.mjs", "preact/hooks": "./vendor/preact/hooks.mjs", "preact/jsx-runtime": "./vendor/preact/jsxRuntime.mjs",
			"@preact/signals": "./vendor/signals/signals.mjs", "@preact/signals-core": "./vendor/signals-core/signals-core.mjs", "uplot": "./vendor/uplot/uPlot.esm.js",
		},
	})
	for _, m := range r.Errors {
		t.Errorf("%+v: %s", m.Location, m.Text)
	}
	for _, m := range r.Warnings {
		t.Errorf("%+v: %s", m.Location, m.Text)
	}
	if t.Failed() {
		t.FailNow()
	}
	all := make(map[string][]byte)
	var links []string // the names of files in the pages, and their paths
	for _, f := range r.OutputFiles {
		name, err := filepath.Rel(filepath.Join(folder, "dist"), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		all[name] = f.Contents
		short := filepath.Base(name)
		links = append(links, "{"+short[:strings.LastIndex(short, "-")]+filepath.Ext(name)+"}", "/"+name)
	}
	for _, name := range []string{"index.html", "page.html", "docs.html"} {
		page, err := os.ReadFile("src/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = []byte(strings.NewReplacer(links...).Replace(string(page)))
		if bytes.ContainsRune(all[name], '{') {
			t.Fatalf("a file of the page was not built:\n%s", all[name])
		}
	}
	if all["licenses.txt"], err = licenses(); err != nil {
		t.Fatal(err)
	}
	if all["icon.svg"], err = os.ReadFile("src/icon.svg"); err != nil {
		t.Fatal(err)
	}
	for name, content := range maps.Clone(all) {
		if filepath.Ext(name) != ".woff2" {
			all[name+".br"] = pack(content)
			all[name+".gz"] = zipped(content)
		}
	}
	return all
}

func pack(content []byte) []byte {
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, brotli.BestCompression)
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

// licenses returns the licences of all vendored libraries as one text, which is served beside them.
func licenses() ([]byte, error) {
	names, err := filepath.Glob("vendor/*/LICENSE")
	var b bytes.Buffer
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		b.WriteString(filepath.Base(filepath.Dir(name)) + "\n\n" + strings.TrimSpace(string(text)) + "\n\n\n")
	}
	return b.Bytes(), err
}

// TestDistIsBuilt verifies that dist is what the sources build to, byte by byte. What gzip writes depends on the version of
// Go, so its content is compared.
func TestDistIsBuilt(t *testing.T) {
	testlevel.OneGoroutine(t)
	want := build(t)
	if *writeDist {
		write(t, want)
	}
	got := make(map[string][]byte)
	err := fs.WalkDir(os.DirFS("dist"), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got[name], err = os.ReadFile(filepath.Join("dist", name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range []map[string][]byte{got, want} {
		for name, content := range all {
			if filepath.Ext(name) == ".gz" {
				all[name] = unzipped(content)
			}
		}
	}
	if !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("dist has %v, and the sources build %v with other content: run go generate ./web", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func write(t *testing.T, all map[string][]byte) {
	t.Helper()
	if err := os.RemoveAll("dist"); err != nil {
		t.Fatal(err)
	}
	for name, content := range all {
		name = filepath.Join("dist", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSize verifies that the dashboard stays small: a page on a slow line is usable at once.
func TestSize(t *testing.T) {
	testlevel.OneGoroutine(t)
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	code, gzipped, total := 0, 0, 0
	for name, f := range all {
		switch filepath.Ext(name) {
		case ".js", ".css", ".html":
			code += len(f.brotli)
			gzipped += len(f.gzip())
			total += len(f.brotli)
		case ".woff2":
			total += len(f.content())
		}
	}
	t.Logf("code: %d bytes compressed (gzip: %d), with fonts %d", code, gzipped, total)
	if code > 120<<10 || total > 180<<10 {
		t.Errorf("code has %d bytes compressed, at most %d are allowed; with fonts %d of %d", code, 120<<10, total, 180<<10)
	}
}

// Package web is the dashboard that a server shows in a browser. Its sources are in src, its libraries in vendor, and what
// it serves in dist. After a change of the sources, "go generate ./web" builds dist again; it needs only Go.
//
//	api := httpapi.New(httpapi.Options{Dashboard: web.Handler()})
//
// The dashboard has no access of its own: everything that it shows and does is a request to the HTTP API. Below /docs, the
// handler serves the documentation, which needs no access.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/docsite"
)

//go:generate go test ../httpapi -count=1 -run ^TestDashboardTypesAreGenerated$ -write-types
//go:generate go test . -count=1 -run ^TestDistIsBuilt$ -write-dist

// The files that are not compressed are not embedded: few clients want them, and they would be half of what is.
//
//go:embed dist/*.br dist/*.gz dist/assets/*.br dist/assets/*.gz dist/assets/*.woff2
var dist embed.FS

// policy allows the page nothing but its own files and the API of its own origin: no inline code, no frames, no other
// origin. Trusted types make the browser refuse text that would become code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// file is a file of the dashboard or of the documentation, as it is sent.
type file struct {
	content    func() []byte
	brotli     []byte        // nil if there is none
	gzip       func() []byte // for browsers that do not accept brotli: they do so only over HTTPS and on localhost. nil for a font
	kind, etag string
	policy     string
	forever    bool // its name changes with its content
}

var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}

// files are the files of dist by their paths.
var files = sync.OnceValues(func() (map[string]*file, error) {
	all := make(map[string]*file)
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) == ".br" {
			return err
		}
		content, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		name, packed := strings.CutSuffix(name, ".gz")
		f := &file{content: func() []byte { return content }, kind: kinds[path.Ext(name)], etag: etag(content), policy: policy, forever: strings.HasPrefix(name, "dist/assets/")}
		if packed {
			f.gzip, f.content = f.content, sync.OnceValue(func() []byte { return unzipped(content) })
			if f.brotli, err = dist.ReadFile(name + ".br"); err != nil {
				return err
			}
		}
		all[strings.TrimPrefix(name, "dist")] = f
		return nil
	})
	return all, err
})

func etag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

func zipped(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails only for an unknown level
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

func unzipped(content []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil { // the files are part of the program
		return nil
	}
	content, _ = io.ReadAll(z)
	return content
}

// Handler serves the dashboard. Every path that is not one of its files is a page, which the browser draws; so a link to
// anything in the dashboard can be opened.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	all, err := files()
	if err != nil { // the files are part of the program
		http.Error(w, "the dashboard cannot be read", http.StatusInternalServerError)
		return
	}
	if r.URL.Path == "/docs" || strings.HasPrefix(r.URL.Path, docsite.Root) {
		serveDocs(w, r, all)
		return
	}
	f, ok := all[r.URL.Path]
	if strings.HasPrefix(r.URL.Path, "/assets/") && !ok {
		http.NotFound(w, r)
		return
	}
	switch {
	case ok:
	case r.URL.Path == "/" && !r.URL.Query().Has("kind"):
		f = all["/index.html"] // asks for what the inbox shows
	default:
		f = all["/page.html"] // asks for the code of the other pages
	}
	f.send(w, r, http.StatusOK)
}

func (f *file) send(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", f.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.etag)
	h.Set("Cache-Control", "no-cache")
	if f.forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if status == http.StatusOK && r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	var content []byte
	switch accepts := r.Header.Get("Accept-Encoding"); {
	case f.brotli != nil && strings.Contains(accepts, "br"):
		h.Set("Content-Encoding", "br")
		content = f.brotli
	case f.gzip != nil && strings.Contains(accepts, "gzip"):
		h.Set("Content-Encoding", "gzip")
		content = f.gzip()
	default:
		content = f.content()
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}

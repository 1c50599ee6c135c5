package tlsfiles_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/tlsfiles"
)

// serve serves HTTPS with files, and returns its URL.
func serve(t *testing.T, f tlsfiles.Files, log io.Writer) string {
	t.Helper()
	config, err := tlsfiles.Server(f, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })}
	done := make(chan error)
	go func() { done <- srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return "https://" + ln.Addr().String()
}

// ask makes a request on a new connection, and returns the name in the server's certificate.
func ask(t *testing.T, url string, config *tls.Config) (string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "HTTP/2.0" {
		t.Errorf("got %q, error %v, want HTTP/2", body, err)
	}
	return resp.TLS.PeerCertificates[0].Subject.CommonName, nil
}

func client(t *testing.T, f tlsfiles.Files) *tls.Config {
	t.Helper()
	c, err := tlsfiles.Client(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestACertificateIsReplaced verifies that a server uses a new certificate for new connections, and its last one while the files
// do not belong together.
func TestACertificateIsReplaced(t *testing.T) {
	ca, dir, other := testkit.NewAuthority(t), t.TempDir(), t.TempDir()
	cert, key := ca.Issue(dir, "first")
	var log bytes.Buffer
	url := serve(t, tlsfiles.Files{Cert: cert, Key: key}, &log)
	config := client(t, tlsfiles.Files{CA: ca.Write(dir)})
	want := func(name string) {
		t.Helper()
		if got, err := ask(t, url, config); got != name || err != nil {
			t.Errorf("got the certificate %q, error %v, want %q", got, err, name)
		}
	}
	want("first")
	newCert, newKey := ca.Issue(other, "second")
	rename(t, newCert, cert)
	want("first") // the key is that of the first
	want("first")
	rename(t, newKey, key)
	want("second")
	if text := log.String(); strings.Count(text, "certificate loaded") != 2 || strings.Count(text, "last one is still used") != 1 {
		t.Errorf("logged:\n%s", text)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestClientsNeedACertificate verifies that a server with a CA for clients refuses clients without a certificate, with one of
// another CA, and, once the CA has been replaced, with one of the last, also if their session could be resumed.
func TestClientsNeedACertificate(t *testing.T) {
	ca, clients, others, dir := testkit.NewAuthority(t), testkit.NewAuthority(t), testkit.NewAuthority(t), t.TempDir()
	cert, key := ca.Issue(dir, "server")
	in := t.TempDir()
	url := serve(t, tlsfiles.Files{Cert: cert, Key: key, CA: clients.Write(in)}, io.Discard)
	roots := ca.Write(dir)
	of := func(a *testkit.Authority) *tls.Config {
		f := tlsfiles.Files{CA: roots}
		f.Cert, f.Key = a.Issue(t.TempDir(), "client")
		c := client(t, f)
		c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return c
	}
	known, stranger, none := of(clients), of(others), client(t, tlsfiles.Files{CA: roots})
	refused := func(c *tls.Config) {
		t.Helper()
		if _, err := ask(t, url, c); err == nil {
			t.Error("the client was accepted")
		}
	}
	for range 2 { // the second time with a session
		if _, err := ask(t, url, known); err != nil {
			t.Error(err)
		}
	}
	refused(stranger)
	refused(none)
	others.Write(in)
	refused(known)
	if _, err := ask(t, url, stranger); err != nil {
		t.Error(err)
	}
}

// TestBadFiles verifies that files that cannot be used are refused before a server listens.
func TestBadFiles(t *testing.T) {
	a, dir := testkit.NewAuthority(t), t.TempDir()
	cert, key := a.Issue(dir, "x")
	_, otherKey := a.Issue(t.TempDir(), "x")
	for _, x := range []struct {
		files tlsfiles.Files
		want  string
	}{
		{tlsfiles.Files{Cert: cert}, "--tls-key"},
		{tlsfiles.Files{Key: key}, "--tls-cert"},
		{tlsfiles.Files{CA: a.Write(dir)}, "--tls-cert"},
		{tlsfiles.Files{Cert: cert, Key: otherKey}, "belong together"},
		{tlsfiles.Files{Cert: cert, Key: key + ".x"}, "key.pem.x"},
		{tlsfiles.Files{Cert: cert, Key: key, CA: "x.pem"}, "cannot be read"},
		{tlsfiles.Files{Cert: cert, Key: key, CA: key}, "has no certificate"},
	} {
		_, err := tlsfiles.Server(x.files, slog.New(slog.DiscardHandler))
		testkit.WantCode(t, err, fault.Validation, x.want)
	}
	if c, err := tlsfiles.Client(tlsfiles.Files{}); c != nil || err != nil {
		t.Errorf("without files, the client gets %v, error %v", c, err)
	}
}

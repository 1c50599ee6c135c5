package cli

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/wire"
)

// TestServeTLS verifies that commands and event streams work over HTTPS with certificates of both sides, and that a command
// without its certificate, or without the CA of the server, fails and says why.
func TestServeTLS(t *testing.T) {
	t.Chdir(t.TempDir())
	ca, clients, own := testkit.NewAuthority(t), testkit.NewAuthority(t), t.TempDir()
	do := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := newProgram(nil, &out, &errs).run(t.Context(), args)
		return code, out.String() + errs.String()
	}
	_, key := do("keys", "create", "--role", "admin", "-o", "json")
	var created wire.CreatedKey
	if err := json.Unmarshal([]byte(key), &created); err != nil {
		t.Fatal(err, key)
	}
	serverCert, serverKey := ca.Issue(".", "server")
	line, _ := running(t, "serve", "--listen", "127.0.0.1:0", "--tls-cert", serverCert, "--tls-key", serverKey, "--tls-client-ca", clients.Write(own))
	url, ok := strings.CutPrefix(line, "holdfast ready url=")
	if !ok || !strings.HasPrefix(url, "https://") {
		t.Fatalf("got %q", line)
	}
	cert, certKey := clients.Issue(own, "client")
	to := []string{"--url", url, "--key", created.Secret}
	trust := append(slices.Clip(to), "--ca", ca.Write("."))
	all := append(slices.Clip(trust), "--cert", cert, "--cert-key", certKey)
	if code, text := do(append([]string{"scope", "put", "cart", "c", `{"a":1}`}, all...)...); code != 0 {
		t.Fatal(text)
	}
	lines, stop := watching(t, append([]string{"scope", "watch", "cart", "c"}, all...)...)
	if line := strings.TrimSpace(<-lines); line != `0  {"a":1}` {
		t.Errorf("got line %q", line)
	}
	if code, text := do(append([]string{"scope", "inc", "cart", "c", "a"}, all...)...); code != 0 {
		t.Error(text)
	}
	if line := strings.TrimSpace(<-lines); line != `1  {"a":2}` {
		t.Errorf("got line %q", line)
	}
	stop()
	for _, x := range []struct {
		flags []string
		want  string // a regular expression
	}{
		{trust, "certificate required|closed the connection"}, // the server's alert may come after the connection is closed
		{append(slices.Clip(to), "--cert", cert, "--cert-key", certKey), "unknown authority"},
		{append(slices.Clip(trust), "--cert", cert), "belong together"},
	} {
		code, text := do(append([]string{"scope", "get", "cart", "c"}, x.flags...)...)
		if code == 0 || !regexp.MustCompile(x.want).MatchString(text) {
			t.Errorf("with %q: exit code %d, want a failure with %q: %s", x.flags, code, x.want, text)
		}
	}
	if code, text := do("serve", "--tls-cert", serverCert); code == 0 || !strings.Contains(text, "--tls-key") {
		t.Errorf("a certificate without a key: exit code %d: %s", code, text)
	}
}

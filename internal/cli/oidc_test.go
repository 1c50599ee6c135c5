package cli

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testkit"
)

// TestServeTokens verifies, with programs of their own, that a server with mutual TLS and with the settings of an issuer in its file
// accepts tokens, gives each the rights of its grants, and still accepts API keys.
func TestServeTokens(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	i, ca, clients, own := testkit.NewIssuer(t), testkit.NewAuthority(t), testkit.NewAuthority(t), t.TempDir()
	if err := os.WriteFile("holdfast.yaml", []byte(strings.ReplaceAll(`
oidc-issuer: ISSUER
oidc-audience: holdfast
oidc-jwks: keys.json
oidc-grant:
  shop:
    claim: /realm_access/roles
    value: shop
    workspace: shop
    role: operate
    requesters: [alice, bob]
  tenants:
    claim: sub
    value: "*"
    workspace-claim: tenant
    role: read
`, "ISSUER", i.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	writeKeys := func() {
		t.Helper()
		if err := os.WriteFile("keys.json", i.JWKS(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeKeys()
	do := func(args ...string) (string, error) {
		c := exec.Command("holdfast", args...)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		err := c.Run()
		return out.String(), err
	}
	cert, key := ca.Issue(dir, "server")
	server := testkit.Start(t, exec.Command("holdfast", "serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", clients.Write(own), "--log-level", "error"))
	url := strings.TrimPrefix(server.Next(), "holdfast ready url=")
	clientCert, clientKey := clients.Issue(own, "client")
	trust := []string{"--url", url, "--ca", ca.Write(filepath.Dir(cert))}
	all := append(slices.Clip(trust), "--cert", clientCert, "--cert-key", clientKey)
	apiKey, err := do("keys", "create", "--role", "read", "--workspace", "shop")
	if err != nil {
		t.Fatal(apiKey)
	}
	apiKey = strings.TrimSpace(strings.Split(apiKey, "\n")[0])
	staff := i.Token("ann", map[string]any{"realm_access": map[string]any{"roles": []string{"shop"}}})
	tenant := i.Token("bob", map[string]any{"tenant": []string{"shop", "other"}})
	put, get := []string{"scope", "put", "cart", "c", `{"a":1}`}, []string{"scope", "get", "cart", "c"}
	for _, x := range []struct {
		what string
		args [][]string
		want string // in the error
	}{
		{"a token that may write", [][]string{put, all, {"--key", staff}}, ""},
		{"a token of a tenant", [][]string{get, all, {"--key", tenant, "--workspace", "shop"}}, ""},
		{"an API key", [][]string{get, all, {"--key", apiKey}}, ""},
		{"a token of a tenant without a workspace", [][]string{get, all, {"--key", tenant}}, "select one with the header"},
		{"a token that may not write", [][]string{put, all, {"--key", tenant, "--workspace", "shop"}}, "FORBIDDEN"},
		{"another workspace", [][]string{get, all, {"--key", staff, "--workspace", "other"}}, "FORBIDDEN"},
		{"an empty workspace", [][]string{get, all, {"--key", tenant, "--workspace", "other"}}, "NOT_FOUND"},
		{"no rights", [][]string{get, all, {"--key", i.Token("eve", nil)}}, "no rights on this server"},
		{"an expired token", [][]string{get, all, {"--key", i.Token("ann", map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})}}, "has expired"},
		{"an invalid token", [][]string{get, all, {"--key", staff + "x"}}, "AUTH_ERROR"},
		{"no certificate", [][]string{get, trust, {"--key", staff}}, "certificate required|closed the connection"},
	} {
		out, err := do(slices.Concat(x.args...)...)
		if (err == nil) != (x.want == "") || !containsAny(out, x.want) {
			t.Errorf("%s: got error %v, want %q:\n%s", x.what, err, x.want, out)
		}
	}
	i.Publish(i.NewKey("second", "EdDSA"))
	writeKeys()
	if out, err := do(slices.Concat(get, all, []string{"--key", staff})...); err == nil {
		t.Errorf("a token whose key was withdrawn is accepted: %s", out)
	}
	if out, err := do(slices.Concat(get, all, []string{"--key", i.Token("ann", map[string]any{"realm_access": map[string]any{"roles": "shop"}})})...); err != nil {
		t.Error(out)
	}
	if i.Fetches() > 0 {
		t.Error("the server has fetched keys although they are in a file")
	}
}

// containsAny reports whether a text contains one of several texts, which bars separate.
func containsAny(text, any string) bool {
	return slices.ContainsFunc(strings.Split(any, "|"), func(one string) bool { return strings.Contains(text, one) })
}

// TestBadIssuerSettings verifies that settings of an issuer that cannot work are refused before the server listens.
func TestBadIssuerSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	base := []string{"serve", "--listen", "127.0.0.1:0", "--oidc-issuer", "https://login.example.com", "--oidc-audience", "a"}
	const good = "g:claim=c,value=v,workspace=w,role=read"
	for want, args := range map[string][]string{
		"at least one --oidc-grant":    base,
		"--oidc-issuer":                {"serve", "--oidc-grant", good},
		"--oidc-audience":              {"serve", "--oidc-issuer", "https://login.example.com", "--oidc-grant", good},
		"has no name":                  append(slices.Clip(base), "--oidc-grant", ":claim=c"),
		"duplicate grant":              append(slices.Clip(base), "--oidc-grant", good+";"+good),
		"is not an option for grant":   append(slices.Clip(base), "--oidc-grant", good+",admin=yes"),
		"needs a claim":                append(slices.Clip(base), "--oidc-grant", "g:workspace=w,role=read"),
		"needs a role":                 append(slices.Clip(base), "--oidc-grant", "g:claim=c,value=v,workspace=w,role=boss"),
		"either a workspace or":        append(slices.Clip(base), "--oidc-grant", good+",workspace-claim=t"),
		"must begin with https://":     append(slices.Clip(base), "--oidc-grant", good, "--oidc-issuer", "http://login.example.com"),
		"write its JWKS into the file": append(slices.Clip(base), "--oidc-grant", good, "--oidc-jwks", "missing.json"),
	} {
		var out bytes.Buffer
		if code := newProgram(nil, &out, &out).run(t.Context(), args); code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%q: exit code %d, want 2 with %q: %s", args, code, want, out.String())
		}
	}
}

// TestServeNetworks verifies the flags for the networks of clients, with programs of their own.
func TestServeNetworks(t *testing.T) {
	t.Chdir(t.TempDir())
	key, err := exec.Command("holdfast", "keys", "create", "--role", "read", "--from", "192.0.2.7").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		flags     []string
		forwarded string
		status    int
	}{
		{nil, "192.0.2.7", 403},
		{[]string{"--trusted-proxy", "127.0.0.1"}, "192.0.2.7", 200},
		{[]string{"--trusted-proxy", "127.0.0.1"}, "192.0.2.7, 192.0.2.8", 403},
		{[]string{"--trusted-proxy", "127.0.0.1,192.0.2.8", "--allow-from", "192.0.2.0/24"}, "192.0.2.7, 192.0.2.8", 200},
		{[]string{"--trusted-proxy", "127.0.0.1", "--allow-from", "198.51.100.0/24"}, "192.0.2.7", 403},
	} {
		server := testkit.Start(t, exec.Command("holdfast", append([]string{"serve", "--listen", "127.0.0.1:0", "--log-level", "error"}, x.flags...)...))
		url := strings.TrimPrefix(server.Next(), "holdfast ready url=")
		for path, want := range map[string]int{"/api/v1/session": x.status, "/readyz": 200} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
			r.Header.Set("X-Forwarded-For", x.forwarded)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s with %q for %s: got status %d, want %d", path, x.flags, x.forwarded, resp.StatusCode, want)
			}
		}
		server.Kill()
	}
	http.DefaultClient.CloseIdleConnections()
	for _, flag := range []string{"--allow-from", "--trusted-proxy"} {
		var out bytes.Buffer
		if code := newProgram(nil, &out, &out).run(t.Context(), []string{"serve", flag, "10.0.0.1/8"}); code != 2 || !strings.Contains(out.String(), flag+": ") || !strings.Contains(out.String(), "write 10.0.0.0/8") {
			t.Errorf("exit code %d: %s", code, out.String())
		}
	}
	for what, args := range map[string][]string{"": {"--allow-from", ""}, "no networks": {"--allow-from", " , "}, "allow-from: []": nil, "allow-from: ''": nil} {
		if args == nil {
			if err := os.WriteFile("holdfast.yaml", []byte(what), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if code := newProgram(nil, &out, &out).run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)); code != 2 || !strings.Contains(out.String(), "--allow-from is empty") {
			t.Errorf("%s: exit code %d: %s", what, code, out.String())
		}
	}
	if err := os.WriteFile("holdfast.yaml", []byte("oidc-grant: {staff: {claim: groups, value: staff, requesters: [alice bob]}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := newProgram(nil, &out, &out).run(t.Context(), []string{"serve"}); code != 2 || !strings.Contains(out.String(), "in a list also without spaces") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

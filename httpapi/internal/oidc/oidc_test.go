package oidc_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/oidc"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testkit"
)

// newVerifier returns a verifier of an issuer, whose keys are at jwks.
func newVerifier(t *testing.T, issuer, jwks string, log io.Writer) *oidc.Verifier {
	t.Helper()
	v, err := oidc.New(oidc.Config{Issuer: issuer, Audience: testkit.Audience, JWKS: jwks, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// check verifies a token now.
func check(ctx context.Context, v *oidc.Verifier, token string) (*oidc.Token, error) {
	got, err := v.Verify(ctx, token)
	if err == nil {
		err = got.Check(time.Now())
	}
	return got, err
}

// refused checks that a token is refused for a reason.
func refused(t *testing.T, v *oidc.Verifier, what, token, reason string) {
	t.Helper()
	_, err := check(t.Context(), v, token)
	if r, ok := oidc.IsRefusal(err); !ok || r.Reason != reason {
		t.Errorf("%s: got error %v, want a refusal with the reason %s", what, err, reason)
	}
}

func accepted(t *testing.T, v *oidc.Verifier, what, token string) {
	t.Helper()
	if got, err := check(t.Context(), v, token); err != nil || got.Subject != "ann" {
		t.Errorf("%s: got %+v, error %v, want the token of ann", what, got, err)
	}
}

var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// TestAlgorithms verifies that a token of each algorithm is accepted, and refused once a byte of any part has changed, or its header names
// another algorithm.
func TestAlgorithms(t *testing.T) {
	i := testkit.NewIssuer(t)
	var all []testkit.SigningKey
	rsaKey := i.NewKey("", "RS256").Private
	for _, alg := range signatures {
		k := testkit.SigningKey{ID: "key of " + alg, Alg: alg, Private: rsaKey}
		if alg[0] == 'E' {
			k = i.NewKey(k.ID, alg)
		}
		all = append(all, k)
	}
	i.Publish(all...)
	v := newVerifier(t, i.URL, "", io.Discard)
	for _, k := range all {
		claims := i.Claims("ann", nil)
		token := i.Signed(k, nil, claims)
		accepted(t, v, k.Alg, token)
		accepted(t, v, k.Alg+", an access token", i.Signed(k, map[string]any{"typ": "at+JWT"}, claims))
		parts := strings.Split(token, ".")
		other := i.Signed(k, nil, i.Claims("bob", nil))
		refused(t, v, k.Alg+" with another payload", parts[0]+"."+strings.Split(other, ".")[1]+"."+parts[2], oidc.Signature)
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		signature[len(signature)/2] ^= 1
		refused(t, v, k.Alg+" with another signature", parts[0]+"."+parts[1]+"."+base64.RawURLEncoding.EncodeToString(signature), oidc.Signature)
		refused(t, v, k.Alg+" with a longer signature", token+"AA", oidc.Signature)
		refused(t, v, k.Alg+" without a signature", parts[0]+"."+parts[1]+".", oidc.Signature)
		for _, alg := range append(slices.Clone(signatures), "none", "None", "HS256", "HS384", "HS512", "", "RSA1_5") {
			if alg != k.Alg {
				refused(t, v, k.Alg+" that says "+alg, i.Signed(k, map[string]any{"alg": alg}, claims), oidc.Algorithm)
			}
		}
	}
}

// TestAlgorithmConfusion verifies that a public key is no secret for HMAC, in any of its encodings, and that a token cannot bring its
// own key.
func TestAlgorithmConfusion(t *testing.T) {
	i := testkit.NewIssuer(t)
	k := i.NewKey("k", "RS256")
	i.Publish(k)
	v := newVerifier(t, i.URL, "", io.Discard)
	der, err := x509.MarshalPKIXPublicKey(k.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	pkcs1 := x509.MarshalPKCS1PublicKey(k.Private.Public().(*rsa.PublicKey))
	jwk, _ := json.Marshal(k.JWK())
	for name, secret := range map[string][]byte{"DER": der, "PKCS #1": pkcs1, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "JWK": jwk, "n": []byte(k.JWK()["n"]), "nothing": nil} {
		for _, alg := range []string{"HS256", "RS256"} {
			signed := strings.Join(strings.Split(i.Signed(k, map[string]any{"alg": alg}, i.Claims("ann", nil)), ".")[:2], ".")
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte(signed))
			reason := oidc.Algorithm
			if alg == "RS256" {
				reason = oidc.Signature
			}
			refused(t, v, alg+" with the public key as "+name, signed+"."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), reason)
		}
	}
	own := i.NewKey("k", "RS256")
	refused(t, v, "a token with its own key", i.Signed(own, map[string]any{"jwk": own.JWK(), "jku": i.URL + "/mine", "x5u": i.URL + "/mine"}, i.Claims("ann", nil)), oidc.Signature)
}

// TestClaims verifies what a token with a valid signature must say.
func TestClaims(t *testing.T) {
	i := testkit.NewIssuer(t)
	v := newVerifier(t, i.URL, "", io.Discard)
	k := i.NewKey("k", "ES256")
	i.Publish(k)
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for what, claims := range map[string]map[string]any{
		"an audience among others":    {"aud": []string{"x", testkit.Audience}},
		"a little early":              {"nbf": at(oidc.Leeway - 5*time.Second), "iat": at(oidc.Leeway - 5*time.Second)},
		"an expiry with a fraction":   {"exp": float64(at(time.Hour)) + .5},
		"no iat":                      {"iat": nil},
		"names that differ in case":   {"Sub": "bob", "SUB": "cleo", "nested": map[string]any{"a": 1, "A": 2}},
		"an expiry in the far future": {"exp": 253402300799},
	} {
		accepted(t, v, what, i.Token("ann", claims))
	}
	for what, x := range map[string]struct {
		claims map[string]any
		reason string
	}{
		"expired":               {map[string]any{"exp": at(-time.Second)}, oidc.Expired},
		"expires now":           {map[string]any{"exp": now.Unix()}, oidc.Expired},
		"expired in 1970":       {map[string]any{"exp": 0}, oidc.Expired},
		"no expiry":             {map[string]any{"exp": nil}, oidc.Malformed},
		"an expiry as a string": {map[string]any{"exp": fmt.Sprint(at(time.Hour))}, oidc.Malformed},
		"a huge expiry":         {map[string]any{"exp": 1e300}, oidc.Malformed},
		"a negative expiry":     {map[string]any{"exp": -1}, oidc.Malformed},
		"not yet valid":         {map[string]any{"nbf": at(oidc.Leeway + 5*time.Second)}, oidc.Early},
		"issued in the future":  {map[string]any{"iat": at(time.Hour)}, oidc.Early},
		"nbf as a string":       {map[string]any{"nbf": "0"}, oidc.Malformed},
		"another audience":      {map[string]any{"aud": "other"}, oidc.Audience},
		"other audiences":       {map[string]any{"aud": []string{"other", "holdfast2"}}, oidc.Audience},
		"no audience":           {map[string]any{"aud": nil}, oidc.Audience},
		"an audience as object": {map[string]any{"aud": map[string]any{testkit.Audience: true}}, oidc.Audience},
		"another issuer":        {map[string]any{"iss": "https://other.example"}, oidc.Issuer},
		"a similar issuer":      {map[string]any{"iss": i.URL + "/"}, oidc.Issuer},
		"no issuer":             {map[string]any{"iss": nil}, oidc.Issuer},
		"no subject":            {map[string]any{"sub": nil}, oidc.Malformed},
		"an empty subject":      {map[string]any{"sub": ""}, oidc.Malformed},
		"a number as subject":   {map[string]any{"sub": 7}, oidc.Malformed},
		"a subject with NUL":    {map[string]any{"sub": "a\x00"}, oidc.Malformed},
		"a space before":        {map[string]any{"sub": " ann"}, oidc.Malformed},
		"a space behind":        {map[string]any{"sub": "ann\u00a0"}, oidc.Malformed},
		"a new line":            {map[string]any{"sub": "an\nn"}, oidc.Malformed},
		"a zero-width space":    {map[string]any{"sub": "an\u200bn"}, oidc.Malformed},
		"another direction":     {map[string]any{"sub": "\u202eann"}, oidc.Malformed},
		"a line separator":      {map[string]any{"sub": "an\u2028n"}, oidc.Malformed},
		"a replaced character":  {map[string]any{"sub": "ann\ufffd"}, oidc.Malformed},
		"a long subject":        {map[string]any{"sub": strings.Repeat("a", 251)}, oidc.Malformed},
		"bound to a key":        {map[string]any{"cnf": map[string]any{"jkt": "x"}}, oidc.Malformed},
		"too long":              {map[string]any{"padding": strings.Repeat("x", oidc.MaxToken)}, oidc.Malformed},
	} {
		refused(t, v, what, i.Token("ann", x.claims), x.reason)
	}
	claims := i.Claims("ann", nil)
	for what, x := range map[string]struct {
		header  map[string]any
		payload []byte
		reason  string
	}{
		"a critical parameter":     {map[string]any{"crit": []string{"exp"}}, claims, oidc.Malformed},
		"no critical parameters":   {map[string]any{"crit": []string{}}, claims, oidc.Malformed},
		"a logout token":           {map[string]any{"typ": "logout+jwt"}, claims, oidc.Malformed},
		"an algorithm as a number": {map[string]any{"alg": 5}, claims, oidc.Malformed},
		"an unknown key":           {map[string]any{"kid": "other"}, claims, oidc.UnknownKey},
		"a duplicate subject":      {nil, bytes.Replace(claims, []byte("{"), []byte(`{"sub":"bob",`), 1), oidc.Malformed},
		"a duplicate in an object": {nil, bytes.Replace(claims, []byte("{"), []byte(`{"a":{"b":1,"b":2},`), 1), oidc.Malformed},
		"an escaped duplicate":     {nil, bytes.Replace(claims, []byte("{"), []byte(`{"s\u0075b":"bob",`), 1), oidc.Malformed},
		"a duplicate in an array":  {nil, bytes.Replace(claims, []byte("{"), []byte(`{"a":[{"b":1,"b":2}],`), 1), oidc.Malformed},
		"not UTF-8":                {nil, bytes.Replace(claims, []byte("{"), []byte("{\"a\":\"\xff\","), 1), oidc.Malformed},
		"an array":                 {nil, []byte(`[]`), oidc.Malformed},
		"two documents":            {nil, append(bytes.Clone(claims), claims...), oidc.Malformed},
		"no JSON":                  {nil, []byte("sub=ann"), oidc.Malformed},
	} {
		refused(t, v, what, i.Signed(k, x.header, x.payload), x.reason)
	}
	good := i.Token("ann", nil)
	parts := strings.Split(good, ".")
	for _, text := range []string{".", "..", "...", good + ".", "." + good, good + "=", good + "\n", strings.Join(parts[:2], "."), parts[0] + "=." + parts[1] + "." + parts[2]} {
		refused(t, v, fmt.Sprintf("%.10q…", text), text, oidc.Malformed)
	}
}

// TestKeyIDs verifies that a token that names no key is accepted only if the issuer has one.
func TestKeyIDs(t *testing.T) {
	i := testkit.NewIssuer(t)
	one, two := i.NewKey("one", "RS256"), i.NewKey("two", "ES256")
	i.Publish(one)
	nameless := i.Signed(one, map[string]any{"kid": nil}, i.Claims("ann", nil))
	accepted(t, newVerifier(t, i.URL, "", io.Discard), "the only key", nameless)
	i.Publish(one, two)
	refused(t, newVerifier(t, i.URL, "", io.Discard), "one of two keys", nameless, oidc.UnknownKey)
	same, other := i.NewKey("same", "ES256"), i.NewKey("same", "ES256")
	i.Publish(same, other)
	v := newVerifier(t, i.URL, "", io.Discard)
	for _, k := range []testkit.SigningKey{same, other} {
		accepted(t, v, "one of two keys with one id", i.Signed(k, nil, i.Claims("ann", nil)))
	}
	refused(t, v, "a third key with the id", i.Signed(i.NewKey("same", "ES256"), nil, i.Claims("ann", nil)), oidc.Signature)
}

// TestUnusableKeys verifies that keys for encryption, weak keys and invalid ones do not count, and do not hide others.
func TestUnusableKeys(t *testing.T) {
	i := testkit.NewIssuer(t)
	good, ec := i.NewKey("good", "RS256"), i.NewKey("ec", "ES256")
	plain := good.JWK()
	delete(plain, "alg")
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	small := testkit.SigningKey{ID: "weak", Alg: "RS256", Private: weak}
	with := func(k testkit.SigningKey, id, name, value string) map[string]string {
		j := k.JWK()
		j["kid"], j[name] = id, value
		return j
	}
	jwks := []any{plain, small.JWK(), with(good, "enc", "use", "enc"), with(good, "oaep", "alg", "RSA-OAEP"), with(good, "hs", "alg", "HS256"), with(ec, "off", "y", ec.JWK()["x"]),
		with(ec, "curve", "crv", "P-224"), with(ec, "ecrs", "alg", "RS256"), with(good, "even", "e", "Ag"), with(good, "wide", "e", "AQAAAAE"), with(good, "private", "d", "AQ"), with(good, "secret", "k", "AQ"), 7,
		map[string]any{"kty": "oct", "kid": "oct", "k": "c2VjcmV0"}, map[string]any{"kty": "RSA", "kid": "ops", "key_ops": []string{"encrypt"}, "n": plain["n"], "e": plain["e"]}}
	text, _ := json.Marshal(map[string]any{"keys": jwks})
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, i.URL, path, io.Discard)
	claims := i.Claims("ann", nil)
	accepted(t, v, "the good key", i.Signed(good, nil, claims))
	refused(t, v, "RS512 with a key that says no algorithm", i.Signed(testkit.SigningKey{ID: "good", Alg: "RS512", Private: good.Private}, nil, claims), oidc.Algorithm)
	for _, id := range []string{"weak", "enc", "oaep", "hs", "even", "wide", "ops", "ecrs", "oct", "private", "secret"} {
		k := good
		if id == "weak" {
			k = small
		}
		refused(t, v, "the key "+id, i.Signed(k, map[string]any{"kid": id}, claims), oidc.UnknownKey)
	}
	for _, id := range []string{"off", "curve", "ecrs"} {
		refused(t, v, "the key "+id, i.Signed(ec, map[string]any{"kid": id}, claims), oidc.UnknownKey)
	}
}

// manual is a clock of a test.
type manual struct {
	mu sync.Mutex
	at time.Time
}

func (m *manual) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

func (m *manual) move(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = m.at.Add(d)
}

// newRemote returns a verifier with keys at a URL and with a clock.
func newRemote(t *testing.T, i *testkit.Issuer, log io.Writer) (*oidc.Verifier, *manual) {
	t.Helper()
	v, clock := newVerifier(t, i.URL, "", log), &manual{at: time.Now()}
	v.At(clock.now)
	return v, clock
}

// TestRotation verifies that a new key is used at once, that unknown keys cause one fetch per five seconds, which concurrent requests
// share, and that a withdrawn key is refused after the next one.
func TestRotation(t *testing.T) {
	i := testkit.NewIssuer(t)
	old, next := i.NewKey("old", "ES256"), i.NewKey("next", "EdDSA")
	i.Publish(old)
	v, clock := newRemote(t, i, io.Discard)
	claims := i.Claims("ann", nil)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { accepted(t, v, "the old key", i.Signed(old, nil, claims)) })
	}
	group.Wait()
	if n := i.Fetches(); n != 1 {
		t.Errorf("8 requests fetched the keys %d times", n)
	}
	i.Publish(next, old)
	refused(t, v, "the new key, too soon after the last fetch", i.Signed(next, nil, claims), oidc.UnknownKey)
	clock.move(oidc.LoadEvery)
	for range 8 {
		group.Go(func() { accepted(t, v, "the new key", i.Signed(next, nil, claims)) })
	}
	group.Wait()
	for n := range 20 {
		refused(t, v, "an invented key", i.Signed(old, map[string]any{"kid": fmt.Sprint(n)}, claims), oidc.UnknownKey)
	}
	if n := i.Fetches(); n != 2 {
		t.Errorf("fetched the keys %d times, want 2", n)
	}
	i.Publish(next)
	clock.move(oidc.RefreshEvery)
	refused(t, v, "the withdrawn key", i.Signed(old, nil, claims), oidc.UnknownKey)
	accepted(t, v, "the other key", i.Signed(next, nil, claims))
	i.Publish()
	clock.move(oidc.RefreshEvery)
	refused(t, v, "after all keys were withdrawn", i.Signed(next, nil, claims), oidc.UnknownKey)
}

// TestPauses verifies that the loads of keys become rarer while they fail, and that one success ends this.
func TestPauses(t *testing.T) {
	i := testkit.NewIssuer(t)
	v, clock := newRemote(t, i, io.Discard)
	token := i.Token("ann", nil)
	accepted(t, v, "before the outage", token)
	strange := i.Signed(i.NewKey("other", "ES256"), nil, i.Claims("ann", nil))
	for range 2 {
		var loads atomic.Int32
		i.Serve(func(w http.ResponseWriter, _ *http.Request) {
			loads.Add(1)
			w.WriteHeader(500)
		})
		clock.move(oidc.LoadEvery)
		for n, pause := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, oidc.MaxPause, oidc.MaxPause} {
			for range 2 {
				_, err := check(t.Context(), v, strange)
				testkit.WantCode(t, err, fault.Unavailable, "cannot be reached")
			}
			clock.move(pause - 1)
			_, _ = check(t.Context(), v, strange)
			if got := int(loads.Load()); got != n+1 {
				t.Errorf("%d loads before the end of pause %d", got, n+1)
			}
			clock.move(1)
		}
		i.Serve(nil)
		refused(t, v, "after the outage", strange, oidc.UnknownKey)
	}
}

// TestOutage verifies that keys are used for an hour without the issuer, that then and for unknown keys the error is UNAVAILABLE, and that
// the keys are used again when the issuer is back.
func TestOutage(t *testing.T) {
	i := testkit.NewIssuer(t)
	var log bytes.Buffer
	v, clock := newRemote(t, i, &log)
	token, strange := i.Token("ann", nil), i.Signed(i.NewKey("other", "ES256"), nil, i.Claims("ann", nil))
	accepted(t, v, "before the outage", token)
	unavailable := func(v *oidc.Verifier, what, token string) {
		t.Helper()
		_, err := check(t.Context(), v, token)
		testkit.WantCode(t, err, fault.Unavailable, "issuer of tokens cannot be reached")
		if !fault.IsRetryable(err) {
			t.Errorf("%s: the error is not retryable: %v", what, err)
		}
	}
	for what, down := range map[string]http.HandlerFunc{
		"a failure":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"a broken response": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"another document":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), oidc.MaxDocument+1))
		},
		"another issuer": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"issuer":"https://x.example","jwks_uri":"https://x.example"}`)
		},
		"keys at plain HTTP": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://x.example"}`, i.URL)
		},
	} {
		i.Serve(down)
		clock.move(oidc.MaxPause)
		accepted(t, v, what, token)
		unavailable(v, what, strange)
		fresh, _ := newRemote(t, i, io.Discard)
		unavailable(fresh, what+" at the start", token)
	}
	clock.move(oidc.MaxAge)
	unavailable(v, "an hour later", token)
	i.Serve(nil)
	unavailable(v, "before the next load", token)
	clock.move(oidc.MaxPause)
	accepted(t, v, "after the outage", token)
	refused(t, v, "after the outage", strange, oidc.UnknownKey)
	if text := log.String(); !strings.Contains(text, "cannot be loaded") || strings.Count(text, "are loaded") != 2 {
		t.Errorf("logged:\n%s", text)
	}
}

// TestRedirects verifies that a redirect to another host is not followed.
func TestRedirects(t *testing.T) {
	i := testkit.NewIssuer(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the redirect was followed")
		_, _ = w.Write(i.JWKS())
	}))
	t.Cleanup(other.Close)
	i.Serve(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	_, err := check(t.Context(), newVerifier(t, i.URL, "", io.Discard), i.Token("ann", nil))
	testkit.WantCode(t, err, fault.Unavailable, "issuer of tokens cannot be reached")
	i.Serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_, _ = w.Write(i.JWKS())
			return
		}
		http.Redirect(w, r, "/keys", http.StatusFound)
	})
	accepted(t, newVerifier(t, i.URL, i.URL+"/moved", io.Discard), "a redirect on the same host", i.Token("ann", nil))
}

// TestAFileIsFollowed verifies that the keys in a file are used as soon as it has changed, and the last ones while it cannot be used.
func TestAFileIsFollowed(t *testing.T) {
	i := testkit.NewIssuer(t)
	old, next := i.NewKey("old", "ES256"), i.NewKey("next", "ES256")
	path := filepath.Join(t.TempDir(), "jwks.json")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i.Publish(old)
	write(i.JWKS())
	var log bytes.Buffer
	v := newVerifier(t, i.URL, path, &log)
	claims := i.Claims("ann", nil)
	accepted(t, v, "the first key", i.Signed(old, nil, claims))
	clock := &manual{at: time.Now()}
	v.At(clock.now)
	for _, bad := range []string{"", "{", "{}"} {
		write(i.JWKS())
		accepted(t, v, "while the file is whole", i.Signed(old, nil, claims))
		write([]byte(bad))
		clock.move(oidc.MaxAge - 1)
		accepted(t, v, "while the file is broken", i.Signed(old, nil, claims))
		clock.move(1)
		_, err := check(t.Context(), v, i.Signed(old, nil, claims))
		testkit.WantCode(t, err, fault.Unavailable, "the file with the keys")
	}
	write(i.JWKS())
	accepted(t, v, "after it was broken", i.Signed(old, nil, claims))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	accepted(t, v, "without the file", i.Signed(old, nil, claims))
	clock.move(oidc.MaxAge)
	_, err := check(t.Context(), v, i.Signed(old, nil, claims))
	testkit.WantCode(t, err, fault.Unavailable, "the file with the keys")
	write([]byte(`{"keys":[]}`))
	refused(t, v, "after all keys were withdrawn", i.Signed(old, nil, claims), oidc.UnknownKey)
	i.Publish(next)
	write(i.JWKS())
	accepted(t, v, "the second key", i.Signed(next, nil, claims))
	refused(t, v, "the key that was removed", i.Signed(old, nil, claims), oidc.UnknownKey)
	if text := log.String(); strings.Count(text, "last ones are still used") != 4 || i.Fetches() > 0 {
		t.Errorf("%d fetches, log:\n%s", i.Fetches(), text)
	}
}

// TestBadConfigs verifies that a configuration that cannot work is refused at the start.
func TestBadConfigs(t *testing.T) {
	for _, c := range []oidc.Config{
		{}, {Issuer: "login.example.com", Audience: "a"}, {Issuer: "http://login.example.com", Audience: "a"}, {Issuer: "https://ann:pw@login.example.com", Audience: "a"},
		{Issuer: "http://127.0.0.1.example.com", Audience: "a"}, {Issuer: "https://login.example.com"}, {Issuer: "https://login.example.com", Audience: "a", JWKS: "http://keys.example.com"},
		{Issuer: "https://login.example.com", Audience: "a", JWKS: "ftp://keys.example.com"}, {Issuer: "https://login.example.com", Audience: "a", JWKS: filepath.Join(t.TempDir(), "missing.json")},
	} {
		c.Log = slog.New(slog.DiscardHandler)
		if _, err := oidc.New(c); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%+v: got error %v", c, err)
		}
	}
	for _, g := range []oidc.Grant{
		{}, {Claim: "c", Value: "v", Role: keys.Read}, {Claim: "c", Role: keys.Read, Workspace: "w"}, {Value: "v", Role: keys.Read, Workspace: "w"}, {Claim: "c", Value: "v", Workspace: "w"},
		{Claim: "c", Value: "v", Role: "owner", Workspace: "w"}, {Claim: "c", Value: "v", Role: keys.Read, Workspace: "w", WorkspaceClaim: "t"}, {Claim: "c", Value: "v", Role: keys.Read, Workspace: "a/b"},
		{Claim: "c", Value: "v", Role: keys.Read, Workspace: "w", Requesters: []string{"a", "a"}},
	} {
		if err := g.Check(); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%+v: got error %v", g, err)
		}
	}
}

// TestGrants verifies which workspaces and rights the claims of a token give.
func TestGrants(t *testing.T) {
	i := testkit.NewIssuer(t)
	v := newVerifier(t, i.URL, "", io.Discard)
	grants := []oidc.Grant{
		{Name: "shop", Claim: "groups", Value: "shop", Workspace: "shop", Role: keys.Worker, Requesters: []string{"robot"}},
		{Name: "admins", Claim: "/realm_access/roles", Value: "boss", Workspace: "shop", Role: keys.Admin},
		{Name: "tenants", Claim: "sub", Value: "*", WorkspaceClaim: "tenant", Role: keys.Read},
		{Name: "scoped", Claim: "scope", Value: "holdfast.operate", Workspace: "shop", Role: keys.Operate, Requesters: []string{"ann", "robot"}},
		{Name: "dotted", Claim: "https://x.example/a~b", Value: "*", Workspace: "dotted", Role: keys.Read},
	}
	for _, g := range grants {
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for what, x := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"nothing":                  {nil, ""},
		"a string":                 {map[string]any{"groups": "shop"}, "shop:shop "},
		"an array":                 {map[string]any{"groups": []any{"x", "shop", 7}}, "shop:shop "},
		"a part of a string":       {map[string]any{"groups": "workshop shop"}, ""},
		"a number":                 {map[string]any{"groups": 7}, ""},
		"an object":                {map[string]any{"groups": map[string]any{"shop": true}}, ""},
		"nested":                   {map[string]any{"realm_access": map[string]any{"roles": []string{"boss"}}}, "shop:admins "},
		"not nested":               {map[string]any{"/realm_access/roles": "boss", "realm_access": "boss"}, ""},
		"scopes":                   {map[string]any{"scope": "openid holdfast.operate"}, "shop:scoped "},
		"a tenant":                 {map[string]any{"tenant": "acme"}, "acme:tenants "},
		"tenants":                  {map[string]any{"tenant": []string{"acme", "zeta", "../x", ""}}, "acme:tenants zeta:tenants "},
		"the tenant shop":          {map[string]any{"tenant": "shop", "groups": "shop"}, "shop:shop,tenants "},
		"a claim whose value is *": {map[string]any{"groups": "*"}, ""},
		"a claim that is empty":    {map[string]any{"https://x.example/a~b": ""}, ""},
		"a claim of any value":     {map[string]any{"https://x.example/a~b": "v"}, "dotted:dotted "},
	} {
		token, err := check(t.Context(), v, i.Token("ann", x.claims))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		granted := oidc.Granted(grants, token)
		for _, space := range []string{"acme", "dotted", "shop", "zeta"} {
			var names []string
			for _, g := range granted[space] {
				names = append(names, g.Name)
			}
			if len(names) > 0 {
				got += space + ":" + strings.Join(names, ",") + " "
			}
		}
		if got != x.want || len(granted) != strings.Count(got, ":") {
			t.Errorf("%s: got %q, want %q", what, got, x.want)
		}
	}
	at := func(least ...keys.Role) func(keys.Role) bool {
		return func(r keys.Role) bool { return slices.Contains(least, r) }
	}
	for _, x := range []struct {
		permits    func(keys.Role) bool
		role       keys.Role
		requesters []string
	}{
		{at(keys.Read, keys.Worker, keys.Operate, keys.Admin), keys.Admin, nil},
		{at(keys.Read, keys.Worker, keys.Operate), keys.Operate, []string{"ann", "robot"}},
		{at(keys.Read, keys.Worker), keys.Worker, []string{"robot"}},
		{at(keys.Read), keys.Read, nil},
		{at(keys.Admin), keys.Admin, nil},
		{at(), keys.Admin, nil},
	} {
		role, requesters := oidc.Rights(grants[:4], x.permits)
		if role != x.role || !slices.Equal(requesters, x.requesters) {
			t.Errorf("got %s for %q, want %s for %q", role, requesters, x.role, x.requesters)
		}
	}
}

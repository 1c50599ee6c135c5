package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // for signatures
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Audience is the audience of an issuer's tokens.
const Audience = "holdfast"

// Issuer is an OpenID Connect issuer on this machine. Its methods may be called concurrently.
type Issuer struct {
	URL string
	t   testing.TB

	mu      sync.Mutex
	keys    []SigningKey // published
	serve   http.HandlerFunc
	fetches int
}

// SigningKey is a key of an issuer.
type SigningKey struct {
	ID, Alg string
	Private crypto.Signer
}

// NewIssuer returns an issuer with one key, for ES256.
func NewIssuer(t testing.TB) *Issuer {
	i := &Issuer{t: t}
	srv := httptest.NewServer(http.HandlerFunc(i.ServeHTTP))
	t.Cleanup(srv.Close)
	i.URL = srv.URL
	i.Publish(i.NewKey("first", "ES256"))
	return i
}

// NewKey returns a key that is not published yet.
func (i *Issuer) NewKey(id, alg string) SigningKey {
	k := SigningKey{ID: id, Alg: alg}
	var err error
	switch alg {
	case "ES256":
		k.Private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		k.Private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ES512":
		k.Private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "EdDSA":
		_, k.Private, err = ed25519.GenerateKey(rand.Reader)
	default:
		k.Private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	return k
}

// Publish replaces the published keys. Tokens are signed with the first.
func (i *Issuer) Publish(all ...SigningKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = all
}

// Serve makes the issuer respond with f, or again with its documents for nil.
func (i *Issuer) Serve(f http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serve = f
}

// Fetches returns how many times the keys were fetched, successfully or not.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// ServeHTTP serves the discovery document, and the keys.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	serve := i.serve
	if r.URL.Path == "/keys" {
		i.fetches++
	}
	i.mu.Unlock()
	switch {
	case serve != nil:
		serve(w, r)
	case r.URL.Path == "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/keys")
	case r.URL.Path == "/keys":
		_, _ = w.Write(i.JWKS())
	default:
		http.NotFound(w, r)
	}
}

// JWKS returns the published keys.
func (i *Issuer) JWKS() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := []map[string]string{}
	for _, k := range i.keys {
		all = append(all, k.JWK())
	}
	text, err := json.Marshal(map[string]any{"keys": all})
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// JWK returns the public key.
func (k SigningKey) JWK() map[string]string {
	j := map[string]string{"kid": k.ID, "alg": k.Alg, "use": "sig"}
	switch public := k.Private.Public().(type) {
	case *rsa.PublicKey:
		j["kty"], j["n"], j["e"] = "RSA", encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes())
	case *ecdsa.PublicKey:
		point, _ := public.Bytes()
		half := len(point) / 2
		j["kty"], j["crv"], j["x"], j["y"] = "EC", public.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
	case ed25519.PublicKey:
		j["kty"], j["crv"], j["x"] = "OKP", "Ed25519", encode(public)
	}
	return j
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Token returns a token of a subject, which is valid for an hour, with claims in addition to the usual ones. A claim nil removes one.
func (i *Issuer) Token(subject string, claims map[string]any) string {
	i.mu.Lock()
	k := i.keys[0]
	i.mu.Unlock()
	return i.Signed(k, nil, i.Claims(subject, claims))
}

// Claims returns the claims of [Issuer.Token].
func (i *Issuer) Claims(subject string, claims map[string]any) []byte {
	now := clock.OfMachine()
	all := map[string]any{"iss": i.URL, "aud": Audience, "sub": subject, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(all)
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// Signed returns a token with a payload, signed by a key, with members in addition to those of its header. A member nil removes one.
func (i *Issuer) Signed(k SigningKey, header map[string]any, payload []byte) string {
	h := map[string]any{"alg": k.Alg, "kid": k.ID, "typ": "JWT"}
	maps.Copy(h, header)
	maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
	head, err := json.Marshal(h)
	if err != nil {
		i.t.Fatal(err)
	}
	signed := encode(head) + "." + encode(payload)
	return signed + "." + encode(k.sign(i.t, []byte(signed)))
}

func (k SigningKey) sign(t testing.TB, text []byte) []byte {
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[k.Alg[2:]]
	digest := text
	if hash != 0 {
		h := hash.New()
		h.Write(text)
		digest = h.Sum(nil)
	}
	if key, ok := k.Private.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, key, digest)
		if err != nil {
			t.Fatal(err)
		}
		size := (key.Params().BitSize + 7) / 8
		return slices.Concat(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size)))
	}
	var o crypto.SignerOpts = hash
	if k.Alg[0] == 'P' {
		o = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	}
	signature, err := k.Private.Sign(rand.Reader, digest, o)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

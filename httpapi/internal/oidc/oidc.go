// Package oidc verifies the tokens of an OpenID Connect issuer, and maps their claims to rights ([Grant]).
//
// A token is a signed JWT (RFC 7519, RFC 8725). The key that its header names decides the algorithm, never the header; only
// signatures with a public key are supported. What the payload says counts only after the signature was verified.
package oidc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

const (
	// MaxToken is the maximum length of a token.
	MaxToken = 16 << 10
	// Leeway is by how much the issuer's clock may be ahead of the database's.
	Leeway = 30 * time.Second
	// ActorPrefix begins the actor of a token's subject.
	ActorPrefix = "oidc:"
)

// Config describes an issuer.
type Config struct {
	// Issuer is its URL, which its tokens have as iss.
	Issuer string
	// Audience is one of the values of aud in accepted tokens.
	Audience string
	// JWKS is a file or a URL with the issuer's keys. Empty means the URL that the issuer publishes.
	JWKS string
	Log  *slog.Logger
}

// Verifier verifies the tokens of an issuer. It is safe for concurrent use.
type Verifier struct {
	Config
	keys source
}

// New returns a verifier. An invalid configuration, or a file without usable keys, is a [fault.Validation]. Keys at a URL are
// loaded later, so that an issuer that is down does not prevent a start.
func New(c Config) (*Verifier, error) {
	if err := checkURL("the issuer", c.Issuer); err != nil {
		return nil, err
	}
	if c.Audience == "" {
		return nil, fault.New(fault.Validation, "the issuer of tokens needs an audience: set the one that tokens for this server have")
	}
	v := &Verifier{Config: c}
	if strings.Contains(c.JWKS, "://") || c.JWKS == "" {
		if c.JWKS != "" {
			if err := checkURL("the URL of the keys", c.JWKS); err != nil {
				return nil, err
			}
		}
		v.keys = newRemoteKeys(c)
		return v, nil
	}
	f := &fileKeys{path: c.JWKS, log: c.Log, now: clock.Now}
	v.keys = f
	all, err := f.follow()
	if err == nil && len(all) == 0 {
		err = fault.New(fault.Validation, "the JWKS in %q has no usable key: write the keys of the issuer into the file", c.JWKS)
	}
	return v, err
}

// Load loads keys that are at a URL, so that a mistake in the configuration is logged when the server starts.
func (v *Verifier) Load(ctx context.Context) { _, _ = v.keys.find(ctx, "") }

// IsToken reports whether the text of a caller may be a token. An API key never has a dot.
func IsToken(text string) bool { return strings.Contains(text, ".") }

// Refusal is the error for a token that is not accepted. Reason is one of a few words, for metrics. The texts are for the log: an
// unverified caller must not learn them.
type Refusal struct{ Reason, Detail string }

// Error returns the detail.
func (r *Refusal) Error() string { return r.Detail }

// Reasons of refusals.
const (
	Malformed  = "malformed"
	Algorithm  = "algorithm"
	UnknownKey = "unknown_key"
	Signature  = "signature"
	Issuer     = "issuer"
	Audience   = "audience"
	Expired    = "expired"
	Early      = "early"
	Ungranted  = "ungranted"
)

// Token has the claims of a verified token.
type Token struct {
	Issuer, Subject string
	Expires         time.Time
	begins          time.Time // the later of nbf and iat; zero without both
	claims          map[string]any
}

// Actor names the subject in histories.
func (t *Token) Actor() string { return ActorPrefix + t.Subject }

// Owner identifies the subject among those of all issuers.
func (t *Token) Owner() string { return ActorPrefix + t.Issuer + " " + t.Subject }

// header is that of a token. Members that name keys elsewhere (jwk, jku, x5c, x5u) are ignored.
type header struct {
	Alg  string          `json:"alg"`
	Kid  string          `json:"kid"`
	Typ  string          `json:"typ"`
	Crit json.RawMessage `json:"crit"`
}

// Verify returns the claims of a token with a valid signature, issuer and audience. The error is a [Refusal], or
// [fault.Unavailable] if the key is not known because the issuer cannot be reached. The caller also checks the time
// ([Token.Check]).
func (v *Verifier) Verify(ctx context.Context, text string) (*Token, error) {
	if len(text) > MaxToken {
		return nil, refuse(Malformed, "the token has more than %d bytes", MaxToken)
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 || strings.ContainsAny(text, "\r\n") { // which the decoder would ignore
		return nil, refuse(Malformed, "the token is not three parts on one line")
	}
	var h header
	if err := decode("header", parts[0], strictjson.Object, &h); err != nil {
		return nil, err
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if err != nil {
		return nil, refuse(Malformed, "the signature is not base64url")
	}
	if err := v.verify(ctx, h, []byte(text[:len(parts[0])+1+len(parts[1])]), signature); err != nil {
		return nil, err
	}
	claims := make(map[string]any)
	if err := decode("payload", parts[1], checkNames, &claims); err != nil {
		return nil, err
	}
	return v.claims(claims)
}

// check refuses tokens that are no access or ID tokens, or that require something that we do not support.
func (h header) check() error {
	typ := strings.TrimPrefix(strings.ToLower(h.Typ), "application/")
	switch {
	case len(h.Crit) > 0:
		return refuse(Malformed, "the token has critical header parameters, which are not supported")
	case typ != "" && typ != "jwt" && typ != "at+jwt":
		return refuse(Malformed, "the token's type is %.40q, want JWT or at+jwt", h.Typ)
	case algorithms[h.Alg] == 0 && h.Alg != edDSA:
		return refuse(Algorithm, "the algorithm %.40q is not accepted", h.Alg)
	}
	return nil
}

// verify verifies a signature with the key that the header names.
func (v *Verifier) verify(ctx context.Context, h header, signed, signature []byte) error {
	some, err := v.keys.find(ctx, h.Kid)
	switch {
	case err != nil:
		return err
	case len(some) == 0:
		return refuse(UnknownKey, "the issuer has no key %.80q", h.Kid)
	case h.Kid == "" && len(some) > 1:
		return refuse(UnknownKey, "the token does not name its key, and the issuer has %d", len(some))
	}
	matched := false
	for _, k := range some { // an issuer may have several keys with one id
		if k.alg != h.Alg {
			continue
		}
		if k.verifies(signed, signature) {
			return nil
		}
		matched = true
	}
	if matched {
		return refuse(Signature, "the signature does not match")
	}
	return refuse(Algorithm, "the key %.80q is for %s, and the token says %.40q", h.Kid, some[0].alg, h.Alg)
}

// claims reads the claims of a token whose signature is valid.
func (v *Verifier) claims(all map[string]any) (*Token, error) {
	t := &Token{claims: all}
	t.Issuer, _ = all["iss"].(string)
	t.Subject, _ = all["sub"].(string)
	switch {
	case t.Issuer != v.Issuer:
		return nil, refuse(Issuer, "the issuer is %.200q, want %q", t.Issuer, v.Issuer)
	case !slices.Contains(stringsOf(all["aud"]), v.Audience):
		return nil, refuse(Audience, "the audience is %.200q, want %q", stringsOf(all["aud"]), v.Audience)
	case strictjson.Text("sub", t.Actor(), events.MaxName) != nil || !isSubject(t.Subject):
		return nil, refuse(Malformed, "the subject is missing, too long, begins or ends with white space, or has invisible characters")
	case all["cnf"] != nil:
		return nil, refuse(Malformed, "the token is bound to a key of its holder (cnf), which is not supported")
	}
	for name, into := range map[string]*time.Time{"exp": &t.Expires, "nbf": &t.begins, "iat": &t.begins} {
		at, err := timeOf(all, name)
		if err != nil {
			return nil, err
		}
		if at.After(*into) {
			*into = at
		}
	}
	if t.Expires.IsZero() {
		return nil, refuse(Malformed, "the token has no exp")
	}
	return t, nil
}

// isSubject reports whether a subject is distinguishable from others in a history.
func isSubject(sub string) bool {
	return sub != "" && strings.TrimSpace(sub) == sub && !strings.ContainsFunc(sub, func(r rune) bool {
		return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	})
}

// Check refuses a token that is not valid at a time.
func (t *Token) Check(now time.Time) error {
	switch {
	case !now.Before(t.Expires):
		return refuse(Expired, "the token has expired at %s", t.Expires.Format(time.RFC3339))
	case t.begins.After(now.Add(Leeway)):
		return refuse(Early, "the token is valid from %s", t.begins.Format(time.RFC3339))
	}
	return nil
}

// values returns the strings of a claim. A name that begins with a slash is a JSON pointer: /realm_access/roles. The claim
// scope is a list that spaces separate (RFC 8693).
func (t *Token) values(name string) []string {
	var v any = t.claims
	path := []string{name}
	if rest, ok := strings.CutPrefix(name, "/"); ok {
		path = strings.Split(rest, "/")
		for i, p := range path {
			path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
		}
	}
	for _, p := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[p]
	}
	if text, ok := v.(string); ok && name == "scope" {
		return strings.Fields(text)
	}
	return stringsOf(v)
}

// stringsOf returns a string, or the strings of an array, without empty ones. Other values count as none.
func stringsOf(v any) (all []string) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, one := range list {
		if s, ok := one.(string); ok && s != "" {
			all = append(all, s)
		}
	}
	return all
}

// lastTime is the end of the year 9999 in seconds, which is enough for an issuer that sets no real expiry.
const lastTime = 253402300799

// timeOf returns the time of a claim, rounded down to seconds, or the zero time if it is missing.
func timeOf(claims map[string]any, name string) (time.Time, error) {
	v, ok := claims[name]
	if !ok {
		return time.Time{}, nil
	}
	n, ok := v.(json.Number)
	seconds, err := n.Float64()
	if !ok || err != nil || seconds < 0 || seconds > lastTime {
		return time.Time{}, refuse(Malformed, "%s is not a time in seconds", name)
	}
	return time.Unix(int64(seconds), 0).UTC(), nil
}

// decode decodes a part of a token. A document with duplicate names is refused, because two parsers could read it differently.
func decode(what, part string, check func([]byte) error, into any) error {
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err == nil {
		err = check(text)
	}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(into)
	}
	if err != nil {
		return refuse(Malformed, "the %s is not a JSON object in base64url, or has a duplicate name or a value of the wrong type", what)
	}
	return nil
}

var errPayload = errors.New("invalid payload")

// checkNames refuses all but one JSON object without duplicate names. Names that differ in case are different claims; those of the header,
// which is decoded into a struct, are not.
func checkNames(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if !json.Valid(text) || !utf8.Valid(text) || uniqueNames(d) != nil {
		return errPayload
	}
	return nil
}

// uniqueNames reads a valid value.
func uniqueNames(d *json.Decoder) error {
	opening, err := d.Token()
	if err != nil || opening != json.Delim('{') && opening != json.Delim('[') {
		return err
	}
	seen := make(map[json.Token]bool)
	for d.More() {
		if opening == json.Delim('{') {
			name, err := d.Token()
			if err != nil || seen[name] {
				return errPayload
			}
			seen[name] = true
		}
		if err := uniqueNames(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha256" // for the algorithms
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// algorithms are those with a hash that we accept. All need a public key.
var algorithms = map[string]crypto.Hash{
	"RS256": crypto.SHA256, "RS384": crypto.SHA384, "RS512": crypto.SHA512,
	"PS256": crypto.SHA256, "PS384": crypto.SHA384, "PS512": crypto.SHA512,
	"ES256": crypto.SHA256, "ES384": crypto.SHA384, "ES512": crypto.SHA512,
}

const edDSA = "EdDSA"

// curves are the curves of the algorithms.
var curves = map[string]struct {
	elliptic.Curve
	alg string
}{"P-256": {elliptic.P256(), "ES256"}, "P-384": {elliptic.P384(), "ES384"}, "P-521": {elliptic.P521(), "ES512"}}

// Sizes of RSA keys, in bits: smaller ones are weak, and verifying with larger ones is slow.
const (
	minRSA = 2048
	maxRSA = 8192
)

// key is a public key of the issuer, with the only algorithm that it is used for.
type key struct {
	id, alg string
	public  crypto.PublicKey
}

// verifies reports whether a signature is that of the key.
func (k key) verifies(signed, signature []byte) bool {
	hash := algorithms[k.alg]
	var digest []byte
	if hash != 0 {
		h := hash.New()
		h.Write(signed)
		digest = h.Sum(nil)
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		if k.alg[0] == 'P' {
			return rsa.VerifyPSS(public, hash, digest, signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
		return rsa.VerifyPKCS1v15(public, hash, digest, signature) == nil
	case *ecdsa.PublicKey:
		size := (public.Curve.Params().BitSize + 7) / 8
		return len(signature) == 2*size && ecdsa.Verify(public, digest, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:]))
	case ed25519.PublicKey:
		return ed25519.Verify(public, signed, signature)
	}
	return false
}

// jwk is a key in a JWKS (RFC 7517).
type jwk struct {
	Kty    string   `json:"kty"`
	Kid    string   `json:"kid"`
	Use    string   `json:"use"`
	KeyOps []string `json:"key_ops"`
	Alg    string   `json:"alg"`
	Crv    string   `json:"crv"`
	N      string   `json:"n"`
	E      string   `json:"e"`
	X      string   `json:"x"`
	Y      string   `json:"y"`
	D      string   `json:"d"` // of a private key
	K      string   `json:"k"` // a secret
}

// parseKeys returns the usable keys of a JWKS. Others are skipped, as RFC 7517 requires: an issuer may have keys for encryption, or of
// kinds that we do not know. A JWKS without usable keys is not an error, because it withdraws all keys.
func parseKeys(text []byte) (all []key, skipped, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	err = json.Unmarshal(text, &set)
	if err == nil && set.Keys == nil {
		err = errors.New("it has no keys")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the keys are not a JWKS: %w", err)
	}
	for _, raw := range set.Keys {
		var j jwk
		err := json.Unmarshal(raw, &j)
		var k key
		if err == nil {
			k, err = j.key()
		}
		if err != nil {
			skipped = errors.Join(skipped, fmt.Errorf("key %.80q: %w", j.Kid, err))
			continue
		}
		all = append(all, k)
	}
	return all, skipped, nil
}

// key returns the public key. An RSA key without an algorithm is for RS256, which OpenID Connect requires of every issuer.
func (j jwk) key() (k key, err error) {
	k = key{id: j.Kid, alg: j.Alg}
	if j.Use != "" && j.Use != "sig" || len(j.KeyOps) > 0 && !slices.Contains(j.KeyOps, "verify") {
		return k, errors.New("it is not for signatures")
	}
	if j.D != "" || j.K != "" {
		return k, errors.New("it contains a secret, which everybody who reads the JWKS knows")
	}
	switch j.Kty {
	case "RSA":
		if k.alg == "" {
			k.alg = "RS256"
		}
		if algorithms[k.alg] == 0 || k.alg[0] == 'E' {
			return k, fmt.Errorf("an RSA key cannot be for %.40q", k.alg)
		}
		k.public, err = j.rsa()
		return k, err
	case "EC":
		c, ok := curves[j.Crv]
		if !ok || j.Alg != "" && j.Alg != c.alg {
			return k, fmt.Errorf("the curve %.40q is unknown, or not for %.40q", j.Crv, j.Alg)
		}
		k.alg = c.alg
		x, y, err := pair(j.X, j.Y)
		if err != nil {
			return k, err
		}
		k.public, err = ecdsa.ParseUncompressedPublicKey(c.Curve, slices.Concat([]byte{4}, x, y))
		return k, err
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(j.X)
		if err != nil || j.Crv != "Ed25519" || len(x) != ed25519.PublicKeySize || j.Alg != "" && j.Alg != edDSA && j.Alg != "Ed25519" {
			return k, errors.New("it is not a valid Ed25519 key")
		}
		k.alg, k.public = edDSA, ed25519.PublicKey(x)
		return k, nil
	}
	return k, fmt.Errorf("the kind %.40q is not supported", j.Kty)
}

func (j jwk) rsa() (*rsa.PublicKey, error) {
	n, e, err := pair(j.N, j.E)
	if err != nil {
		return nil, err
	}
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(n)}
	exponent := new(big.Int).SetBytes(e)
	if size := public.N.BitLen(); size < minRSA || size > maxRSA {
		return nil, fmt.Errorf("it has %d bits, want %d to %d", size, minRSA, maxRSA)
	}
	if exponent.BitLen() > 31 || exponent.BitLen() < 2 || exponent.Bit(0) == 0 {
		return nil, errors.New("its exponent must be odd, and have 2 to 31 bits")
	}
	public.E = int(exponent.Int64())
	return public, nil
}

// pair decodes two numbers.
func pair(a, b string) (x, y []byte, err error) {
	x, err = base64.RawURLEncoding.DecodeString(a)
	if err == nil {
		y, err = base64.RawURLEncoding.DecodeString(b)
	}
	return x, y, err
}

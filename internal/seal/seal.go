// Package seal encrypts secrets that must be recovered later, such as webhook signing secrets, so that a
// database dump does not reveal them.
//
//	box, err := seal.New(key)
//	sealed := box.Seal(secret, "webhook", workspace, id)
//	secret, err := box.Open(sealed, "webhook", workspace, id)
//
// A secret is encrypted with AES-256-GCM under a key that is not in the database, and bound to its owner: moved
// to another row it cannot be opened.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

var encoding = base64.RawStdEncoding.Strict()

// Box seals and opens secrets. It is safe for concurrent use.
type Box struct {
	first string // id of the sealing key
	mac   []byte // the sealing key
	keys  map[string]cipher.AEAD
}

// New returns a box. The first key seals; the others open secrets that were sealed before it.
func New(keys ...[]byte) (*Box, error) {
	if len(keys) == 0 {
		return nil, fault.New(fault.Validation, "no key for encrypting secrets is configured: set SecretKeys in Go or --secret-key on the command line")
	}
	b := &Box{first: nameOf(keys[0]), mac: bytes.Clone(keys[0]), keys: make(map[string]cipher.AEAD)}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fault.New(fault.Validation, "key %[2]d for encrypting secrets must have %[1]d bytes, got %[3]d", KeySize, i+1, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		if b.keys[nameOf(key)], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// nameOf returns an id of a key that reveals nothing about it.
func nameOf(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("holdfast/seal"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// Key returns an id of the sealing key, with which everything that it seals begins. It reveals nothing about the key.
func (b *Box) Key() string { return b.first }

// Digest returns a digest of a text. Without the sealing key, a guess of the text cannot be checked against it.
func (b *Box) Digest(text []byte) []byte {
	mac := hmac.New(sha256.New, b.mac)
	mac.Write([]byte("holdfast/digest"))
	mac.Write(text)
	return mac.Sum(nil)
}

// Seal encrypts a secret for storage and binds it to the texts in belongs, which are needed again to open it.
func (b *Box) Seal(secret string, belongs ...string) string {
	data := b.keys[b.first].Seal(nil, nil, []byte(secret), bound(belongs))
	return b.first + "." + encoding.EncodeToString(data)
}

// Open decrypts a sealed secret. It returns [fault.Unavailable] if the box lacks the key, and
// [fault.DatabaseDamaged] if the secret was modified or belongs to something else.
func (b *Box) Open(sealed string, belongs ...string) (string, error) {
	name, text, ok := strings.Cut(sealed, ".")
	raw, err := encoding.DecodeString(text)
	if !ok || err != nil {
		return "", damaged()
	}
	key := b.keys[name]
	if key == nil {
		return "", fault.New(fault.Unavailable, "a secret was encrypted with key %.16s, which this node does not have: add that key to the configured keys", name)
	}
	secret, err := key.Open(nil, nil, raw, bound(belongs))
	if err != nil {
		return "", damaged()
	}
	return string(secret), nil
}

func damaged() error {
	return fault.New(fault.DatabaseDamaged, "an encrypted secret was modified or copied from another row and cannot be decrypted: restore the row from a backup, or rotate the secret")
}

// bound encodes several texts as additional data, each with its length, so that the encoding is unambiguous.
func bound(texts []string) []byte {
	b := []byte("holdfast/seal")
	for _, t := range texts {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	return b
}

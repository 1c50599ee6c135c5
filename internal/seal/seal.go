// Package seal keeps secrets that must be known again (those that messages are
// signed with) so that a dump of the database does not tell them.
//
//	box, err := seal.New(key)
//	kept := box.Seal(secret, "webhook", workspace, id)
//	secret, err := box.Open(kept, "webhook", workspace, id)
//
// A secret is encrypted with AES-256-GCM under a key that the database does not know,
// and bound to what it belongs to: moved to another row it cannot be opened.
package seal

import (
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

// KeySize is the length of a key, in bytes.
const KeySize = 32

var encoding = base64.RawStdEncoding.Strict()

// Box seals and opens secrets. It is safe for concurrent use.
type Box struct {
	first string // the id of the key that seals
	keys  map[string]cipher.AEAD
}

// New makes a box. The first key seals; the others open what was sealed before it
// was the first.
func New(keys ...[]byte) (*Box, error) {
	if len(keys) == 0 {
		return nil, fault.New(fault.Validation, "there is no key to seal secrets with")
	}
	b := &Box{first: nameOf(keys[0]), keys: make(map[string]cipher.AEAD)}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, fault.New(fault.Validation, "a key to seal secrets with has %d bytes, and number %d has %d", KeySize, i+1, len(key))
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

// nameOf names a key without telling anything of it.
func nameOf(key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("holdfast/seal"))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// Seal returns a secret as it is kept. What it belongs to is told again to open it.
func (b *Box) Seal(secret string, belongs ...string) string {
	sealed := b.keys[b.first].Seal(nil, nil, []byte(secret), bound(belongs))
	return b.first + "." + encoding.EncodeToString(sealed)
}

// Open returns a secret that was sealed. One that was sealed under a key that is not
// here is [fault.Unavailable]; one that is not what was stored, or belongs to
// something else, is [fault.DatabaseDamaged].
func (b *Box) Open(kept string, belongs ...string) (string, error) {
	name, text, ok := strings.Cut(kept, ".")
	raw, err := encoding.DecodeString(text)
	if !ok || err != nil {
		return "", damaged()
	}
	key := b.keys[name]
	if key == nil {
		return "", fault.New(fault.Unavailable, "a secret was sealed under the key %.16s, which this node does not have: give it beside the others", name)
	}
	secret, err := key.Open(nil, nil, raw, bound(belongs))
	if err != nil {
		return "", damaged()
	}
	return string(secret), nil
}

func damaged() error {
	return fault.New(fault.DatabaseDamaged, "a sealed secret is not what was stored: it was changed, or moved here from elsewhere")
}

// bound makes additional data of several texts, each with its length, so that no
// other texts make the same.
func bound(texts []string) []byte {
	b := []byte("holdfast/seal")
	for _, t := range texts {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	return b
}

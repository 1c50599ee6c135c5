package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"github.com/holdfast-go/holdfast/internal/store"
)

// The text of a key is hf_<id>_<secret>. Both parts are in an alphabet without an
// underscore and without capitals, which sorts as the bytes do: ids rise with time.
var alphabet = base32.NewEncoding(letters).WithPadding(base32.NoPadding)

const (
	letters      = "0123456789abcdefghijklmnopqrstuv"
	prefix       = "hf_"
	idLength     = 26 // 128 bits
	secretLength = 52 // 256 bits
)

func newID() string {
	id := store.NewID()
	return alphabet.EncodeToString(id[:])
}

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails: it ends the program instead
	return alphabet.EncodeToString(b[:])
}

func join(id, secret string) string { return prefix + id + "_" + secret }

// split takes a key's text apart.
func split(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(rest) != idLength+1+secretLength || rest[idLength] != '_' {
		return "", "", false
	}
	id, secret = rest[:idLength], rest[idLength+1:]
	return id, secret, isID(id) && written(secret)
}

func isID(s string) bool { return len(s) == idLength && written(s) }

func written(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(letters, c) })
}

// hash is what is kept of a secret. A secret has 256 random bits, so that nothing
// slower than this would make it harder to guess.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

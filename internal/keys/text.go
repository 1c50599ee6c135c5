package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"github.com/holdfast-go/holdfast/internal/store"
)

// The text of a key is hf_<id>_<secret>. The alphabet of both parts has no underscore and no
// capitals, and sorts like the encoded bytes: ids increase with time.
var alphabet = base32.NewEncoding(letters).WithPadding(base32.NoPadding)

const (
	letters       = "0123456789abcdefghijklmnopqrstuv"
	prefix        = "hf_"
	sessionPrefix = "hfs_"
	idLength      = 26 // 128 bits
	secretLength  = 52 // 256 bits
)

func newID() string {
	id := store.NewID()
	return alphabet.EncodeToString(id[:])
}

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return alphabet.EncodeToString(b[:])
}

func join(id, secret string) string { return prefix + id + "_" + secret }

// split parses the text of a key.
func split(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(rest) != idLength+1+secretLength || rest[idLength] != '_' {
		return "", "", false
	}
	id, secret = rest[:idLength], rest[idLength+1:]
	return id, secret, isID(id) && validLetters(secret)
}

// joinSession returns the text of a session: hfs_<key>_<id>_<secret>. It has the key, which leads to the workspace.
func joinSession(key, id, secret string) string {
	return sessionPrefix + key + "_" + id + "_" + secret
}

// splitSession parses the text of a session.
func splitSession(text string) (key, id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, sessionPrefix)
	if !ok || len(rest) != 2*idLength+2+secretLength || rest[idLength] != '_' || rest[2*idLength+1] != '_' {
		return "", "", "", false
	}
	key, id, secret = rest[:idLength], rest[idLength+1:2*idLength+1], rest[2*idLength+2:]
	return key, id, secret, isID(key) && isID(id) && validLetters(secret)
}

func isID(s string) bool { return len(s) == idLength && validLetters(s) }

func validLetters(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(letters, c) })
}

// hash returns the stored form of a secret. A secret has 256 random bits, so a slower hash would
// not make it harder to guess. That of a key with restrictions, and of its sessions, is another one, so that a
// node of a version that does not know restrictions refuses it.
func hash(secret string, r Restrictions) string {
	if !r.empty() {
		secret = "restricted\x00" + secret
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

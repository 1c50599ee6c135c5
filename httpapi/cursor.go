package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// A cursor says where a list goes on. It is opaque, and carries a sum, so that one
// that was made up, cut off or meant for another list is refused rather than read as
// something else. It is no secret: what may be read is decided by the key.

const sumBytes = 6

func cursorSum(list, after string) []byte {
	sum := sha256.Sum256([]byte("holdfast cursor\x00" + list + "\x00" + after))
	return sum[:sumBytes]
}

func cursorOf(list, after string) string {
	return base64.RawURLEncoding.EncodeToString(append(cursorSum(list, after), after...))
}

func uncursor(list, cursor string) (after string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) <= sumBytes {
		return "", false
	}
	after = string(raw[sumBytes:])
	return after, !strings.ContainsRune(after, 0) && string(cursorSum(list, after)) == string(raw[:sumBytes])
}

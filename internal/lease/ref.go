package lease

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// ID builds an id for remote holders from the parts that identify the leased work.
func ID(prefix string, parts ...string) string {
	text, _ := json.Marshal(parts) // a list of strings always marshals
	return prefix + base64.RawURLEncoding.EncodeToString(text)
}

// Parts decodes an [ID] of n parts. It rejects any text that [ID] would not have produced.
func Parts(prefix, id string, n int) ([]string, bool) {
	rest, ours := strings.CutPrefix(id, prefix)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	var parts []string
	if !ours || err != nil || json.Unmarshal(raw, &parts) != nil || len(parts) != n || ID(prefix, parts...) != id || slices.ContainsFunc(parts, hasNUL) {
		return nil, false
	}
	return parts, true
}

// hasNUL reports whether a name contains NUL, which the databases cannot store.
func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
